"""`tidegate tables SOURCE` and `tidegate describe SOURCE TABLE...`: what is in a source."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.catalog_lookup import find_table
from tidegate.cli.local_actor import ask, with_app
from tidegate.cli.settings import load_for_query
from tidegate.cli.terminal import print_status, show, show_json, show_table
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog, ColumnInfo, Table


def run(arguments: argparse.Namespace) -> int:
    """List the tables, or describe those that are named."""

    async def work(app: App) -> Catalog:
        return await ask(app, arguments.command, Browse("catalog"), arguments.source, Catalog)

    catalog = with_app(App.open(load_for_query(arguments)), work)
    if arguments.command == "tables":
        _list(catalog, arguments.json)
    else:
        _describe([find_table(catalog, name) for name in arguments.tables], arguments.json)
    return 0


def _list(catalog: Catalog, as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "schema": table.schema,
            "name": table.name,
            "kind": table.kind,
            "columns": len(table.columns),
            "rows": table.approximate_rows,
            "comment": table.comment,
        }
        for table in catalog.tables
        if table.kind != "system table"
    ]
    if as_json:
        show_json({"tables": rows})
        return
    if not rows:
        print_status("there is no table in the source")
        return
    columns = ("schema", "name", "kind", "columns", "rows", "comment")
    shown = [[row[name] if row[name] is not None else "" for name in columns] for row in rows]
    show_table(columns, shown, fitted=True)
    print_status("rows are estimates of the database, empty where it has none")


def _describe(tables: list[Table], as_json: bool) -> None:
    if as_json:
        show_json({"tables": [_as_json(table) for table in tables]})
        return
    for place, table in enumerate(tables):
        if place:
            show()
        comment = f": {table.comment}" if table.comment else ""
        name = ".".join(filter(None, (table.schema, table.name)))
        show(f"{name} ({table.kind}){comment}")
        if not table.columns:
            continue
        show_table(
            ("column", "type", "null", "key", "default", "comment"),
            [
                [
                    column.name,
                    column.type,
                    "yes" if column.nullable else "no",
                    _key(column.name, column.key, table),
                    column.default or "",
                    _comment(column),
                ]
                for column in table.columns
            ],
            fitted=True,
        )


def _as_json(table: Table) -> dict[str, Any]:
    return {
        **{name: getattr(table, name) for name in ("schema", "name", "kind", "comment")},
        "columns": [msgspec.structs.asdict(column) for column in table.columns],
        "foreign_keys": [msgspec.structs.asdict(key) for key in table.foreign_keys],
        "indexes": [msgspec.structs.asdict(index) for index in table.indexes],
    }


def _comment(column: ColumnInfo) -> str:
    """What is to say of a column, first of all that it is masked, and how."""
    masked = f"masked: {column.masked}" if column.masked else ""
    return "; ".join(filter(None, (masked, column.comment or column.extra)))


def _key(name: str, place: int, table: Table) -> str:
    words = ["primary"] if place else []
    words += [
        f"-> {key.table}.{reference}"
        for key in table.foreign_keys
        for column, reference in zip(key.columns, key.references, strict=False)
        if column == name
    ]
    return ", ".join(words)
