"""`tidegate fixture check|refresh FILE`: rows of confirmed queries as code that stays true."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidegate.app import App
from tidegate.cli.local_actor import ask, with_app
from tidegate.cli.settings import load_for_query
from tidegate.cli.terminal import print_status, show
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page
from tidegate.model.statements import Statement
from tidegate.paths import expand
from tidegate.products.jdbc.commands.fixture_file import (
    Confirmed,
    FixtureFile,
    FixtureQuery,
    read_confirmed,
    read_fixture_file,
    write_confirmed,
)
from tidegate.products.jdbc.extraction.extraction import extract
from tidegate.products.jdbc.extraction.ordering import is_ordered
from tidegate.products.jdbc.fixtures import FixtureResult, Language, fixture_code, fixture_result
from tidegate.products.jdbc.row_buffer import RowBuffer
from tidegate.products.jdbc.surface.parameters import parameter_sets
from tidegate.results.json_values import text
from tidegate.results.notes import cut_note
from tidegate.results.row_stream import WriterSink

MOST_ROWS = 10_000
MOST_LINES = 200
"""Lines of one difference that are shown."""


def run(arguments: argparse.Namespace) -> int:
    """Compare the files of code with the rows of now, or write them."""
    path = expand(arguments.file)
    file = read_fixture_file(path)
    writes = arguments.action == "refresh"
    _check_confirmed(path, file, writes=writes, confirms=writes and arguments.confirm)

    async def work(app: App) -> list[FixtureResult]:
        dialect = _dialect_of(app, file.source)
        return [
            await _result(app, file.source, name, query, dialect, arguments.timeout)
            for name, query in file.queries.items()
        ]

    results = with_app(App.open(load_for_query(arguments)), work)
    differs = [
        _compare(path.parent / place, _code(language, file, results), writes=writes)
        for language, place in file.files.items()
    ]
    return int(any(differs) and not writes)


def _check_confirmed(path: Path, file: FixtureFile, *, writes: bool, confirms: bool) -> None:
    """See that every query was confirmed as it is; `confirms` takes those that were shown before.
    Raises: TidegateError POLICY_CONFIRM, after the others were shown."""
    before = read_confirmed(path)
    now: dict[str, Confirmed] = {}
    for name in file.queries:
        digest, seen = file.digest(name), before.get(name)
        known = seen is not None and seen.digest == digest
        now[name] = Confirmed(digest, known and (confirms or (seen is not None and seen.confirmed)))
    missing = [name for name, each in now.items() if not each.confirmed]
    for name in missing:
        _show(name, file.queries[name])
    if writes:
        write_confirmed(path, now)
    if missing:
        raise TidegateError(
            Code.POLICY_CONFIRM,
            f"Not confirmed as it is now: {', '.join(missing)}. Nothing was run.",
            hint="Review it with `tidegate fixture refresh FILE`, then confirm it with the same and"
            " --confirm.",
        )


def _show(name: str, query: FixtureQuery) -> None:
    """What a query is made of. Raises: TidegateError for what is no query."""
    found = extract(query.sql)
    show(f"{name}: {query.sql}")
    show(f"  fields      {', '.join([field.text for field in found.fields])}")
    show(f"  tables      {', '.join([use.name for use in found.tables])}")
    conditions = [f"{each.field} {each.operator} {each.value}" for each in found.conditions]
    show(f"  conditions  {', '.join(conditions)}")
    show(f"  parameters  {query.parameters!r}")


async def _result(
    app: App, source: str, name: str, query: FixtureQuery, dialect: str, timeout_s: float
) -> FixtureResult:
    """The rows of now: those of a query without an order are sorted, so that they are the same for
    the same data."""
    found = extract(query.sql, dialect)
    (values,) = parameter_sets(query.parameters, None, len(found.parameters), dialect)
    limits = Limits(MOST_ROWS, timeout_s=timeout_s)
    kept = RowBuffer(limits)
    request = Query(
        Statement(found.source_text, values or None),
        limits=limits,
        sink=WriterSink(kept),
        is_whole=True,
    )
    page = await ask(app, "fixture", request, source, Page, reads_only=True)
    cuts = kept.page(page).truncations
    if any(cut.kind == "pages" for cut in cuts):
        raise TidegateError(
            Code.LIMIT_BYTES, f"The result of {name} is not whole: it is {cut_note(page)}."
        )
    if cuts:
        raise TidegateError(
            Code.LIMIT_BYTES,
            f"The result of {name} is larger than a fixture may be: {MOST_ROWS:,} rows, and"
            f" {limits.max_bytes:,} bytes.",
            hint="Select fewer rows or columns.",
        )
    rows: Sequence[Sequence[Any]] = kept.rows
    if not is_ordered(query.sql, dialect):
        rows = sorted(rows, key=_order)
    if page.masked:
        print_status(f"{name}: masked: {', '.join([f'{t}.{c}' for t, c in page.masked])}")
    return fixture_result(name, query.sql, values, page.columns, rows, dialect)


def _order(row: Sequence[Any]) -> list[str]:
    return ["" if value is None else f"{type(value).__name__} {text(value)}" for value in row]


def _code(language: Language, file: FixtureFile, results: Sequence[FixtureResult]) -> str:
    try:
        code = fixture_code(language, file.name, results, file.package)
    except ValueError as unfit:
        raise TidegateError(Code.ARGUMENT_INVALID, f"{language}: {unfit}") from None
    for warning in code.warnings:
        print_status(f"{language}: {warning}")
    return code.text


def _compare(path: Path, code: str, *, writes: bool) -> bool:
    """Whether the file differs from the code, which is then shown or written. Raises: OSError."""
    before = path.read_text("utf-8") if path.is_file() else ""
    if before == code:
        print_status(f"{path}: as it is in the database")
        return False
    if writes:
        path.write_text(code, "utf-8")
        print_status(f"{path}: written")
        return True
    lines = list(
        difflib.unified_diff(
            before.splitlines(), code.splitlines(), str(path), "the database", lineterm="", n=1
        )
    )
    for line in lines[:MOST_LINES]:
        show(line)
    if len(lines) > MOST_LINES:
        show(f"... and {len(lines) - MOST_LINES} lines more")
    print_status(f"{path}: differs from the database")
    return True


def _dialect_of(app: App, name: str) -> str:
    for source in app.connections.sources():
        if source.name == name:
            return source.dialect
    raise TidegateError(
        Code.SOURCE_UNKNOWN,
        f"There is no source {name!r}.",
        hint="`tidegate source list` shows those that there are.",
    )
