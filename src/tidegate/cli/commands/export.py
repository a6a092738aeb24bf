"""`tidegate export SOURCE TABLE...`: tables into files, each by one query through the gate."""

from __future__ import annotations

import argparse
import re

from tidegate.app import App
from tidegate.cli.catalog_lookup import find_table
from tidegate.cli.commands.query import show_outcome, write_rows
from tidegate.cli.local_actor import ask, with_app
from tidegate.cli.settings import load_for_statement
from tidegate.cli.terminal import print_status
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog, Table
from tidegate.model.statements import Statement
from tidegate.paths import expand
from tidegate.sql.quoting import qualified

_NOT_IN_NAMES = re.compile(r"[/\\\x00-\x1f\x7f]")


def run(arguments: argparse.Namespace) -> int:
    """Write a file for each table."""
    directory = expand(arguments.directory)
    if not directory.is_dir():
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is no directory {arguments.directory}.",
            hint="Create it, or name another one with --directory.",
        )

    async def work(app: App) -> None:
        catalog = await ask(app, "export", Browse("catalog"), arguments.source, Catalog)
        dialect = next(
            each.dialect for each in app.connections.sources() if each.name == arguments.source
        )
        for table in _wanted(catalog, arguments.tables):
            place = qualified(table.schema, table.name, dialect)
            path = directory / f"{_file_name(table, catalog)}.{arguments.format}"
            page = await write_rows(
                app,
                "export",
                arguments,
                Statement(f"SELECT * FROM {place}"),
                arguments.format,
                str(path),
            )
            show_outcome(page, str(path))

    with_app(App.open(load_for_statement(arguments)), work)
    return 0


def _wanted(catalog: Catalog, names: list[str]) -> list[Table]:
    """The tables called so, or all that are no views if none is named.

    Raises: TidegateError TABLE_UNKNOWN.
    """
    if not names:
        everything = [table for table in catalog.tables if table.kind == "table"]
        if not everything:
            print_status("there is no table in the source")
        return everything
    return [find_table(catalog, name) for name in names]


def _file_name(table: Table, catalog: Catalog) -> str:
    own = table.schema == catalog.default_schema
    name = table.name if own else f"{table.schema}.{table.name}"
    return _NOT_IN_NAMES.sub("_", name).lstrip(".") or "_"
