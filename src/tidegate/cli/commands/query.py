"""`tidegate query SOURCE SQL`: one statement through the gate, shown as a table or as JSON."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.local_actor import ask, with_app
from tidegate.cli.settings import load_for_query
from tidegate.cli.terminal import print_status, show_json, show_table
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog
from tidegate.model.statements import Statement
from tidegate.results.notes import masking_note


def run(arguments: argparse.Namespace) -> int:
    """Run the statement and show what came back."""
    if arguments.rows < 1:
        raise TidegateError(Code.ARGUMENT_INVALID, f"--rows {arguments.rows} is not 1 or more.")
    text = sys.stdin.read() if arguments.sql == "-" else arguments.sql
    request = Query(Statement(text), limits=Limits(arguments.rows, timeout_s=arguments.timeout))

    async def work(app: App) -> Page:
        try:
            return await ask(app, "query", request, arguments.source, Page)
        except TidegateError as error:
            if error.code is Code.LIMIT_TIME:
                hint = "Narrow the statement, or give it more time with --timeout."
                raise TidegateError(error.code, error.message, hint=hint) from None
            if error.hint.startswith("Search or list the tables"):
                hint = await _tables_hint(app, arguments.source)
                raise TidegateError(error.code, error.message, hint=hint) from None
            if error.code is not Code.POLICY_SCOPE:
                raise
            hint = "Make the change with a client whose token may write."
            raise TidegateError(error.code, "`tidegate query` only reads.", hint=hint) from None

    page = with_app(App.open(load_for_query(arguments)), work)
    if arguments.json:
        show_json(_as_json(page))
    else:
        _show(page)
    return 0


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
        "columns": page.columns,
        "rows": msgspec.Raw(page.rows),
        "row_count": page.row_count,
        "truncations": page.truncations,
        **({"note": masking_note(page.masked)} if page.masked else {}),
        "elapsed_ms": round(page.elapsed_ms, 3),
    }


def _show(page: Page) -> None:
    show_table(
        [column.name for column in page.columns], msgspec.json.decode(page.rows), fitted=True
    )
    rows = "1 row" if page.row_count == 1 else f"{page.row_count:,} rows"
    print_status(f"{rows} in {page.elapsed_ms:.1f} ms")
    for cut in page.truncations:
        wider = " (--rows N shows more)" if cut.kind == "rows" else ""
        print_status(f"cut at {cut.limit:,} {_UNITS[cut.kind]}: there is more{wider}")
    if page.masked:
        print_status(masking_note(page.masked))


_UNITS = {"rows": "rows", "bytes": "bytes", "value": "bytes of one value"}
