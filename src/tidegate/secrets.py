"""How secrets come in and how they are kept out of records. Decides nothing about who may see them.

In: a URL never holds a secret, only a reference, `${ENV:NAME}`, `${FILE:/path}`, for a source
`${KEYRING:NAME}`, or one of a kind that `secret_readers` reads; `resolve` puts the secret in its
place at the moment a connection is opened, and the result is never stored. A password that a person
has typed, and that is not saved yet, is `${TYPED:NAME}` meanwhile.
Out: `redact` takes literals that may be secrets out of a statement before it is written down.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from tidegate.errors import Code, TidegateError
from tidegate.secret_readers import (
    MAX_SECRET_BYTES,
    UNRESOLVED,
    Reading,
    Reference,
    entry_of,
    find_kind,
    meant_form,
    misspelling_of,
    read_now,
)

MASK = "***"
LITERAL_REFUSED = "The URL holds a literal password."
HINT = "Write `${ENV:NAME}` or `${FILE:/path}` in its place."

# As text, because a start often needs no pattern: each is compiled when it is first used.
_REFERENCE = r"\$\{([A-Za-z]*):([^}]*)\}"
_USERINFO = r"[A-Za-z][\w+.:-]*?://[^/?#@]*?:([^/?#]*)@"
_SLASHED_USERINFO = r"[A-Za-z][\w+.:-]*?://(?!\[)[^/?#@:]*:(?!\d+(?:[/?#]|$))([^@\s]*)@"
_PARAMETER = (
    r"(?i)(?:^|[?&;\s])([\w.-]*(?:passw\w*|pwd|passphrase|secret\w*|token|api_?key|hexkey)|key)"
    r"\s*=\s*('[^']*'|[^&;\s]*)"
)

KINDS = ("ENV", "FILE", "KEYRING")
"""Kinds of references that the URL and the options of a source may hold, besides those of
`secret_readers`."""
READ_ANYWHERE = ("ENV", "FILE")
"""Those of them that other settings may hold, too: nothing waits for a person there."""

_typed: dict[str, str] = {}
_at_hand: ContextVar[Mapping[Reference, Reading]] = ContextVar(
    "secrets", default=MappingProxyType({})
)
_numbers = count(1)


def check_references(url: str, kinds: Collection[str] = KINDS) -> None:
    """Refuse a reference that no secret could ever take the place of.

    Raises: TidegateError SOURCE_URL with the reference as it should be written.
    """
    for found in re.finditer(r"\$\{([^}]*)(\}?)", url):
        inside, end = found.groups()
        kind, colon, name = inside.partition(":")
        if not end:
            raise _no_reference("${", "has no `}`.", HINT)  # what follows may be a password
        if kind == "TYPED" and name in _typed:
            continue
        if kind in kinds and name:
            continue
        if kind in kinds:
            raise _no_reference(found[0], "names no secret.", HINT)
        if colon and find_kind(kind) is not None:
            fault = misspelling_of(kind, name)
            if fault is None:
                continue
            raise _no_reference(found[0], *fault)
        if kind.upper() in kinds and name:
            raise _no_reference(
                found[0], "is not a reference.", f"Did you mean `${{{kind.upper()}:{name}}}`?"
            )
        if not colon and re.fullmatch(r"\w+", inside):
            raise _no_reference(
                found[0], "is not a reference.", f"Did you mean `${{ENV:{inside}}}`?"
            )
        meant = meant_form(kind, kinds) if colon else None
        hint = f"Did you mean `{meant}`?" if meant else HINT
        raise _no_reference(found[0], "refers to no known kind of secret.", hint)


def is_reference(text: str, kinds: Collection[str] | None = None) -> bool:
    """Whether a text is one reference and nothing else; of these `kinds` or of `secret_readers`,
    where they are given."""
    found = re.fullmatch(r"\$\{(\w+):[^}]+\}", text)
    if found is None or kinds is None or found[1] in kinds:
        return found is not None
    return find_kind(found[1]) is not None


def _no_reference(text: str, problem: str, hint: str) -> TidegateError:
    return TidegateError(Code.SOURCE_URL, f"`{text[:80]}` in the URL {problem}", hint=hint)


def variables_of(text: str) -> list[str]:
    """The names of the environment variables that a URL or an option refers to."""
    return [name for kind, name in re.findall(_REFERENCE, text) if kind == "ENV"]


def files_of(text: str) -> list[str]:
    """The paths of the files that a URL or an option refers to."""
    return [name for kind, name in re.findall(_REFERENCE, text) if kind == "FILE"]


def keyring_entries_of(text: str) -> list[str]:
    """The names of the keyring's entries that a URL or an option refers to."""
    return [name for kind, name in re.findall(_REFERENCE, text) if kind == "KEYRING"]


def elsewhere_in(texts: Iterable[str]) -> list[Reference]:
    """The references in texts whose secrets `secret_readers` reads."""
    found = [each for text in texts if "${" in text for each in re.findall(_REFERENCE, text)]
    own = (*KINDS, "TYPED")
    return sorted({each for each in found if each[0] not in own and entry_of(each[0]) is not None})


def refuse_server_secrets(texts: Iterable[str]) -> None:
    """Refuse references in what a caller gave, but to the password that it gave itself.

    Raises: TidegateError POLICY_DENIED.
    """
    for text in texts:
        if any(kind != "TYPED" for kind, _ in re.findall(_REFERENCE, text)):
            raise TidegateError(
                Code.POLICY_DENIED,
                "A temporary source cannot use a secret of the server.",
                details={"rule": "source.temporary"},
            )


@contextmanager
def at_hand(readings: Mapping[Reference, Reading]) -> Generator[None]:
    """While the block runs, `resolve` has these secrets, besides those that it had."""
    before = _at_hand.set({**_at_hand.get(), **readings})
    try:
        yield
    finally:
        _at_hand.reset(before)


def readings_at_hand(texts: Iterable[str]) -> list[Reading]:
    """What `at_hand` has of the secrets that `elsewhere_in` finds in the texts."""
    known = _at_hand.get()
    return [known[each] for each in elsewhere_in(texts) if each in known] if known else []


class HeldSecret:
    """A secret that is not saved, kept in memory until `release`; `reference` is written in its
    place."""

    def __init__(self, secret: str) -> None:
        self._name = f"{next(_numbers)}"
        self.reference = f"${{TYPED:{self._name}}}"
        _typed[self._name] = secret

    def release(self) -> None:
        """Forget the secret. Safe to call twice."""
        _typed.pop(self._name, None)


@contextmanager
def typed(password: str) -> Generator[str]:
    """A reference to a password that is not saved, for as long as the block runs."""
    held = HeldSecret(password)
    try:
        yield held.reference
    finally:
        held.release()


PIECE = r"(?:\$\{[^}]*\}|(?!\$\{)[^%s])"
"""The pattern of one character that is not in `%s`, or of a reference, whatever that holds."""

_AUTHORITY = PIECE % "/?" + "*"
_LOGIN = f"(?:({PIECE % ':@'}*)(?::({PIECE % '@'}*))?@)?({PIECE % '@'}*)"


class Authority(NamedTuple):
    """A server's URL up to its path. All but `rest` is as it is written."""

    before_places: str
    user: str
    password: str
    places: str
    rest: str

    def with_login(self, login: str) -> str:
        """The URL with another login, which is written into it as it is."""
        return f"{self.before_places.partition('://')[0]}://{login}@{self.places}{self.rest}"


def split_authority(url: str) -> Authority | None:
    """Take `SCHEME://user:password@places` apart; None if it cannot be read.

    Both the check for literal passwords and the engines read a login here, so that the check sees
    every password that would be sent.
    """
    scheme, separator, behind = url.partition("://")
    found = re.match(_AUTHORITY, behind)
    authority = found[0] if found else ""
    login = re.fullmatch(_LOGIN, authority)
    if not separator or login is None:
        return None
    user, password, places = login.groups(default="")
    before = f"{scheme}://{authority[: len(authority) - len(places)]}"
    return Authority(before, user, password, places, behind[len(authority) :])


def asks_for_password(url: str) -> bool:
    """Whether the URL names a user and no password."""
    parts = split_authority(url)
    return parts is not None and bool(parts.user) and not parts.password


def split_password(url: str) -> tuple[str, str | None]:
    """The URL without the password that is in it, and that password; None if there is none,
    or a reference in its place."""
    parts = split_authority(url)
    if parts is None or not parts.user or not parts.password or parts.password.startswith("${"):
        return url, None
    from urllib.parse import unquote

    return parts.with_login(parts.user), unquote(parts.password)


def without_password(url: str) -> str:
    """The URL without the reference to the password of the user that it names."""
    parts = split_authority(url)
    if parts is None or not parts.user or not re.fullmatch(r"\$\{[^}]*\}", parts.password):
        return url
    return parts.with_login(parts.user)


def with_password(url: str, reference: str) -> str:
    """The URL with a reference to the password of the user that it names, which has none yet."""
    parts = split_authority(url)
    if parts is None or not parts.user or parts.password:
        return url
    return parts.with_login(f"{parts.user}:{reference}")


def refuse_literal(url: str) -> None:
    """Refuse a URL that holds a secret itself, in its authority or in a parameter.

    Raises: TidegateError SOURCE_URL, which names the place and never the secret.
    """
    plain = re.sub(_REFERENCE, "\0", url)
    login = split_authority(url)
    # What no engine could read may hold a password all the same.
    unreadable = re.match(_USERINFO, plain) or re.match(_SLASHED_USERINFO, plain)
    if (login and re.sub(_REFERENCE, "", login.password)) or (
        unreadable and unreadable[1].strip("\0")
    ):
        raise TidegateError(Code.SOURCE_URL, LITERAL_REFUSED, hint=HINT)
    for name, value in re.findall(_PARAMETER, plain):
        if value.strip("\0'"):
            message = f"The URL holds a literal secret in `{name}`."
            raise TidegateError(Code.SOURCE_URL, message, hint=HINT)


def refuse_literal_option(name: str, value: str) -> None:
    """Refuse an option that holds a secret itself, judged by its name.

    Raises: TidegateError SOURCE_URL, which names the option and never the secret.
    """
    if re.match(_PARAMETER, f"{name}=") and re.sub(_REFERENCE, "", value):
        message = f"The option `{name}` of the source holds a literal secret."
        raise TidegateError(Code.SOURCE_URL, message, hint=HINT)


def resolve(url: str) -> str:
    """The URL with each reference replaced by its secret, percent-encoded where the URL has the
    form `scheme://`. What begins otherwise is read by a driver, as it is.

    Only for URLs that an operator gave: a reference may name any file this process can read.
    Raises: TidegateError SOURCE_URL if a reference leads nowhere.
    """
    if "${" not in url:
        return url
    if not re.match(r"[A-Za-z][\w+.-]*://", url):
        return resolve_option(url)
    from urllib.parse import quote

    def secret(reference: re.Match[str]) -> str:
        return quote(_fetch(reference[1], reference[2]), safe="")

    return re.sub(_REFERENCE, secret, url)


def hide_references(text: str) -> str:
    """The text with an `x` in the place of each reference: what is around them can be checked
    before a secret is there."""
    return re.sub(_REFERENCE, "x", text)


def resolve_option(value: str) -> str:
    """The value of a source's option with each reference replaced by its secret.

    Raises: as `resolve`.
    """
    return re.sub(_REFERENCE, lambda reference: _fetch(reference[1], reference[2]), value)


def _fetch(kind: str, name: str) -> str:
    if kind == "ENV":
        value = os.environ.get(name)
        if value is None:
            raise TidegateError(
                Code.SOURCE_URL,
                f"The environment variable `{name}` is not set.",
                hint=f"Set `{name}` where the server starts, or keep the password with `tidegate "
                "source update NAME --ask-password`.",
                details={"cause": UNRESOLVED},
            )
        return value
    if kind == "TYPED" and name in _typed:
        return _typed[name]
    found = _at_hand.get().get((kind, name))
    if found is not None:
        return found.secret
    if kind == "KEYRING":
        raise TidegateError(
            Code.SOURCE_URL, f"The keyring's entry `{name}` cannot be used here.", hint=HINT
        )
    if kind == "FILE":
        try:
            content = Path(name).read_bytes()[: MAX_SECRET_BYTES + 1]
            if len(content) <= MAX_SECRET_BYTES:
                return content.decode().rstrip("\r\n")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise TidegateError(
                Code.SOURCE_URL,
                f"The secret file `{name}` cannot be read: {reason}.",
                hint="Correct the reference, or let the account of this program read the file.",
                details={"path": name, "cause": UNRESOLVED},
            ) from None
        raise TidegateError(Code.SOURCE_URL, f"The secret file `{name}` is larger than 64 KiB.")
    if entry_of(kind) is not None:
        return read_now([(kind, name)])[kind, name].secret
    raise TidegateError(
        Code.SOURCE_URL,
        f"The source refers to a secret by the unknown kind `{kind}`.",
        hint="Use `${ENV:NAME}` or `${FILE:/path}`.",
    )


# Redaction. A statement that mentions a secret by any of these words loses all its literals: which
# of them is the secret cannot be determined without knowing every dialect's every statement.
_MENTIONS = (
    "passw", "passphrase", "pwd", "secret", "credential", "identified", "token", "apikey",
    "api_key", "accesskey", "access_key", "privatekey", "private_key", "crypt", "pgp_", "hmac",
    "authorization", "authorisation", "bearer", "accountkey", "account_key", "jwt",
)  # fmt: skip
_BRIEF = r"(?<![a-z])pass(?:code|key)?(?![a-z])"
# Most statements mention none, and searching for substrings costs a tenth of an alternation, so the
# expressions below are seldom needed. No expression may take more than linear time on hostile text.
_SHAPES = (
    "://", "tg_", "eyJ", "AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat", "xox",
    "sk-", "sk_", "-----BEGIN", "github_pat_", "npm_", "AIza",
)  # fmt: skip
_SHAPED = (
    # After the host of a web address, or of this machine, comes a port, unless an @ follows or
    # the path is long. Punctuation may follow, as in a sentence.
    r"(?s)(?P<scheme>(?<![\w+.-])(?!(?:https?://(?:\[[\da-fA-F:.]{2,45}\]|[\w.-]{1,253})"
    r"|[A-Za-z][\w+.-]{1,20}://(?:\[[\da-fA-F:.]{2,45}\]|\d{1,3}(?:\.\d{1,3}){3}|localhost))"
    r":\d{1,5}(?:[/?#][^\s@'\"]{0,200})?[.,;:!)\]}>`]{0,3}(?:[\s'\"]|\Z))"
    r"[A-Za-z][\w+.-]*://[^\s/:@'\"]*:)[^\s@'\"]*"
    r"|(?P<signed>[?&](?i:[\w-]*(?:sig|signature|auth|key)=))[^\s&'\"]*"
    r"|\bgithub_pat_\w{16,}|\bnpm_\w{16,}|\bAIza[\w-]{16,}"
    r"|\btg_[\w-]{20,}|\beyJ[\w-]{10,}[\w.-]*|\b(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|\b(?:gh[pousr]|glpat|xox[abprs]|sk)[_-][\w-]{16,}|-----BEGIN [A-Z ]{0,40}KEY-----.*"
)
# Bounded, as each place that a hostile text offers is tried.
_URL_LOGIN = r"(://[^\s/?#@:'\"]{0,128}:)(?!\d{1,5}[/?#])[^\s@'\"]{1,256}(?=@)"
# A login before a host, whatever is in it; what is no port in the beginning of a URL that was cut.
_ANY_LOGIN = r"([A-Za-z][\w+.-]*://)[^\s`'\"]*@|[^\s`'\"]*:[^\s`'\"]*@"
_CUT_LOGIN = r"(://(?!\[)[^\s`'\"/:@*]*):(?![0-9]{1,5}(?![^\s`'\"/?#]))[^\s`'\"]+"
_URL_QUERY = r"(://[^\s`'\"?]*\?)[^\s`'\"]+"
_URL_PARAMETER = r"(?i)://[^\s'\"]{0,512}[?&](?:password|passwd|pwd)=[^\s&'\"]"
_KEY_VALUE = r"(?i)\b(?:password|passwd|pwd)\s{0,8}=\s{0,8}[^\s=]"
_CONNECTION = r"(?i)\b(?:host|hostaddr|server|dbname|database)\s{0,8}=\s{0,8}[^\s=]"
_QUOTED = r"'(?:[^']|'')*(?:'|\Z)|\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)"
_ANY_LITERAL = rf'(?s){_QUOTED}|"(?:[^"]|"")*(?:"|\Z)'
_BARE = (
    r"(?i)((?:passw\w{0,40}|pwd|passphrase|secret\w{0,40}|token|api_?key|access_?key|private_?key"
    r"|\b(?:hex|re|hexre)?key)"
    r"\s*[:=]\s*|\bidentified\s+(?:with\s+\S+\s+)?by\s+(?:password\s+|values\s+)?"
    r"|\b(?:authorization|bearer)\s*:?\s+)([^\s'\"$?:@%;,()*][^\s'\";,)]*)"
)
# Comments and backslashes make it uncertain where a literal ends; then the rest is left out.
_UNCERTAIN = r"\\|--|/\*|#"
_FIRST_QUOTE = r"['\"$\\#]|--|/\*"


def redact(text: str, *, mentions: bool = False) -> str:
    """Text of any kind, such as an error or a value, without anything that may be a secret; equal
    to `text` if there was nothing. For statements there is `sql.redaction`, which knows literals.

    Errs on the side of leaving out: a text that mentions a password, key or token loses all that is
    in quotes. What UTF-8 cannot hold (lone surrogates, as a command line may bring) becomes `?`.
    Bounded work: give it a text cut to the size that is kept, and say by `mentions` whether what
    was cut off mentions a secret.
    """
    # Long texts seldom come twice, and the cache must stay small.
    if len(text) <= 2_048 and not mentions:
        return _redact_cached(text)
    return _redact(text, mentions=mentions)


def _redact(text: str, *, mentions: bool = False) -> str:
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    text = mask_shapes(text)
    if not mentions and not mentions_secret(text):
        return text
    if re.search(_UNCERTAIN, text):
        first = re.search(_FIRST_QUOTE, text)
        head = text[: first.start()] if first else text
        return re.sub(_BARE, rf"\1{MASK}", head) + MASK
    return re.sub(_BARE, rf"\1{MASK}", re.sub(_ANY_LITERAL, f"'{MASK}'", text))


_redact_cached = lru_cache(maxsize=1_024)(_redact)


def mask_shapes(text: str) -> str:
    """The text without what has the shape of a secret: a password in a URL, a signature, a key or
    token of a known kind."""
    if any(map(text.__contains__, _SHAPES)):
        return re.sub(_SHAPED, _shaped, text)
    return text


def mask_url_logins(text: str) -> str:
    """The text without the passwords of URLs, `user:password@`, wherever they are in it."""
    return re.sub(_URL_LOGIN, rf"\1{MASK}", text) if "://" in text else text


def mask_addresses(text: str) -> str:
    """The text without the logins and queries of URLs, also of one that was cut. Shows less than
    `mask_url_logins`: for a setting that should have neither. Not for hostile text: its work is
    not linear."""
    text = re.sub(_ANY_LOGIN, rf"\1{MASK}@", text)
    return re.sub(_URL_QUERY, rf"\1{MASK}", re.sub(_CUT_LOGIN, rf"\1:{MASK}", text))


def holds_login(text: str) -> bool:
    """Whether a text in plain language holds a password in the form in which databases are
    connected to: in a URL, or as `host=... password=...`."""
    if "://" in text and (re.search(_URL_LOGIN, text) or re.search(_URL_PARAMETER, text)):
        return True
    return bool(re.search(_KEY_VALUE, text) and re.search(_CONNECTION, text))


class Redactor(Protocol):
    """What a language does: a text of it without what may be a secret."""

    def redact(self, text: str, dialect: str, *, mentions: bool = False) -> str: ...


def cut_and_redact(
    text: str, most: int, language: Redactor | None, dialect: str
) -> tuple[str, bool]:
    """The first `most` characters of a statement without secrets, and whether it held any.

    What is cut off counts: its alias or its column can be what says that a literal is a secret.
    """
    kept = text[:most]
    mentions = len(text) > most and mentions_secret(text)
    if language is None:
        redacted = redact(kept, mentions=mentions)
    else:
        redacted = language.redact(kept, dialect, mentions=mentions)
    return redacted, mentions or redacted != kept


def mentions_secret(text: str) -> bool:
    """Whether the text has a word that goes with a secret, in any case of letters."""
    lowered = text.lower()
    if any(map(lowered.__contains__, _MENTIONS)):
        return True
    if "pass" in lowered and re.search(_BRIEF, lowered):
        return True
    # The key of an encrypted SQLite file: `PRAGMA key = 'x'`, `ATTACH 'file' AS name KEY 'x'`.
    return "key" in lowered and ("pragma" in lowered or "attach" in lowered)


def _shaped(found: re.Match[str]) -> str:
    return (found["scheme"] or found["signed"] or "") + MASK
