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
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page
from tidegate.model.statements import Statement


def run(arguments: argparse.Namespace) -> int:
    """Run the statement and show what came back."""
    if arguments.rows < 1:
        raise TidegateError(Code.ARGUMENT_INVALID, f"--rows {arguments.rows} is not 1 or more.")
    text = sys.stdin.read() if arguments.sql == "-" else arguments.sql
    request = Query(Statement(text), limits=Limits(max_rows=arguments.rows))

    async def work(app: App) -> Page:
        try:
            return await ask(app, "query", request, arguments.source, Page)
        except TidegateError as error:
            if error.code is not Code.POLICY_SCOPE:
                raise
            hint = "Let a client make the change whose token may write."
            raise TidegateError(error.code, "`tidegate query` only reads.", hint=hint) from None

    page = with_app(App.open(load_for_query(arguments)), work)
    if arguments.json:
        show_json(_as_json(page))
    else:
        _show(page)
    return 0


def _as_json(page: Page) -> dict[str, Any]:
    return {
        "columns": page.columns,
        "rows": msgspec.Raw(page.rows),
        "row_count": page.row_count,
        "truncations": page.truncations,
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


_UNITS = {"rows": "rows", "bytes": "bytes", "value": "bytes of one value"}
