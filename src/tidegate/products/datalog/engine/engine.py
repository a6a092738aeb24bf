"""A Datalevin directory or a database of a Datalevin server as an engine.

The library runs in a JVM of its own (`workers.py`). What a request needs open is opened there when
it comes, so nothing is lost with a worker but what it was doing.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tidegate.engines.api import INSPECT_S, Capabilities, Cursor
from tidegate.engines.common.errors import closed
from tidegate.engines.common.permit_checks import check_cancelled, describe_of, query_of
from tidegate.engines.common.renewed_login import RenewedLogin
from tidegate.engines.common.roles import refuse_identity
from tidegate.engines.registry import resolve_options
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Explain, Query
from tidegate.model.results import Document, Limits
from tidegate.model.schema import Counts, Databases, Ddl, Description, Status
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.products.datalog.engine.catalog import Attribute, catalog_of
from tidegate.products.datalog.engine.cursor import Table, TableCursor
from tidegate.products.datalog.engine.directory import (
    DATA,
    check_directory,
    held_for_change,
    marks_of,
)
from tidegate.products.datalog.engine.dry_run import LIMITS, try_change
from tidegate.products.datalog.engine.journal import MOST_JOURNALED, Journal
from tidegate.products.datalog.engine.library import find_library
from tidegate.products.datalog.engine.private_copies import (
    PrivateCopies,
    give_back_copies,
    most_mb_of,
    take_copies,
)
from tidegate.products.datalog.engine.process import Answer
from tidegate.products.datalog.engine.url import Place, place_of
from tidegate.products.datalog.engine.workers import HEAP, Worker, workers
from tidegate.products.datalog.language.options import check_options
from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest, DatalogTarget
from tidegate.typed_values import decode_json

CONNECT_S = 10.0
"""How long a remote server may take to answer when a source is opened."""

REMOTE_SCHEMA_S = 5.0
"""How long a server's schema is taken for unchanged."""

_DATABASE = DatalogTarget("database")

_CLOSES = frozenset(
    {
        DatalogOperation.CLOSE_DATABASE,
        DatalogOperation.CLOSE_KV,
        DatalogOperation.CLOSE_SEARCH_INDEX,
        DatalogOperation.CLOSE_VECTOR_INDEX,
    }
)


class LibraryCall(NamedTuple):
    """One call of the library, which a worker makes.

    `operation` is a name that the worker knows, `target` what is opened for it, and `arguments` its
    own, by their names. The answer has `most` items at most. `changes`: it writes, so it is not
    made twice. `create`: it may make what it opens.
    """

    operation: str
    target: DatalogTarget
    arguments: dict[str, Any]
    most: int
    changes: bool = False
    create: bool = False


class DatalevinEngine:
    """One source. Callers share it, and its worker answers several at once."""

    capabilities = Capabilities(
        transactions=True,
        schemas=False,
        explains=True,
        explains_changes=False,
        explains_as_json=False,
        dry_runs=True,
        foreign_keys=False,
        primary_keys=False,
        max_concurrency=8,
    )

    def __init__(
        self,
        login: RenewedLogin[Place],
        version: str,
        worker: Worker,
        *,
        writable: bool,
        journal: Journal | None = None,
        copies: PrivateCopies | None = None,
    ) -> None:
        self._login = login
        self._place = login.target
        self._journal = journal
        self._copies = copies
        self._version = version
        self._worker = worker
        self._writable = writable
        self._changing = asyncio.Lock()
        self._marks: tuple[int, ...] | None = None
        self._changes = 0
        self._closed = False

    @classmethod
    async def open(cls, source: Source) -> DatalevinEngine:
        options = resolve_options(source)
        login = RenewedLogin(source, lambda source: place_of(source.url))
        place = login.target
        copy_mb = _copy_mb(options.get("private_copy_mb"), place, writable=source.writable)
        library = await asyncio.to_thread(find_library, options.get("java"))
        if place.is_remote:
            await _connectable(place)
        elif not source.writable or await asyncio.to_thread(Path(place.name).exists):
            await _check(place.name, library.version, creates=source.writable)
        worker = workers().take(library, options.get("heap", HEAP), place)
        engine = cls(
            login,
            library.version,
            worker,
            writable=source.writable,
            journal=Journal(options["journal"]) if "journal" in options else None,
            copies=take_copies(place, worker, copy_mb) if copy_mb is not None else None,
        )
        try:
            await worker.start()
        except BaseException:
            await engine.close()
            raise
        return engine

    @property
    def status(self) -> Status:
        name = self._place.database or Path(self._place.name).name
        return Status(name, None, f"Datalevin {self._version}")

    async def inspect(
        self, statement: Statement, judgement: Judgement, timeout_s: float = INSPECT_S
    ) -> Judgement | None:
        """None: the worker refuses functions by itself, and has no opinion without running."""
        self._check_open()
        return None

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor | Document:
        refuse_identity(permit)
        self._check_open()
        check_cancelled(cancellation)
        if isinstance(permit.request, DatalogRequest):
            return await self._operate(permit, permit.request, cancellation)
        request, judgement = query_of(permit)
        if judgement.effect is not Effect.READ:
            raise TidegateError(
                Code.POLICY_READ_ONLY,
                judgement.reason or "A query only reads.",
                hint=judgement.hint,
            )
        if isinstance(request, Explain):
            answer = await self._query("explain", request, permit, cancellation, 1)
            text = msgspec.json.decode(answer.result, type=str)
            return TableCursor(Table(["plan"], [[line] for line in text.splitlines()], 0))
        wanted = permit.limits.max_rows + request.offset + 1
        answer = await self._query("table", request, permit, cancellation, wanted)
        return TableCursor(decode_json(answer.result, Table))

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        """What a change would do, by reads alone."""
        refuse_identity(permit)
        self._check_open()
        check_cancelled(cancellation)
        request = permit.request
        if not isinstance(request, DatalogRequest):
            raise TidegateError(Code.UNSUPPORTED, "A query changes nothing.")
        target = _checked(request)

        async def read(operation: str, arguments: dict[str, Any]) -> bytes:
            call = LibraryCall(operation, target, arguments, permit.limits.max_rows)
            return bytes((await self._ask(call, LIMITS, cancellation)).result)

        return await try_change(request, read)

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        refuse_identity(permit)
        request = describe_of(permit)
        self._check_open()
        check_cancelled(cancellation)
        name = self.status.database
        if request.aspect == "databases":
            return Databases((name,))
        version = await self.schema_version()
        known = await self._attributes(permit, cancellation)
        attributes = decode_json(known, list[Attribute])
        catalog = catalog_of(attributes, name, version)
        if request.table is not None:
            tables = tuple([each for each in catalog.tables if each.name == request.table])
            if not tables:
                raise TidegateError(
                    Code.TABLE_UNKNOWN, f"There is no namespace `{request.table[:120]}`."
                )
            catalog = msgspec.structs.replace(catalog, tables=tables)
        if request.aspect == "catalog":
            return catalog
        if request.aspect == "counts":
            return Counts({("", each.name): each.approximate_rows or 0 for each in catalog.tables})
        shown = [
            f"{member.attribute} {msgspec.json.encode(member.properties).decode()}"
            for member in attributes
        ]
        return Ddl("\n".join(shown))

    async def schema_version(self) -> str:
        """Another one after each change of ours, and once a file has changed. A server's database
        may change at any time, so its schema is read again every few seconds."""
        self._check_open()
        if self._place.is_remote:
            return f"{self._changes}-{time.monotonic() // REMOTE_SCHEMA_S:.0f}"
        try:
            changed = (await asyncio.to_thread((Path(self._place.name) / DATA).stat)).st_mtime_ns
        except OSError:
            changed = 0
        return f"{self._changes}-{changed}"

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._copies is not None:
            await give_back_copies(self._place, self._worker, self._copies)
        await workers().give_back(self._worker, self._place)

    async def _operate(
        self, permit: Permit, request: DatalogRequest, cancellation: Cancellation
    ) -> Document:
        """Perform an operation of the closed list. Raises: TidegateError."""
        if permit.judgement is None or permit.effect < permit.judgement.effect:
            raise TidegateError(Code.INTERNAL, "The permit is for another operation than this one.")
        if request.writes and (permit.effect < Effect.WRITE or not self._writable):
            raise TidegateError(
                Code.POLICY_READ_ONLY, f"The operation {request.operation.value} changes data."
            )
        target = _checked(request)
        if request.operation in _CLOSES:
            return Document(b"true")
        arguments = request.arguments
        if "opts" in arguments:
            opts = check_options(request.operation.value, arguments["opts"])
            arguments = {**arguments, "opts": opts}
        journal = self._journal if request.operation is DatalogOperation.TRANSACT else None
        limits = permit.limits
        if journal is not None:
            await asyncio.to_thread(journal.check)
            limits = msgspec.structs.replace(limits, max_bytes=MOST_JOURNALED)
        call = LibraryCall(
            request.operation.value,
            target,
            arguments,
            request.max_items,
            changes=request.writes,
            create=request.create or request.operation is DatalogOperation.LOAD,
        )
        answer = await self._ask(call, limits, cancellation)
        if journal is not None:
            report = bytes(answer.result)
            await asyncio.to_thread(journal.append, permit.call_id, permit.actor.id, report)
        affected = 1 if request.writes else 0
        return Document(
            bytes(answer.result),
            items=answer.items,
            affected=affected,
            corrected=answer.corrected,
        )

    async def _attributes(self, permit: Permit, cancellation: Cancellation) -> bytes:
        """The attributes of the database as JSON: none if the directory holds a store, or if it is
        yet to be made by a source that may be written. Raises: TidegateError."""
        try:
            call = LibraryCall("catalog", _DATABASE, {}, 0)
            answer = await self._ask(call, permit.limits, cancellation)
        except TidegateError as error:
            absent = error.details.get("absent")
            if absent == "database" or (absent == "directory" and self._writable):
                return b"[]"
            raise
        return bytes(answer.result)

    async def _query(
        self,
        operation: str,
        request: Query | Explain,
        permit: Permit,
        cancellation: Cancellation,
        most: int,
    ) -> Answer:
        arguments = {
            "query": request.statement.text,
            "inputs": list(request.statement.params or ()),
        }
        call = LibraryCall(operation, _DATABASE, arguments, most)
        return await self._ask(call, permit.limits, cancellation)

    async def _ask(self, call: LibraryCall, limits: Limits, cancellation: Cancellation) -> Answer:
        target = call.target
        await self._check_place(creates=call.create)
        request = {
            "operation": call.operation,
            "place": self._place.name,
            "target": {
                "kind": target.kind,
                "options": target.options,
                "client": target.client,
            },
            "arguments": call.arguments,
            # What writes to a DBI may make it; a read never does.
            "create": call.create or call.operation == DatalogOperation.KV_TRANSACT.value,
            "writes?": call.changes,
            "most": call.most,
            "bytes": limits.max_bytes,
        }
        timeout_s = limits.timeout_s
        if self._copies is not None and not call.changes:
            async with self._copies.reading(timeout_s) as copy:
                request["place"] = copy.name
                return await self._worker.ask(request, copy, timeout_s, cancellation, changes=False)
        if not call.changes:
            return await self._login.open(
                lambda place: self._ask_at(place, request, timeout_s, cancellation, changes=False),
                in_turn=False,
            )
        async with self._changing:
            await self._worker.start()
            try:
                with self._held():
                    return await self._login.open(
                        lambda place: self._ask_at(
                            place, request, timeout_s, cancellation, changes=True
                        ),
                        in_turn=False,
                    )
            finally:
                self._changes += 1

    async def _ask_at(
        self,
        place: Place,
        request: dict[str, Any],
        timeout_s: float,
        cancellation: Cancellation,
        *,
        changes: bool,
    ) -> Answer:
        """Ask at a place, which has another password than before if that was read again: a server
        that refuses the login has done nothing. Raises: TidegateError."""
        if place != self._place:
            before, self._place = self._place, place
            await workers().move(self._worker, before, place)
        request = {**request, "place": place.name}
        return await self._worker.ask(request, place, timeout_s, cancellation, changes=changes)

    async def _check_place(self, *, creates: bool) -> None:
        """See that the directory is still the one that can be opened.

        Two `stat` on the event loop: a thread for them takes longer than the rest of the engine,
        and LMDB's files are local. Raises: TidegateError as `check_directory`.
        """
        if self._place.is_remote:
            return
        marks = marks_of(self._place.name)
        if marks is None or marks != self._marks:
            path = self._place.name
            await asyncio.to_thread(check_directory, path, self._version, creates=creates)
            self._marks = marks

    def _held(self) -> AbstractContextManager[None]:
        if self._place.is_remote:
            return nullcontext()
        return held_for_change(self._place.name, self._worker.pid)

    def _check_open(self) -> None:
        if self._closed:
            raise closed()


def _checked(request: DatalogRequest) -> DatalogTarget:
    """The target with its options in one spelling.

    Raises: TidegateError ARGUMENT_INVALID for an option that is not allowed, POLICY_READ_ONLY for
    options that would change what is only opened.
    """
    target = request.target
    options = check_options(f"open_{target.kind}", target.options)
    client = check_options("clientOpts", target.client)
    # Those of a store belong to it while it is open, so each request of an open one names them.
    kept = target.kind == "database" or request.operation is DatalogOperation.OPEN_KV
    if options and not request.create and kept and target.kind in ("database", "kv"):
        raise TidegateError(
            Code.POLICY_READ_ONLY,
            "Options of a database or store are kept in it, so opening it with them is a change.",
            hint="Open it without options.",
            details={"field": "opts"},
        )
    return DatalogTarget(target.kind, options, client)


def _copy_mb(option: str | None, place: Place, *, writable: bool) -> int | None:
    """How large a private copy may be; None without one. Raises: TidegateError CONFIG_INVALID."""
    if option is None:
        return None
    if place.is_remote or writable:
        what = "a database of a server" if place.is_remote else "a source that may be written"
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"The option `private_copy_mb` is for a directory that is only read, not for {what}.",
            hint="Take the option away, or set the source's access to `read`.",
        )
    return most_mb_of(option)


async def _check(path: str, version: str, *, creates: bool) -> None:
    """See that a directory can be opened. Raises: TidegateError SOURCE_UNREACHABLE."""
    try:
        await asyncio.to_thread(check_directory, path, version, creates=creates)
    except TidegateError as error:
        raise TidegateError(
            Code.SOURCE_UNREACHABLE, error.message, hint=error.hint, details=error.details
        ) from error


async def _connectable(place: Place) -> None:
    """See that something listens where a remote source should be. Raises: TidegateError
    SOURCE_UNREACHABLE."""
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(place.host, place.port)
        writer.close()
    except (OSError, TimeoutError) as error:
        reason = getattr(error, "strerror", None) or "no answer"
        raise TidegateError(
            Code.SOURCE_UNREACHABLE, f"{place.shown} cannot be reached: {reason}."
        ) from error
