"""The log of a server, on stderr: lines for people, or JSON for programs.

Whatever a caller sends, a record is one line, except for the traceback of a fault in the form for
people. What has the shape of a secret is left out of both.
"""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime

from tidegate.secrets.redaction import mask_shapes, mask_url_logins
from tidegate.tracing import current_trace

_ESCAPED = {
    **{code: f"\\x{code:02x}" for code in (*range(32), 127, *range(128, 160))},
    **{ord(each): repr(each)[1:-1] for each in "\n\r\t\u2028\u2029"},
}
"""What would end a line, or move a terminal's cursor, and what is written for it."""


class LogFormatter(logging.Formatter):
    """One line a record: UTC time, level, logger, the number of the worker if this process is one,
    the call id if the record has one (`call` in `extra`), the trace that is under way, message. A
    traceback follows on lines of its own."""

    def __init__(self, worker: int = 0) -> None:
        self._worker = f" worker={worker}" if worker else ""
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s%(which)s %(message)s")
        self.datefmt = "%Y-%m-%dT%H:%M:%S"
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:
        call = _call_of(record)
        trace = _trace_id()
        record.which = "".join(
            [
                self._worker,
                "" if call is None else f" call={call}",
                trace and f" trace={trace}",
            ]
        )
        record.message = record.message.translate(_ESCAPED)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        return _without_secrets(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `message`, `worker` if this process
    is one, `call` if the record has one, `trace` if one is under way, `traceback` of a fault."""

    def __init__(self, worker: int = 0) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _time_of(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": _without_secrets(record.getMessage()),
        }
        if self._worker:
            fields["worker"] = str(self._worker)
        call = _call_of(record)
        if call is not None:
            fields["call"] = call
        if trace := _trace_id():
            fields["trace"] = trace
        if record.exc_info:
            fields["traceback"] = _without_secrets(self.formatException(record.exc_info))
        return _line_of(fields)


def status_line(text: str, failed: bool = False) -> str:
    """What a server says of itself at its start, or why it `failed`, as a line of the log in
    JSON."""
    level = "ERROR" if failed else "INFO"
    said = {"time": _time_of(time.time()), "level": level, "logger": "tidegate.serve"}
    return _line_of({**said, "message": _without_secrets(text.removeprefix("tidegate: "))})


def log_to_stderr(*, as_json: bool = False, worker: int = 0) -> None:
    """Write the server's log, from level WARNING on, to stderr. As JSON the lines of libraries are
    in it, too, so that nothing else is written. `worker` is the number of this process, if it is
    one of several."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(worker) if as_json else LogFormatter(worker))
    root = logging.getLogger("tidegate")
    root.propagate = as_json
    if as_json:
        root = logging.getLogger()
        logging.captureWarnings(capture=True)
    root.addHandler(handler)


def _call_of(record: logging.LogRecord) -> str | None:
    """The call that a record belongs to, or its exception, where the gateway notes it."""
    given: str | None = getattr(record, "call", None)
    if given:
        return given
    error = record.exc_info[1] if record.exc_info else None
    notes: list[str] = getattr(error, "__notes__", [])
    return next((note[5:] for note in notes if note.startswith("call=")), None)


def _trace_id() -> str:
    """The trace of the request that is being served where the record is made."""
    trace = current_trace()
    return "" if trace is None else trace.trace_id


def _time_of(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")


def _line_of(fields: dict[str, str]) -> str:
    """In ASCII, so that no reader takes U+0085 or U+2028 for the end of a line. Lone surrogates,
    which no JSON may hold, become question marks."""
    safe = {name: text.encode("utf-8", "replace").decode() for name, text in fields.items()}
    return json.dumps(safe, separators=(",", ":"))


def _without_secrets(text: str) -> str:
    return mask_url_logins(mask_shapes(text))
