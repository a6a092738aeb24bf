"""Each shape of a secret, and each word that goes with one, is known in statements and in texts."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.secrets.readers import UNRESOLVED
from tidegate.secrets.redaction import (
    MASK,
    holds_login,
    mask_shapes,
    mask_url_logins,
    mentions_secret,
    redact,
)
from tidegate.secrets.references import (
    check_references,
    files_of,
    resolve,
    resolve_option,
    typed,
    variables_of,
)
from tidegate.secrets.url_logins import (
    asks_for_password,
    refuse_literal,
    refuse_literal_option,
    split_password,
    with_password,
    without_password,
)
from tidegate.sql.redaction import redact_statement

LONG = "aB3dE5gH7jK9mN1p"
SHAPES = [
    f"tg_{LONG}{LONG}",
    f"eyJ{LONG}.{LONG}.{LONG}",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    *(f"{kind}_{LONG}" for kind in ("ghp", "gho", "ghu", "ghs", "ghr", "sk")),
    *(f"{kind}-{LONG}" for kind in ("glpat", "xoxa", "xoxb", "xoxp", "xoxr", "xoxs", "sk")),
    f"github_pat_{LONG}",
    f"npm_{LONG}",
    f"AIza{LONG}",
    f"-----BEGIN KEY-----{LONG}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{LONG}",
]


@pytest.mark.parametrize("secret", SHAPES, ids=lambda secret: secret[:14])
def test_e_a_secret_is_known_by_its_shape_alone(secret: str) -> None:
    assert mask_shapes(f"a {secret}") == f"a {MASK}"
    assert redact(f"it was {secret}") == f"it was {MASK}"
    assert redact_statement(f"UPDATE t SET a = '{secret}' WHERE b = 'c'", "postgres") == (
        f"UPDATE t SET a = '{MASK}' WHERE b = 'c'"
    )


@pytest.mark.parametrize(
    "text",
    [
        "tg_short",
        "eyJshort",
        "AKIASHORT",
        "sk-short",
        f"risk-{LONG}",
        f"xAIza{LONG}",
        "-----BEGIN CERTIFICATE-----",
        "glpat",
    ],
)
def test_what_is_too_short_or_inside_a_word_is_no_secret(text: str) -> None:
    assert mask_shapes(text) == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgresql://ann:pw@db/shop", "postgresql://ann:***@db/shop"),
        ("jdbc:x+y.z://ann:p:w@db", "jdbc:x+y.z://ann:***@db"),
        ("https://ann:pw@host/path", "https://ann:***@host/path"),
        ("http://127.0.0.1:8080/mcp", "http://127.0.0.1:8080/mcp"),
        ("https://host:443?a=b", "https://host:443?a=b"),
        ("by http://127.0.0.1:8080, once", "by http://127.0.0.1:8080, once"),
        ("at (http://proxy:3128).", "at (http://proxy:3128)."),
        ("`http://[::1]:8080`: refused", "`http://[::1]:8080`: refused"),
        ("socks5://127.0.0.1:1080", "socks5://127.0.0.1:1080"),
        ("postgresql://localhost:5432/shop", "postgresql://localhost:5432/shop"),
        ("postgresql://ann:5432/sh@db", "postgresql://ann:***@db"),
        ("postgresql://ann:54321", "postgresql://ann:***"),
        ("http://ann:8080.@db", "http://ann:***@db"),
        ("http://127.0.0.1:8080,@db", "http://127.0.0.1:***@db"),
        ("http://[::1]:8080/ 'x'", "http://[::1]:8080/ 'x'"),
        ("see http://host:65535", "see http://host:65535"),
        ("http://host:123456@x", "http://host:***@x"),
        ("http://host:80@evil/", "http://host:***@evil/"),
        ("ftp://host:21/", "ftp://host:***"),
        ("https://h/x?sig=abc&v=1", "https://h/x?sig=***&v=1"),
        ("https://h/x?a=1&X-Signature=abc", "https://h/x?a=1&X-Signature=***"),
        ("https://h/x?auth=abc", "https://h/x?auth=***"),
        ("https://h/x?api-key=abc&b=c", "https://h/x?api-key=***&b=c"),
        ("https://h/x?page=2", "https://h/x?page=2"),
    ],
)
def test_an_address_loses_its_password_and_its_signature_and_nothing_else(
    text: str, masked: str
) -> None:
    assert mask_shapes(text) == masked


WORDS = [
    "password", "passwd", "passphrase", "pwd", "secret", "credential", "identified", "token",
    "apikey", "api_key", "accesskey", "access_key", "privatekey", "private_key", "crypt", "pgp_sym",
    "hmac", "authorization", "authorisation", "bearer", "accountkey", "account_key", "jwt", "pass",
    "passcode", "passkey",
]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_e_a_word_that_goes_with_a_secret_takes_the_literals_away(word: str) -> None:
    for written in (word, word.upper()):
        assert mentions_secret(f"{written} = x")
        text = f"UPDATE t SET {written} = 'hunter2' WHERE name = 'bob'"
        masked = f"UPDATE t SET {written} = '{MASK}' WHERE name = '{MASK}'"
        assert redact_statement(text, "postgres") == masked
        assert "hunter2" not in redact(f"near {written} 'hunter2'")


@pytest.mark.parametrize("text", ["PRAGMA key", "ATTACH 'a' AS b KEY"])
def test_the_key_of_an_encrypted_file_is_a_secret(text: str) -> None:
    assert mentions_secret(text)


@pytest.mark.parametrize("text", ["a key", "an attachment", "compass", "a pragma", "bypassed", ""])
def test_ordinary_words_are_no_mention(text: str) -> None:
    assert not mentions_secret(text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password = hunter2 is wrong", "password = *** is wrong"),
        ("password:hunter2", "password:***"),
        ("PWD=hunter2;x", "PWD=***;x"),
        ("passphrase=hunter2", "passphrase=***"),
        ("secret_word = hunter2", "secret_word = ***"),
        ("token=hunter2", "token=***"),
        ("apikey=hunter2, api_key=hunter3", "apikey=***, api_key=***"),
        ("accesskey=hunter2 access_key=hunter2", "accesskey=*** access_key=***"),
        ("privatekey=hunter2 private_key=hunter2", "privatekey=*** private_key=***"),
        ("pragma key=hunter2", "pragma key=***"),
        ("pragma rekey=hunter2", "pragma rekey=***"),
        ("pragma hexkey=hunter2", "pragma hexkey=***"),
        ("pragma hexrekey=hunter2", "pragma hexrekey=***"),
        ("identified by hunter2", "identified by ***"),
        ("identified by password hunter2", "identified by password ***"),
        ("identified by values hunter2", "identified by values ***"),
        ("identified with sha2 by hunter2", "identified with sha2 by ***"),
        ("Authorization: hunter2", "Authorization: ***"),
        ("bearer hunter2", "bearer ***"),
        ("the secret 'a' and \"b\"", "the secret '***' and '***'"),
        ("the secret $x$hunter2$x$ of", "the secret '***' of"),
        ("the secret 'it''s' of", "the secret '***' of"),
        ("the secret 'cut", "the secret '***'"),
        ("a token 'x' -- of", "a token ***"),
        ("a token=hunter2 /* 'x' */", "a token=*** ***"),
        ("a token \\ 'x'", "a token ***"),
        ("a token # 'x'", "a token ***"),
    ],
)
def test_a_text_that_mentions_a_secret_loses_what_may_be_one(text: str, masked: str) -> None:
    assert redact(text) == masked


def test_a_text_of_any_length_is_redacted() -> None:
    for length in (2_047, 2_048, 2_049, 9_000):
        text = "x" * (length - 13) + " token='hunt'"
        assert len(text) == length
        assert redact(text) == "x" * (length - 13) + f" token='{MASK}'"
        sql = f"SELECT {'x' * (length - 21)} token='hunt'"
        assert redact_statement(sql, "sqlite").endswith(f" token='{MASK}'")


def test_what_utf8_cannot_hold_becomes_a_question_mark_in_a_text_too() -> None:
    assert redact("a\udcffä") == "a?ä"


# References.


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("p://u:${ENV:PW@db", "has no `}`"),
        ("p://u:${ENV:}@db", "names no secret"),
        ("p://u:${FILE:}@db", "names no secret"),
        ("p://u:${env:PW}@db", "`${env:PW}` in the URL is not a reference"),
        ("p://u:${file:/x}@db", "is not a reference"),
        ("p://u:${PW}@db", "`${PW}` in the URL is not a reference"),
        ("p://u:${LOCKER:x}@db", "refers to no known kind"),
        ("p://u:${TYPED:1}@db", "refers to no known kind"),
        ("p://u:${a b}@db", "refers to no known kind"),
        ("p://u:${env:}@db", "refers to no known kind"),
    ],
)
def test_a_reference_that_no_secret_can_replace_is_refused(url: str, words: str) -> None:
    with pytest.raises(TidegateError) as refused:
        check_references(url)
    assert refused.value.code is Code.SOURCE_URL
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("p://u:${env:PW}@db", "Did you mean `${ENV:PW}`?"),
        ("p://u:${PW}@db", "Did you mean `${ENV:PW}`?"),
        ("p://u:${LOCKER:x}@db", "Write `${ENV:NAME}` or `${FILE:/path}` in its place."),
    ],
)
def test_the_refusal_of_a_reference_says_how_it_is_written(url: str, hint: str) -> None:
    with pytest.raises(TidegateError) as refused:
        check_references(url)
    assert refused.value.hint == hint


def test_a_reference_without_an_end_is_not_repeated_because_a_password_may_follow() -> None:
    with pytest.raises(TidegateError) as refused:
        check_references("p://u:${ENV:PWhunter2@db")
    assert "hunter2" not in refused.value.message


def test_references_of_both_kinds_pass_and_are_listed() -> None:
    url = "p://${ENV:U}:${FILE:/pw}@db?a=${ENV:A}&b=${FILE:/b}"
    check_references(url)
    assert variables_of(url) == ["U", "A"]
    assert files_of(url) == ["/pw", "/b"]


def test_a_typed_password_is_known_while_it_is_needed() -> None:
    with typed("a/b") as one, typed("c") as two:
        assert one != two
        check_references(f"p://u:{one}@db")
        assert resolve(f"p://u:{one}@db") == "p://u:a%2Fb@db"
        assert resolve_option(two) == "c"
    for reference in (one, two):
        with pytest.raises(TidegateError):
            check_references(f"p://u:{reference}@db")
        with pytest.raises(TidegateError):
            resolve(f"p://u:{reference}@db")


def test_a_secret_that_is_not_there_now_is_told_from_one_that_never_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_SUCH", raising=False)
    for reference in ("${ENV:NO_SUCH}", "${FILE:/no/such}"):
        with pytest.raises(TidegateError) as refused:
            resolve_option(reference)
        assert refused.value.details["cause"] == UNRESOLVED
    with pytest.raises(TidegateError) as refused:
        resolve_option("${LOCKER:x}")
    assert "cause" not in refused.value.details


def test_a_secret_of_the_largest_size_is_read_whole(tmp_path) -> None:
    path = tmp_path / "secret"
    path.write_text("x" * 65_536)
    assert len(resolve_option(f"${{FILE:{path}}}")) == 65_536
    path.write_text("x" * 65_537)
    with pytest.raises(TidegateError, match="64 KiB"):
        resolve_option(f"${{FILE:{path}}}")


@pytest.mark.parametrize(
    ("url", "asks"),
    [
        ("postgresql://ann@db/shop", True),
        ("postgresql://ann:@db/shop", True),
        ("postgresql://ann:pw@db/shop", False),
        ("postgresql://db/shop", False),
        ("sqlite:///a@b.db", False),
        ("shop", False),
    ],
)
def test_a_url_with_a_user_and_no_password_asks_for_one(url: str, asks: bool) -> None:
    assert asks_for_password(url) is asks
    if asks:
        given = with_password(url, "${ENV:PW}")
        assert given == "postgresql://ann:${ENV:PW}@db/shop"
        assert without_password(given) == "postgresql://ann@db/shop"


def test_a_password_goes_into_the_first_authority_alone() -> None:
    url = "postgresql://ann@db/shop?proxy=http://bob@host"
    assert with_password(url, "x") == "postgresql://ann:x@db/shop?proxy=http://bob@host"


@pytest.mark.parametrize(
    ("url", "rest", "password"),
    [
        ("postgresql://ann:p%40w@db/shop", "postgresql://ann@db/shop", "p@w"),
        ("postgresql://ann:${ENV:PW}@db/shop", None, None),
        ("postgresql://ann@db/shop", None, None),
        ("redis://:secret@db/0", None, None),
        ("postgresql://ann:@db/shop", None, None),
        ("sqlite:///shop.db", None, None),
    ],
)
def test_a_typed_url_is_parted_from_its_password(
    url: str, rest: str | None, password: str | None
) -> None:
    assert split_password(url) == (rest or url, password)
    if password is not None:
        assert password in unquote(url)


@pytest.mark.parametrize("name", ["a", "user_name", "monkey"])
def test_an_option_that_names_no_secret_may_be_literal(name: str) -> None:
    refuse_literal_option(name, "x")
    refuse_literal(f"sqlite:///a.db?{name}=x")


@pytest.mark.parametrize(
    "name",
    ["password", "passwd", "db.pwd", "passphrase", "secret", "token", "api_key", "apikey", "key"],
)
def test_a_parameter_that_names_a_secret_must_be_a_reference(name: str) -> None:
    for written in (name, name.upper()):
        with pytest.raises(TidegateError, match="literal secret"):
            refuse_literal(f"sqlite:///a.db?{written}=x")
        with pytest.raises(TidegateError, match="literal secret"):
            refuse_literal_option(written, "x")
    refuse_literal(f"sqlite:///a.db?{name}=${{ENV:X}}")
    refuse_literal(f"sqlite:///a.db?{name}=")
    refuse_literal_option(name, "${ENV:X}")


LOGINS = [
    "postgres://bob:hush@h/d",
    "see mysql://bob:hush@[::1]:3306/d please",
    "https://bob:hush@example.org",
    "postgresql://h/d?user=bob&password=hush",
    "host=h dbname=d password=hush",
    "PASSWORD = 'hush' and Host = 'h'",
]


@pytest.mark.parametrize("text", LOGINS)
def test_a_login_in_plain_language_is_found(text: str) -> None:
    assert holds_login(text)


@pytest.mark.parametrize(
    "text",
    [
        "How many users changed their password in May?",
        "users at postgres://h/d",
        "users at postgres://bob@h:5432/d",
        "pages of https://example.org:8080/a@b",
        "rows where the host = h",
        "rows where password = x",
        "",
    ],
)
def test_a_text_without_a_login_is_left_alone(text: str) -> None:
    assert not holds_login(text)


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "duckdb"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 -- at {}",
        "SELECT 1 /* {} */ + 1",
        "Show users at {} who left",
        "What's new at {} today",
    ],
)
def test_the_password_of_a_url_is_in_no_statement_that_is_kept(text: str, dialect: str) -> None:
    written = text.format("postgres://bob:hush@h/d")
    assert redact_statement(written, dialect) == text.format(f"postgres://bob:{MASK}@h/d")
    assert mask_url_logins(written) == text.format(f"postgres://bob:{MASK}@h/d")


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("${ENV:}", "`${ENV:}` in the URL names no secret."),
        ("${env:PGPASS}", "`${env:PGPASS}` in the URL is not a reference."),
        ("${PGPASS}", "`${PGPASS}` in the URL is not a reference."),
        ("${LOCKER:PGPASS}", "`${LOCKER:PGPASS}` in the URL refers to no known kind of secret."),
        ("${ENV:PGPASS", "`${` in the URL has no `}`."),
    ],
)
def test_a_reference_that_cannot_be_one_is_quoted_whole_unless_its_end_is_missing(
    reference: str, problem: str
) -> None:
    with pytest.raises(TidegateError) as caught:
        check_references(f"postgresql://app:{reference}@db/shop")
    assert (caught.value.code, caught.value.message) == (Code.SOURCE_URL, problem)
