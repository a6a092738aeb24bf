"""Secrets where statements hold them: none is in what is recorded of the statement."""

from __future__ import annotations

import pytest

from tidegate.audit.event import Event, encode
from tidegate.secrets.redaction import MASK
from tidegate.sql.language import LANGUAGE as SQL
from tidegate.sql.redaction import redact_statement as redact

SECRET = "hunter2Zq9Xw4Lk8Vn1"
FORMS = [
    ("postgres", f"UPDATE users SET pass = '{SECRET}'"),
    ("postgres", f"INSERT INTO users (login, passcode) VALUES ('ada', '{SECRET}')"),
    ("postgres", f"INSERT INTO settings (name, value) VALUES ('SMTP_PASS', '{SECRET}')"),
    ("postgres", f"SELECT set_config('app.jwt', '{SECRET}', false)"),
    ("postgres", f"UPDATE hooks SET url = 'github_pat_{SECRET}'"),
    ("postgres", f"UPDATE hooks SET url = 'npm_{SECRET}'"),
    ("postgres", f"UPDATE hooks SET url = 'AIza{SECRET}'"),
    ("mysql", f'CREATE TABLE f (a INT) COMMENT=\'user "u", pass "{SECRET}"\''),
    ("duckdb", f"SET azure_storage_connection_string = 'AccountName=a;AccountKey={SECRET}=='"),
    ("duckdb", f"FROM read_parquet('azure://c/x.parquet?sv=2020&sig={SECRET}')"),
    ("duckdb", f"FROM 'https://h/x?X-Amz-Signature={SECRET}&v=1'"),
    ("duckdb", f"FROM 'https://h/x?Signature={SECRET}'"),
    ("duckdb", f"FROM 'https://h/x?v=1&subscription-key={SECRET}'"),
]


@pytest.mark.parametrize(("dialect", "text"), FORMS)
def test_a_secret_in_a_statement_is_in_no_record_of_it(dialect, text):
    assert SECRET in text
    assert SECRET not in redact(text, dialect)
    event = Event(
        call_id="c", phase="refusal", actor="a", statement=text, language=SQL,
        dialect=dialect, error=f"syntax error near {text}",
    )  # fmt: skip
    assert SECRET.encode() not in encode(event, 1, 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name FROM compass WHERE passenger = 'Ada' AND bypass = 'no'",
        "SELECT 'https://h/x?page=2&keys=3'",
        "SELECT * FROM signatures WHERE author = 'Ada'",
    ],
)
def test_words_that_only_look_like_it_cost_no_literal(text):
    assert redact(text, "postgres") == text


def test_what_is_left_of_a_signed_address_says_where_it_led():
    assert redact(f"FROM 'https://h/x?v=1&sig={SECRET}&w=2'", "duckdb") == (
        f"FROM 'https://h/x?v=1&sig={MASK}&w=2'"
    )
