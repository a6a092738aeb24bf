"""Lines of the server's log: one for each record, whatever is in it, and without secrets."""

from __future__ import annotations

import json
import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.serve.log import JsonFormatter, LogFormatter, status_line
from tidegate.tracing import CURRENT

SECRET = "postgresql://reader:hunter2@db.example/shop"


def record_of(message: str, *, call: str | None = None, fault: bool = False) -> logging.LogRecord:
    exc_info = None
    if fault:
        try:
            raise ValueError(f"no way to {SECRET}\nand more")
        except ValueError as error:
            error.add_note("call=c-9")
            exc_info = sys.exc_info()
    record = logging.LogRecord("tidegate.x", logging.ERROR, "", 0, "%s", (message,), exc_info)
    if call is not None:
        record.call = call
    return record


@given(st.text() | st.text("\n\r\x00\x1b\x85\u2028\ud800\"\\'", max_size=8))
def test_a_record_is_one_line_whatever_its_message_holds(message: str) -> None:
    line = JsonFormatter().format(record_of(message))
    assert line.splitlines() == [line]
    line.encode()
    assert json.loads(line)["logger"] == "tidegate.x"
    assert len(LogFormatter().format(record_of(message)).splitlines()) == 1


def test_json_has_time_level_call_and_message() -> None:
    found = json.loads(JsonFormatter().format(record_of("it failed", call="c-17")))
    time = found.pop("time")
    assert time.endswith("Z") and len(time) == len("2026-01-01T00:00:00.000Z")
    assert found == {
        "level": "ERROR", "logger": "tidegate.x", "message": "it failed", "call": "c-17",
    }  # fmt: skip


@pytest.mark.parametrize("formatter", [JsonFormatter(), LogFormatter()])
def test_neither_form_shows_the_password_of_a_url(formatter: logging.Formatter) -> None:
    shown = formatter.format(record_of(f"cannot open {SECRET}", fault=True))
    assert "hunter2" not in shown
    assert "db.example" in shown
    assert "ValueError" in shown


def test_a_fault_is_one_line_of_json_with_its_call() -> None:
    line = JsonFormatter().format(record_of("fault", fault=True))
    found = json.loads(line)
    assert "\n" not in line
    assert found["call"] == "c-9"
    assert found["traceback"].startswith("Traceback")


def test_a_status_line_is_one_of_the_log() -> None:
    found = json.loads(status_line("tidegate: serving core on http://127.0.0.1:1/mcp"))
    assert found["message"] == "serving core on http://127.0.0.1:1/mcp"
    assert (found["level"], found["logger"]) == ("INFO", "tidegate.serve")


class Served:
    """The trace of a request."""

    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    ended = False


def test_a_line_names_the_trace_of_the_request_that_is_served_and_no_other() -> None:
    trace = Served()
    token = CURRENT.set(trace)  # type: ignore[arg-type]
    try:
        assert json.loads(JsonFormatter().format(record_of("x")))["trace"] == trace.trace_id
        assert f" trace={trace.trace_id} x" in LogFormatter().format(record_of("x"))
        trace.ended = True
        assert "trace" not in json.loads(JsonFormatter().format(record_of("x")))
    finally:
        CURRENT.reset(token)
    assert "trace" not in LogFormatter().format(record_of("x"))
