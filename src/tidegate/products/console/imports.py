"""Imports of the Data page: a held file, how it is read, where its rows go, and how that went.

An import belongs to the session that sent the file. Nothing of it is on the server after that.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, structs

from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Operators, SignedIn
from tidegate.imports.column_types import type_of
from tidegate.imports.delimited import shown
from tidegate.imports.guesses import (
    WholeColumn,
    columns_of,
    guess_kind,
    names_of,
    read_columns,
)
from tidegate.imports.model import Kind, Reading, Record, Unreadable, Value
from tidegate.model.cancellation import Cancellation
from tidegate.products.console.data_calls import Caller, DataCalls, Place
from tidegate.products.console.import_files import MOST_PART, HeldFile, file_gone
from tidegate.products.console.import_runs import Check, ImportRun
from tidegate.products.console.result_quota import ResultQuota
from tidegate.results.column_kinds import read_type
from tidegate.sql.table_forms.model import ColumnForm, TableForm
from tidegate.store.calls import read_state

MOST_OF_SESSION = 4
MOST_READ = 2
"""Imports of a session that are held, and files that are read at once by all."""
SHOWN_ROWS = 50
_SHOWN = 200
SWEEP_S = 15.0
_KINDS: dict[str, Kind] = {
    "integer": "integer", "decimal": "decimal", "float": "float", "boolean": "boolean",
    "date": "date", "time": "time", "timestamp": "timestamp", "timestamp_tz": "timestamp_tz",
    "bytes": "bytes",
}  # fmt: skip
Phase = Literal["receiving", "reading", "ready", "unreadable"]


class NewImport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `imports`."""

    name: Annotated[str, Meta(max_length=255)]
    size: Annotated[int, Meta(ge=0)]


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `imports/ID/part`: the next bytes, in Base64."""

    at: Annotated[int, Meta(ge=0)]
    data: bytes


PART_LIMIT = MOST_PART * 4 // 3 + 1_024
"""Bytes of a body with a part."""


class Import:
    """A file on its way into a table."""

    def __init__(self, file: HeldFile, caller: Caller, now: float) -> None:
        self.id = secrets.token_urlsafe(12)
        self.file = file
        self.caller = caller
        self.started_at = now
        self.phase: Phase = "receiving"
        self.message = ""
        self.reading = Reading()
        self.names: list[str] = []
        self.kinds: list[Kind] = []
        self.first: list[Record] = []
        self.whole: list[WholeColumn] | None = None
        """The columns by all rows, once these were read."""
        self.run: ImportRun | None = None
        self.cancellation = Cancellation()

    @property
    def session(self) -> str:
        return self.caller.signed_in.session.id

    @property
    def is_busy(self) -> bool:
        return self.phase == "reading" or (self.run is not None and not self.run.is_over)

    def fields(self) -> dict[str, Any]:
        """The import as JSON."""
        file, guess = self.file, self.file.guess
        return {
            "id": self.id,
            "name": file.name,
            "size": file.size,
            "received": file.received,
            "phase": self.phase,
            "message": self.message,
            "kind": file.kind,
            "digest": file.digest,
            "reading": msgspec.to_builtins(self.reading),
            "is_order_sure": guess.is_order_sure,
            "note": guess.note,
            "sheets": file.sheets,
            "columns": [
                {"name": name, "kind": kind}
                for name, kind in zip(self.names, self.kinds, strict=True)
            ],
            "rows": [
                {
                    "line": record.line,
                    "problem": record.problem,
                    "values": [_shown(value) for value in record.values],
                }
                for record in self.first
            ],
            "run": None if self.run is None else self.run.fields(),
        }


class Imports:
    """The imports of one server."""

    def __init__(
        self,
        calls: DataCalls,
        operators: Operators,
        quota: ResultQuota,
        runs: Callable[[Import, Caller], ImportRun],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`runs` makes what takes the rows of an import into a table."""
        self._calls = calls
        self._operators = operators
        self._quota = quota
        self._runs = runs
        self._clock = clock
        self._imports: dict[str, Import] = {}
        self._room = asyncio.Semaphore(MOST_READ)
        self._sweeping: asyncio.Task[None] | None = None

    async def begin(self, body: NewImport, caller: Caller) -> dict[str, Any]:
        """Begin to take a file. Raises: TidegateError LIMIT_RATE, LIMIT_BYTES, STATE_FAILED."""
        own = [
            each for each in self._imports.values() if each.session == caller.signed_in.session.id
        ]
        idle = [each for each in own if not each.is_busy]
        for old in idle[: max(0, len(own) - MOST_OF_SESSION + 1)]:
            self._forget(old)
        if len(own) - len(idle) >= MOST_OF_SESSION:
            raise TidegateError(
                Code.LIMIT_RATE,
                f"{MOST_OF_SESSION} of your imports are under way.",
                hint="Wait for one of them, or cancel it.",
            )
        made = Import(HeldFile(self._quota, body.name, body.size), caller, self._clock())
        self._imports[made.id] = made
        self._sweep_soon()
        return made.fields()

    def find(self, id: str, caller: Caller) -> Import:
        """The import of that id, if this session began it. Raises: TidegateError RESULT_GONE."""
        found, signed_in = self._imports.get(id), caller.signed_in
        if found is None or found.session != signed_in.session.id:
            raise file_gone()
        if found.file.gone or signed_in.operator.roles != found.caller.signed_in.operator.roles:
            self._forget(found)
            raise file_gone()
        return found

    async def add(self, id: str, body: Part, caller: Caller) -> dict[str, Any]:
        """Take the next part; with the last one the file is read. Raises: TidegateError."""
        found = self.find(id, caller)
        if found.phase != "receiving":
            raise TidegateError(Code.ARGUMENT_INVALID, "The whole file is here")
        await asyncio.to_thread(found.file.add, body.at, body.data)
        if found.file.is_whole:
            await self._reading(found, partial(self._recognize, found))
        return found.fields()

    async def read(self, id: str, reading: Reading, caller: Caller) -> dict[str, Any]:
        """Read the file in another way. Raises: TidegateError ARGUMENT_INVALID."""
        found = self.find(id, caller)
        if found.phase not in ("ready", "unreadable") or found.is_busy:
            raise TidegateError(Code.ARGUMENT_INVALID, "The file is not there, or is being read")
        await self._reading(found, partial(self._read, found, reading))
        return found.fields()

    async def _reading(self, found: Import, work: Callable[[], Awaitable[None]]) -> None:
        found.phase, found.message, found.run = "reading", "", None
        found.file.over = False
        try:
            async with self._room:  # a process that reads a file may take much memory
                await work()
            found.phase = "ready"
        except Unreadable as error:
            found.phase = "unreadable"
            found.message = f"The file cannot be read: {error}."
        except TidegateError as error:
            found.phase, found.message = "unreadable", error.without_secrets().message
        finally:
            found.file.over = True
            if found.phase == "reading":
                found.phase = "unreadable"

    async def _recognize(self, found: Import) -> None:
        await found.file.recognize()
        found.reading = found.file.guess.reading
        await asyncio.to_thread(self._look, found)

    async def _read(self, found: Import, reading: Reading) -> None:
        file = found.file
        if reading.sheet and reading.sheet not in file.sheets:
            raise Unreadable("it has no such sheet")
        if file.kind == "workbook" and reading.sheet != found.reading.sheet:
            await file.extract(reading.sheet)
            reading = file.guess.reading
        if file.kind != "text":
            reading = structs.replace(reading, encoding="utf-8", delimiter=",", decimal=".")
        found.reading = reading
        await asyncio.to_thread(self._look, found)

    def _look(self, found: Import) -> None:
        """Read the first rows, and what the columns are."""
        reading, file = found.reading, found.file
        own = file.records(reading).names
        rows = file.sample(reading)
        good = [row for row in rows if not row.problem]
        has_header = own is None and reading.header
        body = good[1:] if has_header else good
        columns = columns_of(body)
        width = max(len(columns), len(good[0].values) if good else 0)
        head: list[Value] = list(own or (good[0].values if has_header and good else ()))
        found.names = names_of(head, width)
        columns += [[] for _ in range(width - len(columns))]
        found.whole = None
        if file.types:
            found.kinds = [_KINDS.get(read_type(each)[0], "text") for each in file.types]
        else:
            found.kinds = [guess_kind(values, reading) for values in columns]
        found.first = (rows[1:] if has_header and rows else rows)[:SHOWN_ROWS]

    async def form(self, id: str, place: Place, caller: Caller) -> dict[str, Any]:
        """The form of a new table for the file, by all of its values. Raises: TidegateError
        POLICY_SOURCE, as `find`."""
        found = self.find(id, caller)
        source = self._calls.source(caller, place.source)
        stem = found.file.name.rpartition(".")[0] or found.file.name
        found.file.over = False
        try:
            columns = await asyncio.to_thread(_whole_columns, found)
        finally:
            found.file.over = not found.is_busy
        fields = [
            ColumnForm(name, type_of(column.kind, column.extent, source.dialect))
            for name, column in zip(found.names, columns, strict=True)
        ]
        form = TableForm(stem[:60], place.schema or "", tuple(fields))
        return {"form": msgspec.to_builtins(form)}

    async def check(self, id: str, body: Check, caller: Caller) -> dict[str, Any]:
        """Begin to read all rows for a table. Raises: TidegateError, as the gate."""
        found = self._ready(id, caller)
        before, run = found.run, self._runs(found, caller)
        found.run = run  # from now on the file is busy
        try:
            await run.begin(body)
        except BaseException:
            found.run = before
            if self._imports.get(id) is not found:
                found.file.close()
            raise
        return found.fields()

    async def submit(self, id: str, reason: str, caller: Caller) -> dict[str, Any]:
        """Begin to add the rows that were checked. Raises: TidegateError ARGUMENT_INVALID."""
        found = self._ready(id, caller)
        if found.run is None or not found.run.is_checked:
            raise TidegateError(Code.ARGUMENT_INVALID, "The rows are not checked, or have errors")
        found.run.submit(reason)
        return found.fields()

    def _ready(self, id: str, caller: Caller) -> Import:
        found = self.find(id, caller)
        if found.phase != "ready" or found.is_busy:
            raise TidegateError(Code.ARGUMENT_INVALID, "The file is not read, or is being imported")
        return found

    def cancel(self, id: str, caller: Caller) -> dict[str, Any]:
        """End what is under way."""
        found = self.find(id, caller)
        if found.run is not None:
            found.run.cancellation.cancel("a person cancelled it")
        return found.fields()

    def close(self, id: str, caller: Caller) -> None:
        """Let the file go, and end what is made of it."""
        self._forget(self.find(id, caller))

    def _forget(self, found: Import) -> None:
        if found.run is not None:
            found.run.cancellation.cancel("a person closed it")
            found.run.leave()
        else:
            found.file.close()
        self._imports.pop(found.id, None)

    def _sweep_soon(self) -> None:
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep())

    async def _sweep(self) -> None:
        """Let go what belongs to sessions that have ended, or whose operator has other roles."""
        while self._imports:
            await asyncio.sleep(SWEEP_S)
            with suppress(TidegateError):  # a state that cannot be read is read again
                live: dict[str, SignedIn] = await read_state(self._operators.live)
                for found in list(self._imports.values()):
                    now = live.get(found.session)
                    roles = found.caller.signed_in.operator.roles
                    if found.file.gone or now is None or now.operator.roles != roles:
                        self._forget(found)


def _whole_columns(found: Import) -> list[WholeColumn]:
    """The columns by all rows of the file: what the first ones look like need not hold for others.
    They are read once. Raises: TidegateError ARGUMENT_INVALID, RESULT_GONE."""
    if found.phase != "ready":
        raise TidegateError(Code.ARGUMENT_INVALID, "The file is not there, or is being read")
    if found.whole is not None:
        return found.whole
    reading, file = found.reading, found.file
    try:
        records = file.records(reading)
        rows = iter(records)
        if reading.header and records.names is None:
            next(rows, None)
        whole = read_columns(rows, reading, found.kinds, are_guessed=not file.types)
    except Unreadable as error:
        raise TidegateError(Code.ARGUMENT_INVALID, f"The file cannot be read: {error}.") from None
    found.whole, found.kinds = whole, [each.kind for each in whole]
    return whole


def _shown(value: Value) -> str | None:
    if value is None:
        return None
    text = f"x{value[: _SHOWN // 2].hex()}" if isinstance(value, bytes) else shown(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
