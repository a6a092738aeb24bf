"""The tables of the memory engine, and a value of every type."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from tidegate.engines.api import Row
from tidegate.model.schema import ColumnInfo, ForeignKey, Index, Table

SCHEMA = "main"

VALUES: tuple[tuple[str, Any], ...] = (
    ("null", None),
    ("boolean", True),
    ("integer", 42),
    ("bigint", 2**60),
    ("double", 1.5),
    ("decimal", Decimal("12.50")),
    ("text", "naïve – 海"),
    ("empty", ""),
    ("bytes", b"\x00\xff"),
    ("date", date(2024, 2, 29)),
    ("time", time(13, 30)),
    ("timestamp", datetime(2024, 2, 29, 13, 30, tzinfo=UTC)),
    ("interval", timedelta(days=1, seconds=2)),
    ("uuid", UUID(int=1)),
    ("array", [1, [2, None]]),
    ("object", {"a": 1}),
)

_ITEMS = (ColumnInfo("id", "integer", nullable=False, key=1), ColumnInfo("name", "text"))
_PARTS = (
    ColumnInfo("id", "integer", nullable=False, key=1),
    ColumnInfo("item_id", "integer", nullable=False),
)
TABLES = (
    Table(SCHEMA, "items", "table", _ITEMS, (Index("items_pk", ("id",), True, True),)),
    Table(
        SCHEMA,
        "parts",
        "table",
        _PARTS,
        (Index("parts_pk", ("id",), True, True),),
        (ForeignKey("fk_parts_0", ("item_id",), "items", ("id",), SCHEMA),),
    ),
    Table(SCHEMA, "void", "table", _ITEMS),
)

ROWS: dict[str, list[Row]] = {
    "items": [(number, f"item {number}") for number in range(1, 11)],
    "parts": [(number, number % 10 + 1) for number in range(1, 21)],
    "void": [],
}
