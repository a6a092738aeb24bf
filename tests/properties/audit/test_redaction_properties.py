"""Whatever the secret, it does not survive in a statement that says it is one."""

import string

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.sql.redaction import redact_statement as redact

ORDINARY = settings(database=None, deadline=None)
TEMPLATES = (
    ("CREATE USER bob PASSWORD {}", "'"),
    ("CREATE USER bob IDENTIFIED BY {} REQUIRE SSL", "'"),
    ("INSERT INTO users (name, passwd) VALUES ('bob', {}), ('eve', {})", "'"),
    ("UPDATE tokens SET api_key = {} WHERE note = 'x'", "'"),
    ("SELECT pgp_sym_encrypt(note, {}) FROM notes -- don't", "'"),
    ("CREATE USER bob IDENTIFIED BY {}", '"'),
    ("SELECT hmac(a, {}, 'sha256')", "'"),
)
DIALECTS = ("", "sqlite", "postgres", "mysql", "duckdb")
secrets = st.text(string.ascii_letters + string.digits + " ()=;,:@/*-#\\$\n", min_size=1).map(
    lambda text: f"Zq9{text}9qZ"
)


@ORDINARY
@given(st.sampled_from(TEMPLATES), secrets, st.sampled_from(DIALECTS))
def test_a_secret_in_quotes_is_left_out(template, secret, dialect):
    pattern, quote = template
    statement = pattern.replace("{}", quote + secret.replace(quote, quote * 2) + quote)
    recorded = redact(statement, dialect)
    assert "Zq9" not in recorded
    assert "9qZ" not in recorded


@ORDINARY
@given(st.sampled_from(TEMPLATES), secrets, st.sampled_from(DIALECTS), st.data())
def test_a_secret_that_was_cut_is_left_out(template, secret, dialect, data):
    pattern, quote = template
    statement = pattern.replace("{}", quote + secret + quote)
    cut = data.draw(st.integers(0, len(statement)))
    assert "Zq9" not in redact(statement[:cut], dialect)


@ORDINARY
@given(st.text(max_size=300), st.sampled_from(DIALECTS))
def test_any_text_can_be_recorded_and_recording_twice_changes_nothing_more(text, dialect):
    recorded = redact(text, dialect)
    recorded.encode()
    assert redact(recorded, dialect) == recorded
