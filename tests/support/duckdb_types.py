"""All of DuckDB's types with their least and greatest values, and what DuckDB writes of them.

`test_all_types()` is DuckDB's own table of them; a later version brings its new types with it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

MOMENT = "TIMESTAMPTZ_NS '2026-01-02 03:04:05.123456789+00'"
NESTED = {
    "deep_list": f"[{MOMENT}, NULL]",
    "deep_struct": f"{{'a': {MOMENT}, 'it''s': [TIME_NS '01:02:03.000000004']}}",
    "deep_map": f"MAP {{'k': {MOMENT}}}",
    "deep_array": f"array_value({MOMENT}, {MOMENT})",
    "deep_union": f"union_value(moment := {MOMENT})",
    "deep_tuple": f"row({MOMENT}, 1)",
    "deep_enum": f"{{'e': 'it''s'::ENUM('it''s', 'b'), 'd': {MOMENT}}}",
    "deep_geometry": "['POINT (1 2)'::GEOMETRY]",
    "deep_empty": f"{{'none': struct_pack(), 'd': {MOMENT}}}",
    "empty_list": "[struct_pack()]",
    "empty_tuple": "row()",
}


def make_types(path: Path) -> str:
    """A database with the table `types`; returns the URL of its source."""
    more = ", ".join(f"{expression} AS {name}" for name, expression in NESTED.items())
    with duckdb.connect(str(path)) as made:
        made.execute("SET TimeZone = 'UTC'")
        made.execute(f"CREATE TABLE types AS SELECT *, {more} FROM test_all_types()")
    return f"duckdb:///{path}"


Leaf = tuple[str, str | None]
"""The name of a type, and what DuckDB writes of a value of it (bytes in hexadecimal)."""


class Oracle:
    """What DuckDB says of the values of the table, by casts to VARCHAR, past the gate."""

    def __init__(self, url: str) -> None:
        self._database = duckdb.connect(url.removeprefix("duckdb:///"), read_only=True)
        self._database.execute("SET TimeZone = 'UTC'")
        described = self._database.execute("DESCRIBE types").fetchall()
        self.columns = [name for name, *_ in described]

    def close(self) -> None:
        self._database.close()

    def leaves(self, column: str, row: int) -> list[Leaf]:
        """What a value is made of, in its order."""
        quoted = column.replace('"', '""')
        return list(self._leaves(f'"{quoted}"', row))

    def _ask(self, expression: str, row: int) -> Any:
        place = f"(SELECT *, row_number() OVER () AS place FROM types) WHERE place = {row}"
        return self._database.execute(f"SELECT {expression} FROM {place}").fetchone()[0]

    def _leaves(self, value: str, row: int) -> Iterator[Leaf]:
        kind = self._ask(f"typeof({value})", row)
        place = f"(SELECT *, row_number() OVER () AS place FROM types) WHERE place = {row}"
        made = self._database.sql(f"SELECT {value} AS it FROM {place}").types[0]
        if self._ask(f"({value}) IS NULL", row):
            yield kind, None
        elif made.id in ("list", "array"):
            for at in range(1, self._ask(f"len({value})", row) + 1):
                yield from self._leaves(f"({value})[{at}]", row)
        elif made.id == "struct":
            for name, _ in made.children:
                key = name.replace("'", "''")
                yield from self._leaves(f"struct_extract({value}, '{key}')", row)
        elif made.id == "tuple":
            for at in range(1, len(made.children) + 1):
                yield from self._leaves(f"struct_extract_at({value}, {at})", row)
        elif made.id == "map":
            for at in range(1, self._ask(f"cardinality({value})", row) + 1):
                yield from self._leaves(f"(map_keys({value}))[{at}]", row)
                yield from self._leaves(f"(map_values({value}))[{at}]", row)
        elif made.id == "union":
            tag = self._ask(f"union_tag({value})::VARCHAR", row)
            yield from self._leaves(f"union_extract({value}, '{tag}')", row)
        elif made.id == "blob":
            yield kind, self._ask(f"hex({value})", row)
        elif made.id == "interval":
            parts = f"datepart('year', {value}) * 12 + datepart('month', {value})"
            days = f"datepart('day', {value})"
            micro = (
                f"datepart('hour', {value}) * 3600000000 + datepart('minute', {value}) * 60000000"
                f" + datepart('microsecond', {value})"
            )
            yield kind, f"{self._ask(parts, row)} {self._ask(days, row)} {self._ask(micro, row)}"
        else:
            yield kind, self._ask(f"CAST({value} AS VARCHAR)", row)


def given_leaves(value: Any) -> Iterator[Any]:
    """What a value of a reply is made of, in its order."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from given_leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from given_leaves(each)
    else:
        yield value


def is_same(leaf: Leaf, given: Any) -> bool:
    """Whether a value of a reply says exactly what DuckDB says."""
    kind, written = leaf
    if written is None or given is None:
        return written is given is None
    if kind == "BOOLEAN":
        return given is (written == "true")
    if kind in ("FLOAT", "DOUBLE"):
        one, other = float(written), float(given)
        return one == other or (one != one and other != other)
    if kind == "BLOB":
        return base64.b64decode(given).hex().upper() == written
    if kind == "INTERVAL":
        return _interval(given) == written
    if kind.startswith(("TIME", "DATE")):
        return _moment(str(given)) == _moment(written)
    return str(given) == written


def _moment(text: str) -> str:
    """One spelling of a moment, whose fraction keeps all its digits."""
    text = text.replace("T", " ", 1) if text[:1].isdigit() or text[:1] == "-" else text
    text = text.replace(" (BC)", " BC").removesuffix("Z").removesuffix("+00")
    text = re.sub(r"([+-]\d\d):00$", r"\1", text)
    return re.sub(r"\.(\d+?)0*(?!\d)", r".\1", text) if "." in text else text


def _interval(text: str) -> str:
    """Months, days and microseconds of an ISO 8601 duration."""
    sign = -1 if text.startswith("-") else 1
    found = re.fullmatch(
        r"-?P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(-?)(\d+)(?:\.(\d+))?S)?", text
    )
    assert found, text
    years, months, days = (int(part or 0) for part in found.group(1, 2, 3))
    micro = int(found[5] or 0) * 10**6 + int((found[6] or "").ljust(6, "0"))
    micro = -micro if found[4] else micro
    return f"{sign * (years * 12 + months)} {sign * days} {sign * micro}"
