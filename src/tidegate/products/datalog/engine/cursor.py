"""A query's answer as a table."""

from __future__ import annotations

import base64
from datetime import datetime
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

import msgspec

from tidegate.engines.api import Row, RowCollector
from tidegate.model.results import Column


class Table(msgspec.Struct, frozen=True):
    """What the worker says of a query: `total` is how many rows there are, of which `rows` may be
    the first."""

    columns: list[str]
    rows: list[list[Any]]
    total: int


class TableCursor:
    """Gives out the rows of a table, which is whole."""

    affected = 0

    def __init__(self, table: Table) -> None:
        self.columns = tuple([Column(name, "") for name in table.columns])
        self._rows: list[Row] = [[plain(value) for value in row] for row in table.rows]

    async def fetch(self, max_rows: int) -> list[Row]:
        rows, self._rows = self._rows[:max_rows], self._rows[max_rows:]
        return rows

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            sink.write(await self.fetch(wanted))

    async def close(self) -> None:
        self._rows = []


def plain(value: Any) -> Any:
    """A JSON value in Datalevin's spelling as a plain value: keywords and symbols are texts, sets
    are lists."""
    if isinstance(value, list):
        return [plain(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    if len(members) == 1:
        ((tag, inner),) = members.items()
        match tag:
            case "~i64" | "~bigint":
                return int(inner)
            case "~bigdec":
                return Decimal(inner)
            case "~date":
                return datetime.fromisoformat(inner)
            case "~uuid":
                return UUID(inner)
            case "~bytes":
                return base64.b64decode(inner)
            case "~edn" | "~str":
                return inner
            case "~set":
                return [plain(each) for each in inner]
            case "~map":
                return [[plain(key), plain(each)] for key, each in inner]
            case _:
                pass
    return {key: plain(each) for key, each in members.items()}
