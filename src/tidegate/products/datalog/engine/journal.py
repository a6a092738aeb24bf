"""A file of the changes of a Datalog source, by which one can be taken back. Opt-in: the source's
option `journal` names it.

A line of JSON for each transaction: the call's id, the time, the actor, and the facts that it added
and retracted. It holds values of the database, so only its owner can read it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.paths import expand
from tidegate.system.private_files import open_file
from tidegate.typed_values import decode_json

MOST_JOURNALED = 256 * 1024 * 1024
"""Bytes of the report of a transaction that is kept."""


class Fact(msgspec.Struct, frozen=True):
    """One fact as Datalevin reports it: `added`, or retracted."""

    e: int
    a: str
    v: Any
    added: bool


class Record(msgspec.Struct, frozen=True):
    """One transaction; `time` is in Unix seconds."""

    id: str
    time: float
    actor: str
    facts: tuple[Fact, ...]


class _Report(msgspec.Struct):
    facts: tuple[Fact, ...] = msgspec.field(name="tx-data")


class Journal:
    """The file at a path, made when it is first written. Raises: TidegateError ARGUMENT_INVALID for
    a home directory that does not exist."""

    def __init__(self, path: str) -> None:
        self._path = expand(path).absolute()

    def check(self) -> None:
        """See that it can be written, before a change is made. Raises: TidegateError."""
        try:
            os.close(self._opened())
        except OSError as error:
            raise TidegateError(
                Code.STATE_FAILED,
                f"The journal {self._path} cannot be written: {error.strerror}. Nothing was"
                " changed.",
                hint="Correct the source's option `journal`.",
            ) from error

    def append(self, id: str, actor: str, report: bytes) -> None:
        """Keep what a transaction reported. Raises: TidegateError AUDIT_OUTCOME."""
        facts = decode_json(report, _Report).facts
        line = msgspec.json.encode(Record(id, time.time(), actor, facts)) + b"\n"
        try:
            handle = self._opened()
            try:
                written = os.write(handle, line)
            finally:
                os.close(handle)
            if written < len(line):
                raise OSError(0, "the disk is full")
        except OSError as error:
            raise TidegateError(
                Code.AUDIT_OUTCOME,
                f"The change took effect, and the journal {self._path} could not be written:"
                f" {error.strerror}.",
                hint="Look at the facts before you send it again.",
            ) from error

    def records(self) -> Iterator[Record]:
        """The records, oldest first; a line that was cut off is left out. Raises: TidegateError."""
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            raise TidegateError(
                Code.STATE_FAILED, f"The journal {self._path} cannot be read: {error.strerror}."
            ) from error
        for line in lines:
            try:
                yield decode_json(line, Record)
            except msgspec.MsgspecError:
                continue

    def _opened(self) -> int:
        return open_file(self._path, "append", follow=False)


def inverse(record: Record, types: Mapping[str, str]) -> list[list[Any]]:
    """The operations that take a transaction back, by the types of its attributes.

    Raises: TidegateError ARGUMENT_INVALID for a value of which it is not known what it was.
    """
    return [
        [":db/retract" if fact.added else ":db/add", fact.e, fact.a, exact(fact, types)]
        for fact in reversed(record.facts)
    ]


def exact(fact: Fact, types: Mapping[str, str]) -> Any:
    """The value of a fact as Datalevin takes it: a text that begins with a colon is a keyword
    unless it is marked."""
    if not (isinstance(fact.v, str) and fact.v.startswith(":")):
        return fact.v
    kind = types.get(fact.a, "any")
    if kind == "string":
        return {"~str": fact.v}
    if kind == "keyword":
        return fact.v
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"It is not known whether a value of {fact.a} was a text or a keyword, so the change is"
        " not taken back.",
    )
