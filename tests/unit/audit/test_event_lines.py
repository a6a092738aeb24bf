"""What an event's line says: enough to find the statement, and no secrets."""

import hashlib
import json

import pytest

from tidegate.audit.event import (
    MAX_ARGUMENTS,
    MAX_SHORT_TEXT_CHARS,
    MAX_STATEMENT_CHARS,
    Event,
    encode,
)
from tidegate.sql.language import LANGUAGE as SQL


def line(**fields):
    event = Event(**{"call_id": "c1", "phase": "outcome", "actor": "tok_1", **fields})
    return json.loads(encode(event, 7, 1_700_000_000.25))


def digest(text):
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_a_line_says_what_is_known_and_nothing_else():
    assert line(rows=0, statement="SELECT 'ä'", source="shop") == {
        "seq": 7,
        "time": "2023-11-14T22:13:20.250000Z",
        "phase": "outcome",
        "call_id": "c1",
        "actor": "tok_1",
        "source": "shop",
        "digest": digest("SELECT 'ä'"),
        "statement": "SELECT 'ä'",
        "rows": 0,
    }


def test_every_field_of_an_event_reaches_the_line():
    fields = {
        "actor_name": "claude", "client": "cc/1", "surface": "core", "tool": "run",
        "source": "shop", "request": "query", "effect": "read", "verdict": "allow", "rule": "r",
        "code": "sql.failed", "statement": "SELECT 1", "rows": 1, "bytes": 2, "elapsed_ms": 1.5,
        "error": "no such table", "approval": "ap_1", "statement_class": "select",
        "arguments": {"table": "items"},
    }  # fmt: skip
    written = line(language=SQL, dialect="sqlite", **fields)
    assert {name: written[name] for name in fields} == fields


def test_a_statement_loses_its_secrets_and_the_digest_does_not_betray_them():
    written = line(
        statement="CREATE USER b PASSWORD 'hunter2'", language=SQL, dialect="postgres",
        error='near "hunter2"',
    )  # fmt: skip
    assert written["statement"] == "CREATE USER b PASSWORD '***'"
    assert written["digest"] == digest("CREATE USER b PASSWORD '***'")
    assert "error" not in written


def test_a_statement_in_an_unknown_language_loses_all_that_is_in_quotes_with_a_secret():
    written = line(statement="""PUT password "hunter2" 'hunter2' $$hunter2$$""")
    assert "hunter2" not in written["statement"]


def test_arguments_are_short_and_without_secrets():
    written = line(
        arguments={
            "password": "hunter2", "row": ["password", "hunter2"], "options": {"token": "hunter2"},
            "url": "http://u:hunter2@h/x", "text": "x" * 5_000, "id": 7, "at": None,
        }
    )["arguments"]  # fmt: skip
    assert "hunter2" not in json.dumps(written)
    assert list(written) == ["password", "row", "options", "url", "text", "id", "at"]
    assert (written["id"], written["at"], len(written["text"])) == (
        "7",
        "null",
        MAX_SHORT_TEXT_CHARS,
    )


def test_a_caller_cannot_fill_the_record_with_arguments():
    written = line(arguments={f"a{number}": number for number in range(1_000)})
    assert len(written["arguments"]) == MAX_ARGUMENTS


def test_an_error_loses_its_secrets():
    assert "hunter2" not in line(error="cannot reach postgresql://u:hunter2@db/x")["error"]


@pytest.mark.parametrize("length", [2_049, MAX_STATEMENT_CHARS, MAX_STATEMENT_CHARS + 1, 100_000])
def test_a_long_statement_is_cut_but_its_digest_is_whole(length):
    text = "SELECT 1".ljust(length, "x")
    written = line(statement=text)
    assert written["statement"] == text[:MAX_STATEMENT_CHARS]
    assert written["digest"] == digest(text)
    assert written.get("length") == (length if length > MAX_STATEMENT_CHARS else None)


def test_a_secret_that_the_cut_falls_into_is_not_recorded():
    text = "SELECT " + "1," * 2_000 + " password = 'hunter2" + "x" * 5_000
    assert "hunter2" not in line(statement=text)["statement"]


@pytest.mark.parametrize("language", [SQL, None])
@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "duckdb"])
def test_what_is_cut_off_says_too_that_a_literal_is_a_secret(language, dialect):
    for length in range(MAX_STATEMENT_CHARS - 60, MAX_STATEMENT_CHARS + 40, 7):
        head = "SELECT 'hunter2-0123'"
        text = head + ", 1" * ((length - len(head)) // 3) + " AS password FROM t"
        written = line(statement=text, language=language, dialect=dialect)
        assert "hunter2" not in written["statement"]
        assert written["digest"] == digest(written["statement"])
        assert written.get("length") == (len(text) if len(text) > MAX_STATEMENT_CHARS else None)


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "duckdb"])
def test_no_part_of_a_secret_is_left_wherever_the_cut_falls(dialect):
    secret = "hunter2-very-secret-0123456789"
    for fill in range(MAX_STATEMENT_CHARS - 60, MAX_STATEMENT_CHARS + 10):
        ones = "1," * (fill // 2)
        for text in (
            f"SELECT {ones} '{secret}' AS password FROM t",
            f"SELECT '{'x' * fill}' FROM t WHERE password = '{secret}'",
            f"SELECT {ones} 'postgres://u:{secret}@host/db'",
            f"CREATE USER a IDENTIFIED BY '{secret}' -- {ones}",
        ):
            written = line(statement=text, language=SQL, dialect=dialect)["statement"]
            assert secret[:8] not in written, text[:40]


def test_what_callers_choose_is_cut_to_size_and_made_fit_for_utf8():
    written = line(client="c" * 1_000, tool="\udcff", source="s" * 1_000, statement="\udcff")
    assert written["client"] == "c" * 256
    assert written["source"] == "s" * 256
    assert (written["tool"], written["statement"]) == ("?", "?")


def test_a_line_has_no_line_break():
    event = Event(call_id="c", phase="refusal", actor="a", client="a\nb", statement="SELECT\r\n1")
    assert b"\n" not in encode(event, 1, 0.0)
    assert b"\r" not in encode(event, 1, 0.0)


@pytest.mark.parametrize("field", ["client", "tool", "source", "address"])
def test_short_text_that_cannot_be_encoded_is_written_without_what_cannot(field):
    assert line(**{field: "a\ud800"})[field] == "a?"
    assert line(**{field: "\u00e9"})[field] == "\u00e9"
