"""Secrets: none in a URL, references resolved late, none left in a recorded statement."""

import pytest

from tidegate.config.loading import load
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.secrets.redaction import redact as redact_text
from tidegate.secrets.references import resolve
from tidegate.secrets.url_logins import refuse_literal
from tidegate.sql.redaction import redact_statement as redact


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reader:hunter2@db/shop",
        "postgresql://reader:hunter2@db:5432/shop?sslmode=require",
        "mysql+pymysql://reader:hun/ter2@db/shop",
        "postgresql://:hunter2@db/shop",
        "postgresql://u:${ENV:A}hunter2@db/shop",
        "postgresql://db/shop?user=u&password=hunter2",
        "jdbc:sqlserver://db;user=u;Password=hunter2;encrypt=true",
        "host=db user=u password='hunter2'",
        "duckdb:///md:shop?motherduck_token=hunter2",
        "sqlite:///a.db?key=hunter2",
    ],
)
def test_a_url_that_holds_a_secret_is_refused_without_repeating_it(url):
    with pytest.raises(TidegateError) as caught:
        refuse_literal(url)
    assert caught.value.code is Code.SOURCE_URL
    assert "${ENV:NAME}" in caught.value.hint
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///relative.db",
        "sqlite:////absolute/a@b:c.db",
        "postgresql://reader@db:5432/shop",
        "postgresql://reader:@db/shop",
        "postgresql://reader:${ENV:SHOP_PW}@db/shop",
        "postgresql://${ENV:USER}:${FILE:/run/secrets/pw}@db/shop",
        "mysql://db:3306/shop?contact=a@b",
        "postgresql://[::1]:5432/shop?ssh=me@bastion:22&ssh_key=/etc/id",
        "jdbc:sqlserver://db;user=u;password=${ENV:PW};encrypt=true",
        "duckdb:///md:shop?motherduck_token=${ENV:MD}",
        "memory:",
    ],
)
def test_a_url_with_references_or_without_secrets_is_taken(url):
    refuse_literal(url)


@pytest.mark.parametrize("name", ["password", "user_password", "api_key", "token"])
def test_an_option_with_a_literal_secret_is_refused_and_a_reference_is_not(name):
    with pytest.raises(TidegateError) as caught:
        SourceSettings(name="shop", url="memory://", options={name: "hunter2"})
    assert name in caught.value.message
    assert "hunter2" not in str(caught.value)
    settings = SourceSettings("shop", "memory://", options={name: "${ENV:P}", "driver": "h2"})
    assert settings.options == {name: "${ENV:P}", "driver": "h2"}


def test_a_settings_file_with_a_literal_password_is_refused():
    with pytest.raises(TidegateError) as caught:
        load('{"sources": [{"name": "a", "url": "postgresql://u:hunter2@db/x"}]}')
    assert "hunter2" not in str(caught.value)


def test_references_are_resolved_when_asked(monkeypatch, tmp_path):
    monkeypatch.setenv("SHOP_PW", "p@ss/word")
    secret = tmp_path / "pw"
    secret.write_text("from file\n")
    assert resolve("postgresql://u:${ENV:SHOP_PW}@db/s") == "postgresql://u:p%40ss%2Fword@db/s"
    assert resolve(f"postgresql://u:${{FILE:{secret}}}@db/s") == "postgresql://u:from%20file@db/s"
    assert resolve("jdbc:x://db;password=${ENV:SHOP_PW}") == "jdbc:x://db;password=p@ss/word"
    assert resolve("sqlite:///a.db") == "sqlite:///a.db"


def test_a_reference_that_leads_nowhere_is_an_error_that_names_it(monkeypatch, tmp_path):
    monkeypatch.delenv("NO_SUCH", raising=False)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_bytes(b"x" * 70_000)
    for reference, name in (
        ("${ENV:NO_SUCH}", "NO_SUCH"),
        ("${FILE:/no/such/file}", "/no/such/file"),
        (f"${{FILE:{tmp_path}/binary}}", "UTF-8"),
        (f"${{FILE:{tmp_path}/large}}", "64 KiB"),
        ("${KEYRING:a}", "keyring's entry `a`"),
    ):
        with pytest.raises(TidegateError) as caught:
            resolve(f"postgresql://u:{reference}@db/s")
        assert caught.value.code is Code.SOURCE_URL
        assert name in caught.value.message


@pytest.mark.parametrize(
    ("statement", "dialect"),
    [
        ("CREATE USER bob PASSWORD 'hunter2'", "postgres"),
        ("CREATE USER bob ENCRYPTED PASSWORD E'hunter2' VALID UNTIL 'infinity'", "postgres"),
        ("ALTER ROLE bob PASSWORD $$hunter2$$", "postgres"),
        ("ALTER ROLE bob PASSWORD $x$it's hunter2$x$", "postgres"),
        ("CREATE USER bob PASSWORD 'hunter2", "postgres"),
        ("CREATE USER 'bob'@'%' IDENTIFIED BY 'hunter2'", "mysql"),
        ('CREATE USER bob IDENTIFIED BY "hunter2"', "mysql"),
        ("CREATE USER bob IDENTIFIED WITH caching_sha2_password AS 'hunter2'", "mysql"),
        ("SET PASSWORD FOR bob = PASSWORD('hunter2')", "mysql"),
        ("SET PASSWORD = 'it\\'s hunter2'", "mysql"),
        ("ALTER USER bob IDENTIFIED BY hunter2", "oracle"),
        ("CHANGE MASTER TO MASTER_HOST='h', MASTER_PASSWORD='hunter2'", "mysql"),
        ("CREATE SECRET s (TYPE s3, KEY_ID 'x', SECRET 'hunter2')", "duckdb"),
        ("SET s3_secret_access_key = 'hunter2'", "duckdb"),
        ("ATTACH 'postgresql://u:hunter2@db/x' AS y", "duckdb"),
        ("ATTACH 'x.db' AS y KEY 'hunter2'", "sqlite"),
        ("PRAGMA key = 'hunter2'", "sqlite"),
        ("PRAGMA main.rekey = hunter2", "sqlite"),
        ("SELECT dblink('host=db password=hunter2', 'SELECT 1')", "postgres"),
        ("INSERT INTO users (name, password) VALUES ('bob', 'hunter2')", ""),
        ('INSERT INTO users (name, password) VALUES ("bob", "hunter2")', "mysql"),
        ("SELECT crypt('hunter2', gen_salt('bf'))", "postgres"),
        ("SELECT 1 /* don't */, 'password', 'hunter2'", ""),
        ("SELECT 'https://u:hunter2@host/path'", ""),
        ("SELECT 'https://u:hunter2", ""),
    ],
)
def test_a_statement_is_recorded_without_its_secret(statement, dialect):
    recorded = redact(statement, dialect)
    assert "hunter2" not in recorded
    assert "***" in recorded


def test_tokens_are_known_by_their_shape():
    token = "tg_" + "aB3-_" * 8 + "xyz"
    for secret in (token, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln", "AKIAIOSFODNN7EXAMPLE"):
        assert secret not in redact(f"SELECT '{secret}'", "")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT name FROM customers WHERE country = 'DE' AND note LIKE '%sky%'",
        "SELECT 'http://example.org/a?b=c'",
        "SELECT * FROM tasks WHERE key = 'a' -- by key",
        "CREATE TABLE t (id int, FOREIGN KEY (id) REFERENCES s (id))",
    ],
)
def test_an_ordinary_statement_is_recorded_as_it_is(statement):
    assert redact(statement, "") == statement
    assert redact_text(statement) == statement


def test_identifiers_and_placeholders_stay_readable():
    assert (
        redact('SELECT "id" FROM "users" WHERE "password" = $1', "postgres")
        == 'SELECT "id" FROM "users" WHERE "password" = $1'
    )
    assert redact("UPDATE u SET password = 'x' WHERE id = 3", "") == (
        "UPDATE u SET password = '***' WHERE id = 3"
    )


def test_what_utf8_cannot_hold_is_replaced():
    assert redact("SELECT '\udcff ä'", "") == "SELECT '? ä'"


def test_long_statements_are_redacted_too():
    assert "hunter2" not in redact("SELECT 1," * 1000 + " password = 'hunter2'", "")
