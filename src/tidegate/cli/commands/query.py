"""`tidegate query SOURCE SQL`: one statement through the gate, as a table, as JSON or in a file."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.local_actor import LocalCaller, ask, with_app
from tidegate.cli.output_file import ALL_ROWS, OutputFormat, format_of, open_output
from tidegate.cli.parquet import ParquetWriter
from tidegate.cli.progress import stage_line
from tidegate.cli.settings import load_for_statement
from tidegate.cli.statement_arguments import statement_of, statement_text
from tidegate.cli.terminal import print_status, show_json, show_table
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog
from tidegate.model.statements import Statement
from tidegate.results.notes import page_note, pages_note
from tidegate.results.row_stream import WriterSink
from tidegate.search.vocabulary import may_be_mistaken, reader_of

SHOWN_ROWS = 500
"""How many rows a table or a JSON object has by default."""


def run(arguments: argparse.Namespace) -> int:
    """Run the statement and show what came back, or write it to a file."""
    if arguments.rows is not None and arguments.rows < 1:
        raise TidegateError(Code.ARGUMENT_INVALID, f"--rows {arguments.rows} is not 1 or more.")
    values: list[str] = arguments.values
    text = arguments.sql
    if arguments.file is not None and text is not None:
        text, values = None, [text, *values]  # with a file, what follows the source are values
    elif arguments.file is None and text is None and values:
        text, *values = values
    if text is None and arguments.file is None and " " in arguments.source:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "SOURCE is missing.",
            hint="Write it before the statement; `tidegate source list` shows the sources.",
        )
    text = statement_text(text, arguments.file)
    if values and text.strip().isalnum():
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The statement is {text.strip()[:40]!r} alone.",
            hint="Quote the whole statement, then write its values.",
        )
    format: OutputFormat | None = arguments.format
    if arguments.json and (format is not None or arguments.output is not None):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "--json goes with neither --format nor --output.",
            hint="Use --format json, which writes an array of objects.",
        )
    if format is None and arguments.output is not None:
        format = format_of(arguments.output)

    async def work(app: App) -> Page:
        dialect = _dialect_of(app, arguments.source)
        statement = statement_of(text, values, arguments.param, dialect)
        if format is not None:
            return await write_rows(app, "query", arguments, statement, format, arguments.output)
        limits = Limits(arguments.rows or SHOWN_ROWS, timeout_s=arguments.timeout)
        page = await _run(app, "query", arguments.source, Query(statement, limits=limits))
        return await _with_note(app, arguments.source, statement, page)

    page = with_app(App.open(load_for_statement(arguments)), work)
    if format is not None:
        show_outcome(page, arguments.output)
    elif arguments.json:
        show_json(_as_json(page))
    else:
        _show(page)
    return 0


async def _with_note(app: App, source: str, statement: Statement, page: Page) -> Page:
    """The page; its status says what may explain that a query in a language that is no SQL
    found nothing."""
    if reader_of(statement.text) is None or not may_be_mistaken(page, statement.text):
        return page
    from tidegate.search.suggestions import note_on_nothing

    caller = LocalCaller(app, "query")
    note = await note_on_nothing(statement.text, caller, source, statement.params or ())
    return msgspec.structs.replace(page, status=note) if note else page


async def write_rows(
    app: App,
    tool: str,
    arguments: argparse.Namespace,
    statement: Statement,
    format: OutputFormat,
    path: str | None,
) -> Page:
    """Write the rows of a statement to a file, or to standard output. Raises: TidegateError,
    OSError; there is no file then."""
    source: str = arguments.source
    limits = Limits(arguments.rows or ALL_ROWS, timeout_s=arguments.timeout)
    with open_output(
        path, format, _dialect_of(app, source), table="rows", overwrite=arguments.overwrite
    ) as writer:
        query = Query(statement, limits=limits, sink=WriterSink(writer), is_whole=True)
        page = await _run(app, tool, source, query)
        writer.end()
    if isinstance(writer, ParquetWriter):
        for name in writer.as_text:
            print_status(f"note: {name} is text: not all its values fit its type in Parquet")
    return page


async def _run(app: App, tool: str, source: str, request: Query) -> Page:
    try:
        with stage_line() as progress:
            return await ask(app, tool, request, source, Page, progress=progress)
    except TidegateError as error:
        if error.code is Code.LIMIT_TIME:
            hint = "Narrow the statement, or give it more time with --timeout."
            raise error.with_hint(hint) from None
        if error.hint.startswith("Search or list the tables"):
            hint = await _tables_hint(app, source)
            raise error.with_hint(hint) from None
        if error.code is not Code.POLICY_SCOPE:
            raise
        hint = "Make the change with a client whose token may write."
        raise TidegateError(error.code, f"`tidegate {tool}` only reads.", hint=hint) from None


def _dialect_of(app: App, name: str) -> str:
    """The dialect of the source; the gate reports a source that does not exist."""
    found = [each.dialect for each in app.connections.sources() if each.name == name]
    return found[0] if found else "default"


async def _tables_hint(app: App, source: str) -> str:
    """The tables of the source, for a person who named one that is not there."""
    try:
        catalog = await ask(app, "query", Browse("catalog"), source, Catalog)
    except TidegateError:
        return f"`tidegate source test {source}` shows what the source is."
    names = sorted(table.name for table in catalog.tables)
    if not names:
        return "There is no table in the source."
    more = f", and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"Tables there: {', '.join(names[:_MOST_NAMED])}{more}."


_MOST_NAMED = 20


def _as_json(page: Page) -> dict[str, Any]:
    return {
        "columns": [msgspec.structs.replace(column, driver_type=None) for column in page.columns],
        "rows": msgspec.Raw(page.rows),
        "row_count": page.row_count,
        "truncations": page.truncations,
        **({"note": note} if (note := page_note(page)) else {}),
        **({"note": page.status} if page.status else {}),
        "elapsed_ms": round(page.elapsed_ms, 3),
    }


def _show(page: Page) -> None:
    show_table(
        [column.name for column in page.columns], msgspec.json.decode(page.rows), fitted=True
    )
    show_outcome(page)


def show_outcome(page: Page, path: str | None = None) -> None:
    """How many rows there were, and whether there are more."""
    rows = "1 row" if page.row_count == 1 else f"{page.row_count:,} rows"
    where = f" written to {path}" if path is not None else ""
    sent = ""
    if page.upstream is not None and page.upstream.calls:
        calls, pages = page.upstream.calls, page.upstream.pages
        sent = f"; {calls:,} request{'s' * (calls != 1)}, {pages:,} page{'s' * (pages != 1)}"
    if page.upstream is not None and page.upstream.hits:
        sent += f"; {page.upstream.hits:,} from the cache, up to {page.upstream.age_s:.0f} s old"
    print_status(f"{rows}{where} in {page.elapsed_ms:.1f} ms{sent}")
    for cut in page.truncations:
        if cut.kind == "pages":
            print_status(pages_note(cut))
            continue
        if cut.kind == "budget":
            print_status(f"cut at {cut.returned:,} rows, as the budget has no more")
            continue
        wider = " (--rows N shows more)" if cut.kind == "rows" else ""
        print_status(f"cut at {cut.limit:,} {_UNITS[cut.kind]}: there is more{wider}")
    if note := page_note(page):
        print_status(note)
    if page.status:
        print_status(f"note: {page.status}")


_UNITS = {"rows": "rows", "bytes": "bytes", "value": "bytes of one value"}
