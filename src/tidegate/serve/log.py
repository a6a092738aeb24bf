"""The log of a server, on stderr."""

from __future__ import annotations

import logging
import time


class LogFormatter(logging.Formatter):
    """One line a record: UTC time, level, logger, the call id if the record has one (`call` in
    `extra`), message. A traceback follows on lines of its own."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s%(which)s %(message)s")
        self.datefmt = "%Y-%m-%dT%H:%M:%S"
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        call = getattr(record, "call", None) or _noted_call(record)
        record.which = "" if call is None else f" call={call}"
        return super().format(record)


def _noted_call(record: logging.LogRecord) -> str | None:
    """The call that the exception of a record belongs to; the gateway notes it there."""
    error = record.exc_info[1] if record.exc_info else None
    notes: list[str] = getattr(error, "__notes__", [])
    return next((note[5:] for note in notes if note.startswith("call=")), None)


def log_to_stderr() -> None:
    """Write the server's log, from level WARNING on, to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter())
    root = logging.getLogger("tidegate")
    root.addHandler(handler)
    root.propagate = False
