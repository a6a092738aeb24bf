"""The worker's session on a folder: a database in memory with a view for each file. Runs in the
worker.

DuckDB may open the files that were found, by their names, and nothing else (`allowed_paths`). The
folder is listed before each statement: what is new, changed or gone is so for that statement.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

import duckdb
import msgspec

from tidegate.engines.common.errors import folder_is_read_only, shortened
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog, Ddl, Table
from tidegate.products.duckdb.engine.connection import DuckdbSession, config_of
from tidegate.products.duckdb.engine.errors import file_fault
from tidegate.products.duckdb.engine.messages import Definition, Folder, Setup
from tidegate.products.duckdb.engine.spreadsheets import (
    Sheet,
    UnreadableWorkbook,
    load_sheet,
    read_sheets,
)
from tidegate.products.duckdb.engine.uneven_rows import find_uneven_row, skipped_text
from tidegate.products.duckdb.folder_files import (
    DEFAULT_SCHEMA,
    FoundFile,
    NamedTable,
    name_tables,
    scan,
    sole_path,
)
from tidegate.sql.dialects import find

_quote = find("duckdb").quote
_literal = find("duckdb").text_literal

WHOLE_BYTES = 16 * 2**20
"""The types of a CSV file's columns are found out from all its rows if it is no larger."""

SAMPLE_ROWS = 200_000
"""From so many rows otherwise."""

MOST_FAULT = 240

_ACCESS = "enable_external_access"

Name = tuple[str, str]


class _Made(NamedTuple):
    """What represents a table in the database."""

    path: str
    sheet: int
    mark: str
    fault: str | None
    is_view: bool


class FolderSession(DuckdbSession):
    """A folder of files, opened again when files come or go."""

    def __init__(self, setup: Setup, folder: Folder) -> None:
        super().__init__(setup)
        self._folder = folder
        self._known = dict(folder.known)
        self._readable: list[str] = []
        self._made: dict[Name, _Made] = {}
        self._sheets: dict[str, tuple[str, list[str], str | None]] = {}
        """The state, the names of the sheets and the fault of each workbook."""
        self._rows: dict[str, list[Sheet]] = {}
        """The rows of workbooks that were read and are not in the database yet."""

    @property
    def in_memory(self) -> bool:
        """False: its rows are in files, though DuckDB's own database is in memory."""
        return False

    @property
    def known(self) -> dict[str, Definition]:
        """How each file is read, for workers that start later."""
        return self._known

    def cursor(self, version: str, *, writes: bool = False) -> duckdb.DuckDBPyConnection:
        """A new cursor on the folder as it is now, in a transaction that only reads.

        Raises: duckdb.Error; TidegateError SOURCE_UNREACHABLE, POLICY_READ_ONLY.
        """
        if writes:
            raise folder_is_read_only()
        return super().cursor(version)

    def release(self) -> None:
        """Nothing: no file is held open between statements."""

    def describe(self, catalog: Catalog) -> Catalog:
        """The catalog with the files as what they are: tables, not views over paths."""
        return msgspec.structs.replace(
            catalog, tables=tuple([self._described(table) for table in catalog.tables])
        )

    def ddl(self, catalog: Catalog) -> Ddl:
        """The columns of a table as SQL, and the name of its file."""
        texts: list[str] = []
        for table in catalog.tables:
            columns = ",\n".join(f"  {_quote(each.name)} {each.type}" for each in table.columns)
            name = f"{_quote(table.schema)}.{_quote(table.name)}"
            texts.append(f"-- {table.comment or ''}\nCREATE TABLE {name} (\n{columns}\n);")
        return Ddl("\n".join(texts))

    def counts(
        self, cursor: duckdb.DuckDBPyConnection, browse: Browse, catalog: Catalog
    ) -> list[tuple[str, str, int]]:
        """Rows of each table by counting them; a file that cannot be read is left out, unless it
        is the one that was asked for."""
        counted: list[tuple[str, str, int]] = []
        for table in catalog.tables:
            name = f"{_quote(table.schema)}.{_quote(table.name)}"
            try:
                ((rows,),) = cursor.execute(f"SELECT count(*) FROM {name}").fetchall()
            except duckdb.InterruptException:
                raise
            except duckdb.Error:
                if browse.table is not None:
                    raise
                cursor.execute("ROLLBACK")
                cursor.execute("BEGIN TRANSACTION READ ONLY")
                continue
            counted.append((table.schema, table.name, rows))
        return counted

    def _described(self, table: Table) -> Table:
        made = self._made.get((table.schema, table.name))
        return msgspec.structs.replace(
            table,
            kind="table",
            definition=None,
            approximate_rows=None,
            columns=table.columns if made is None or made.fault is None else (),
        )

    def _opened(self, version: str, writes: bool) -> duckdb.DuckDBPyConnection:
        """The database, with the tables as the files are now."""
        folder = self._folder
        try:
            os.chdir(folder.path)  # views name files from here, so that none shows the whole path
        except OSError as error:
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                f"The folder {folder.path} cannot be read.",
                hint="Check that it is there, and the rights on it.",
            ) from error
        found = scan(".", folder.most_files)
        readable = [file.path for file in found if file.fault is None]
        if self._handle is None or readable != self._readable:
            self._forget()
            self._handle = self._connect_to(readable)
            self._readable = readable
            self._known = {path: self._known[path] for path in readable if path in self._known}
        try:
            self._load(self._handle, found)
        except BaseException:
            self._forget()
            raise
        return self._handle

    def _forget(self) -> None:
        if self._handle is not None:
            self._handle.close()
        self._handle = None
        self._made, self._rows = {}, {}

    def _connect_to(self, paths: list[str]) -> duckdb.DuckDBPyConnection:
        """A database in memory that may open these files and no other."""
        config = config_of(self._setup)
        del config[_ACCESS]  # what is allowed can be said only while it is on
        handle = duckdb.connect(":memory:", config=config)
        named = dict.fromkeys(each for path in paths for each in (path, sole_path(path)))
        allowed = ", ".join(_literal(os.path.abspath(path)) for path in named)  # noqa: PTH100 - as text
        handle.execute(f"SET GLOBAL allowed_paths = [{allowed}]")
        handle.execute(f"SET GLOBAL {_ACCESS} = false")
        handle.execute("SET GLOBAL TimeZone = 'UTC'")
        handle.execute("SET GLOBAL lock_configuration = true")
        return handle

    def _load(self, handle: duckdb.DuckDBPyConnection, found: list[FoundFile]) -> None:
        """Make the tables of files that are new or have changed, and drop those of others."""
        tables = {(each.schema, each.name): each for each in name_tables(self._candidates(found))}
        stale = {
            name: made
            for name, made in self._made.items()
            if name not in tables or not _is_of(made, tables[name])
        }
        missing = [
            table for name, table in tables.items() if name not in self._made or name in stale
        ]
        if not stale and not missing:
            return
        self.forget()
        for name, made in stale.items():
            handle.execute(f"DROP {'VIEW' if made.is_view else 'TABLE'} {_place(name)}")
            del self._made[name]
        for table in missing:
            if self._interrupted:
                raise TidegateError(Code.CALL_CANCELLED, "Reading the folder was ended.")
            self._made[table.schema, table.name] = self._make(handle, table)
        self._rows = {}

    def _candidates(self, found: list[FoundFile]) -> Iterator[tuple[FoundFile, str | None, int]]:
        """What may become a table: each file, and each sheet of a workbook."""
        for file in found:
            if file.kind != "excel" or file.fault is not None:
                yield file, None, 0
                continue
            names, fault = self._read_book(file)
            if fault is not None:
                yield file._replace(fault=fault), None, 0
            for number, name in enumerate(names):
                yield file, name if number else None, number

    def _read_book(self, file: FoundFile) -> tuple[list[str], str | None]:
        known = self._sheets.get(file.path)
        if known is None or known[0] != file.mark:
            try:
                self._rows[file.path] = read_sheets(file.path)
                known = file.mark, [name for name, _ in self._rows[file.path]], None
            except (UnreadableWorkbook, OSError) as error:
                known = file.mark, list[str](), _reason(error)
            self._sheets[file.path] = known
        return known[1], known[2]

    def _make(self, handle: duckdb.DuckDBPyConnection, table: NamedTable) -> _Made:
        """Put the table into the database; one that cannot be read fails when it is read."""
        file = table.file
        place = _place((table.schema, table.name))
        fault = file.fault
        if table.schema != DEFAULT_SCHEMA:
            handle.execute(f"CREATE SCHEMA IF NOT EXISTS {_quote(table.schema)}")
        is_view = file.kind != "excel"
        if fault is None:
            try:
                if is_view:
                    fault = self._make_view(handle, file, place)
                else:
                    if file.path not in self._rows:
                        self._rows[file.path] = read_sheets(file.path)
                    load_sheet(handle, place, self._rows[file.path][table.sheet][1])
            except (duckdb.Error, UnreadableWorkbook, OSError, IndexError) as error:
                if isinstance(error, duckdb.InterruptException):
                    raise
                fault = _reason(error)
        comment = file.shown if not table.sheet else f"{file.shown}, sheet {table.sheet + 1}"
        known = self._known.get(file.path)
        if known is not None and known.mark == file.mark and known.left_out:
            comment = f"{comment}, without its first {known.left_out} lines"
        if fault is not None:
            comment = f"{comment} cannot be read: {fault}"
            is_view = True
            handle.execute(
                f"CREATE VIEW {place} AS SELECT fault FROM (SELECT '' AS fault)"
                f" WHERE error({_literal(comment)}) IS NULL"
            )
        kind = "VIEW" if is_view else "TABLE"
        handle.execute(f"COMMENT ON {kind} {place} IS {_literal(comment)}")
        return _Made(file.path, table.sheet, file.mark, fault, is_view)

    def _make_view(
        self, handle: duckdb.DuckDBPyConnection, file: FoundFile, place: str
    ) -> str | None:
        """Why it cannot be made; None if it was. What is found out is kept, for this state of the
        file."""
        known = self._known.get(file.path)
        if known is None or known.mark != file.mark:
            try:
                query, left_out = _query(handle, file)
                known = Definition(file.mark, query, left_out=left_out)
            except duckdb.InterruptException:
                raise
            except (duckdb.Error, OSError) as error:
                known = Definition(file.mark, None, _reason(error))
        fault = known.fault
        if known.query is not None:
            try:
                handle.execute(f"CREATE VIEW {place} AS {known.query}")
            except duckdb.InterruptException:
                raise
            except duckdb.Error as error:
                fault = _reason(error)
                known = Definition(file.mark, None, fault)
        self._known[file.path] = known
        return fault


def _is_of(made: _Made, table: NamedTable) -> bool:
    file = table.file
    same = (made.path, made.sheet, made.mark) == (file.path, table.sheet, file.mark)
    return same and (file.fault is None or made.fault == file.fault)


def _place(name: Name) -> str:
    return ".".join(map(_quote, name))


def _query(handle: duckdb.DuckDBPyConnection, file: FoundFile) -> tuple[str, int]:
    """The query of a file, and how many lines before its table it leaves out."""
    path = _literal(sole_path(file.path))
    if file.kind == "parquet":
        return f"SELECT * FROM read_parquet({path}, hive_partitioning = false)", 0
    if file.kind == "json":
        return f"SELECT * FROM read_json({path}, hive_partitioning = false)", 0
    whole = os.stat(file.path).st_size <= WHOLE_BYTES  # noqa: PTH116 - as text
    rows = -1 if whole else SAMPLE_ROWS
    try:
        found = handle.execute(
            "SELECT Delimiter, Quote, Escape, NewLineDelimiter, Comment, SkipRows, HasHeader,"
            f" Columns, DateFormat, TimestampFormat FROM sniff_csv({path}, sample_size = {rows})"
        ).fetchone()
    except duckdb.InvalidInputException as error:
        uneven = find_uneven_row(file.path, 0, 0)
        if uneven is None:
            raise
        raise duckdb.InvalidInputException(uneven) from error
    if found is None:
        raise duckdb.InvalidInputException("It has no columns.")
    *texts, skip, header, columns, date, timestamp = found
    uneven = find_uneven_row(file.path, len(columns), skip)
    if uneven is not None:
        raise duckdb.InvalidInputException(uneven)
    delimiter, quote, escape, line, comment = ["" if each == _EMPTY else each for each in texts]
    if not quote and not whole:
        quote = escape = '"'  # none in the sample; there may be some after it
    options = {
        "delim": _literal(delimiter),
        "quote": _literal(quote),
        "escape": _literal(escape),
        "comment": _literal(comment),
        "skip": str(skip),
        "header": str(header).lower(),
        "columns": "{" + ", ".join(
            f"{_literal(each['name'])}: {_literal(each['type'])}" for each in columns
        ) + "}",
    }  # fmt: skip
    if line in _LINE_ENDS:
        options["new_line"] = _literal(line)
    for name, form in (("dateformat", date), ("timestampformat", timestamp)):
        if form:
            options[name] = _literal(form)
    written = ", ".join(f"{name} = {value}" for name, value in options.items())
    left_out = skip if skip and skipped_text(file.path, skip) else 0
    written = f"auto_detect = false, hive_partitioning = false, {written}"
    return f"SELECT * FROM read_csv({path}, {written})", left_out


_EMPTY = "(empty)"
_LINE_ENDS = ("\\n", "\\r", "\\r\\n")


def _reason(error: Exception) -> str:
    """Why a file cannot be read, on one line, without the file's path."""
    if isinstance(error, OSError):
        return error.strerror or "it cannot be opened"
    text = shortened(str(error)) or "it is damaged"
    text = (file_fault(text) or text).partition(" cannot be read: ")[2] or text.splitlines()[0]
    text = _KIND.sub("", text)
    return " ".join(text.split())[:MOST_FAULT].rstrip(".:")


_KIND = re.compile(r"^(?:[A-Z][A-Za-z ]* Error: )+")
