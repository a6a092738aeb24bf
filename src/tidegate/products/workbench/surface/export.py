"""`export_data`: a query's or tables' rows as CSV, JSON or SQL, inline or in a file.

Each table is one query, and every query goes through the gate like any statement: judged, decided
on, put on record. A file is made only when the gate has let the first of them through.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidegate.config.model import LimitSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Query
from tidegate.model.results import Column, Limits, Page, RowWriter, SkippedCall
from tidegate.model.statements import Statement
from tidegate.products.workbench.surface.calls import (
    OnConnection,
    answer,
    clamp,
    dialect_of,
    hints,
    table_of,
)
from tidegate.products.workbench.surface.downloads import Downloads, NewFile
from tidegate.protocol.model import ToolResult
from tidegate.results.formats import Format, Put, Writer, unique, writer
from tidegate.results.notes import masking_note, page_note, partial_note
from tidegate.results.row_stream import WriterSink
from tidegate.sql.quoting import identifier, qualified
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.tool_context import ToolContext

MOST_ROWS = 100_000
TIMEOUT_S = 60.0
MOST_TABLES = 50

_TABLE = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")
_SUFFIXES = {"csv": ".csv", "json": ".json", "sql": ".sql"}


class Export(OnConnection, frozen=True):
    format: Annotated[Literal["csv", "json", "sql"], Meta(description="Form of the export")]
    query: Annotated[str, Meta(description="One SQL statement; or give tables")] | None = None
    tables: (
        Annotated[list[str], Meta(description="Tables to export, such as users or public.users")]
        | None
    ) = None
    output_path: (
        Annotated[str, Meta(description="New file inside ~/Downloads; inline if left out")] | None
    ) = None
    max_rows: Annotated[int, Meta(description="Rows for each table, 1 to 100000")] = 50_000


class Exported(msgspec.Struct, frozen=True):
    """One export inline. `is_truncated` is there when rows were left out, `note` when masked
    columns were read."""

    label: str
    format: str
    row_count: int
    data: str
    is_truncated: bool | UnsetType = UNSET
    note: str | UnsetType = UNSET


class Output(msgspec.Struct, frozen=True, omit_defaults=True):
    """One export inline, several (`exports`), or the file that was written (`path`)."""

    label: str | UnsetType = UNSET
    format: str | UnsetType = UNSET
    row_count: int | UnsetType = UNSET
    data: str | UnsetType = UNSET
    exports: tuple[Exported, ...] | UnsetType = UNSET
    path: str | UnsetType = UNSET
    rows_exported: int | UnsetType = UNSET
    is_truncated: bool | UnsetType = UNSET
    note: str | UnsetType = UNSET


class Part(msgspec.Struct, frozen=True):
    """One statement of an export: what it is called, and where its INSERTs go.

    `overriding`: the table has a column that takes a value only on request. One of several
    reports no progress, which must not go back.
    """

    label: str
    text: str
    table: str
    overriding: bool = False
    one_of_several: bool = False


class _Inline:
    """Collects the bytes of one export after the other, up to a limit for all of them."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._chunks: list[bytes] = []

    def put(self, chunk: bytes) -> None:
        self._left -= len(chunk)
        if self._left < 0:
            raise TidegateError(
                Code.LIMIT_BYTES,
                "The export is too large to be returned inline",
                hint="Give output_path, or ask for fewer rows.",
            )
        self._chunks.append(chunk)

    def taken(self) -> str:
        """What was collected since it was last taken."""
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks).decode()


class _Named:
    """A writer of one table among several in a JSON file: the whole is one object."""

    def __init__(self, inner: RowWriter, put: NewFile, label: str, first: bool) -> None:
        self._inner = inner
        self._put = put
        self._opening = ("{" if first else ",") + msgspec.json.encode(label).decode() + ": "
        self.write = inner.write

    def begin(self, columns: tuple[Column, ...]) -> None:
        self._put.put(self._opening.encode())
        self._inner.begin(columns)


def export_data(settings: LimitSettings, directory: str | None = None) -> SurfaceTool:
    """The tool within the operator's limits, writing into `directory` or the user's Downloads."""
    downloads = Downloads(directory)
    most_bytes = settings.max_bytes

    async def export(context: ToolContext, args: Export) -> ToolResult:
        source = args.source
        rows = clamp(args.max_rows, MOST_ROWS)
        names = None
        if args.output_path is not None:
            names = downloads.names(args.output_path, _SUFFIXES[args.format])
        dialect = await dialect_of(context, source)
        parts = await _parts(context, source, args, dialect)
        limits = Limits(rows, most_bytes, TIMEOUT_S)
        if names is None:
            sink = _Inline(most_bytes)
            exports = [
                await _inline(context, source, part, args.format, limits, dialect, sink)
                for part in parts
            ]
            return answer(_one_or_several(exports))
        file = downloads.new_file(names)
        try:
            written = await _write(context, source, parts, args.format, limits, dialect, file)
            path = file.finish()
        finally:
            file.discard()
        return answer(msgspec.structs.replace(written, path=str(path)))

    return SurfaceTool(
        name="export_data",
        title="Export Data",
        description=(
            "Export the rows of a query or of tables as CSV, JSON or SQL: inline"
            f" {_size(most_bytes)} at most, in a file of output_path without that limit."
        ),
        args=Export,
        run=export,
        output=Output,
        annotations=hints(reads=False, repeatable=False, open_world=True),
    )


def _size(limit: int) -> str:
    return f"{limit // 1_048_576} MiB" if limit % 1_048_576 == 0 else f"{limit:,} bytes"


async def _parts(context: ToolContext, source: str, args: Export, dialect: str) -> list[Part]:
    """The statements to run. Raises: TidegateError ARGUMENT_INVALID, TABLE_UNKNOWN."""
    if (args.query is None) == (args.tables is None):
        raise wrong_argument("query", "value", "or tables must be given, and not both")
    if args.query is not None:
        return [Part("query", args.query, identifier("query", dialect))]
    tables = args.tables or []
    if not 1 <= len(tables) <= MOST_TABLES:
        raise wrong_argument("tables", "value", f"must name 1 to {MOST_TABLES} tables")
    for name in tables:
        if not _TABLE.fullmatch(name):
            raise wrong_argument(
                "tables",
                "value",
                "must hold names of letters, digits, _ and . only",
                hint="Export a table of another name by a query.",
            )
    return [
        msgspec.structs.replace(
            await _part(context, source, name, label, args.format, dialect),
            one_of_several=len(tables) > 1,
        )
        for name, label in zip(tables, unique(tables), strict=True)
    ]


async def _part(
    context: ToolContext, source: str, name: str, label: str, format: Format, dialect: str
) -> Part:
    schema, _, table = name.rpartition(".")
    found = await table_of(context, source, table, schema or None)
    place = qualified(found.schema, found.name, dialect)
    extras = [column.extra or "" for column in found.columns]
    shown = "*"
    if format == "sql" and any(extra.startswith("generated") for extra in extras):
        # Columns that the table computes itself take no values.
        shown = ", ".join(
            identifier(column.name, dialect)
            for column, extra in zip(found.columns, extras, strict=True)
            if not extra.startswith("generated")
        )
    return Part(label, f"SELECT {shown} FROM {place}", place, "identity always" in extras)


def _writer(format: Format, put: Put, part: Part, dialect: str) -> Writer:
    return writer(format, put, table=part.table, dialect=dialect, overriding=part.overriding)


async def _inline(
    context: ToolContext,
    source: str,
    part: Part,
    format: Format,
    limits: Limits,
    dialect: str,
    sink: _Inline,
) -> Exported:
    rows = _writer(format, sink.put, part, dialect)
    request = Query(Statement(part.text), limits=limits, sink=WriterSink(rows), is_whole=True)
    page = await context.handle(request, source, Page, reads_only=True, quiet=part.one_of_several)
    rows.end()
    cut = True if page.truncations else UNSET
    note = page_note(page) or UNSET
    return Exported(part.label, format, page.row_count, sink.taken(), cut, note)


def _one_or_several(exports: list[Exported]) -> Output:
    if len(exports) > 1:
        return Output(exports=tuple(exports))
    (only,) = exports
    return Output(
        *(only.label, only.format, only.row_count, only.data),
        is_truncated=only.is_truncated,
        note=only.note,
    )


async def _write(
    context: ToolContext,
    source: str,
    parts: list[Part],
    format: Format,
    limits: Limits,
    dialect: str,
    file: NewFile,
) -> Output:
    """Write all parts into one file; the answer, except the file's name."""
    count, cut = 0, False
    masked: set[tuple[str, str]] = set()
    skipped: set[SkippedCall] = set()
    several = format == "json" and len(parts) > 1
    for place, part in enumerate(parts):
        rows = _writer(format, file.put, part, dialect)
        if place and format != "json":
            file.put(b"\r\n" if format == "csv" else b"\n")
        target: RowWriter = _Named(rows, file, part.label, place == 0) if several else rows
        request = Query(Statement(part.text), limits=limits, sink=WriterSink(target), is_whole=True)
        page = await context.handle(
            request, source, Page, reads_only=True, quiet=part.one_of_several
        )
        rows.end()
        count += page.row_count
        cut = cut or bool(page.truncations)
        masked |= {*page.masked}
        skipped |= {*(page.upstream.skipped if page.upstream is not None else ())}
    file.put(b"}\n" if several else b"")
    notes = [masking_note(sorted(masked))] if masked else []
    notes += [partial_note(tuple(skipped))] if skipped else []
    note = "; ".join(notes) or UNSET
    return Output(rows_exported=count, is_truncated=True if cut else UNSET, note=note)
