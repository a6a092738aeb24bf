"""Results whose values are hard to write as code, for the writers of fixtures."""

from __future__ import annotations

import datetime
import importlib.util
import random
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from tidegate.products.jdbc.fixtures import FixtureColumn, FixtureResult

TEXTS = (
    "", "plain", "it's \"quoted\" \\ back", "\\u0041 \\\\u000a \\", "line\nbreak\r\n\ttab\b\f\0",
    "\x1a\x7f",
    "*/ // /* ${x} $y {0} %s", "Zoë Ångström", "日本語", "😀 astral", "\u2028\u2029\ufeff\u202e",
    "'''\"\"\"", "null", "7" * 9, "\x80\xff\u0100\ufffd\uffff", "a\\", '"', "\\\"",
)  # fmt: skip

_PARIS = datetime.timezone(datetime.timedelta(hours=2))
_ODD = datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))

VALUES: dict[str, tuple[str, str, str, list[object]]] = {
    "bool": ("boolean", "java.lang.Boolean", "Boolean", [True, False]),
    "flag": ("integer", "java.lang.Boolean", "Boolean", [1, 0]),
    "byte": ("integer", "java.lang.Byte", "Byte", [-128, 127]),
    "short": ("integer", "java.lang.Short", "Short", [-32768, 32767]),
    "int": ("integer", "java.lang.Integer", "Integer", [-(2**31), 2**31 - 1, 0]),
    "widened": ("integer", "java.lang.Integer", "Long", [1, 2**31]),
    "long": ("integer", "java.lang.Long", "Long", [-(2**63), 2**63 - 1, 2**53 + 1]),
    "huge": ("integer", "java.math.BigInteger", "BigDecimal", [2**64, -(10**38)]),
    "decimal": ("decimal", "java.math.BigDecimal", "BigDecimal",
                [Decimal("1.50"), Decimal("-0.000000000000000000001"), Decimal("1E+30"),
                 Decimal("12345678901234567890.123456789"), Decimal("0E-10")]),
    "odd decimal": ("decimal", "java.math.BigDecimal", "String", [Decimal("NaN"), Decimal("1.5")]),
    "double": ("float", "java.lang.Double", "Double",
               [float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7976931348623157e308,
                0.1, 1e16, 100.0]),
    "float": ("float", "java.lang.Float", "Float",
              [float("nan"), float("inf"), 0.1, 0.10000000149011612, 3.4028234663852886e38, -0.0]),
    "wide float": ("float", "java.lang.Float", "Double", [0.1234567890123, 1e300]),
    "text": ("text", "java.lang.String", "String", list(TEXTS)),
    "bytes": ("bytes", "[B", "byte[]", [b"", b"\x00\xff", bytes(range(256))]),
    "date": ("date", "java.sql.Date", "Date",
             [datetime.date(2026, 2, 28), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    "lost date": ("date", "java.sql.Date", "String", [datetime.date(1582, 10, 10)]),
    "infinite date": ("date", "java.sql.Date", "String", ["infinity", datetime.date(2026, 1, 1)]),
    "time": ("time", "java.sql.Time", "Time",
             [datetime.time(23, 59, 59), datetime.time(1, 2, 3, 4000), datetime.time()]),
    "fine time": ("time", "java.sql.Time", "LocalTime", [datetime.time(1, 2, 3, 4)]),
    "timestamp": ("timestamp", "java.sql.Timestamp", "Timestamp",
                  [datetime.datetime(2026, 1, 31, 12, 0, 0, 123456),
                   datetime.datetime(2026, 1, 31), datetime.datetime(1999, 12, 31, 23, 59, 59)]),
    "instant": ("timestamp_tz", "java.sql.Timestamp", "Timestamp",
                [datetime.datetime(2026, 7, 1, 12, 30, tzinfo=_PARIS),
                 datetime.datetime(2026, 7, 1, 12, 30, 0, 1, tzinfo=datetime.UTC)]),
    "offset": ("timestamp_tz", "java.time.OffsetDateTime", "OffsetDateTime",
               [datetime.datetime(2026, 7, 1, 12, 30, tzinfo=_ODD),
                datetime.datetime(2026, 7, 1, 12, 30, 5, 600000, tzinfo=datetime.UTC)]),
    "uuid": ("uuid", "java.util.UUID", "UUID", [UUID(int=7)]),
    "interval": ("interval", "java.lang.String", "String", [datetime.timedelta(days=1, seconds=2)]),
    "array": ("array", "java.sql.Array", "String", [[1, None, "a\"b"]]),
    "mixed": ("other", "java.lang.Integer", "String", [1, "a", b"\x01"]),
    "nothing": ("other", "", "String", []),
    "nothing known": ("date", "java.sql.Date", "Date", []),
}  # fmt: skip
"""By name: kind and class of the column, the class that it gets in Java, and values."""


def values_result() -> FixtureResult:
    """Each of the values, and null, in a column of its own."""
    columns = tuple(
        FixtureColumn(name, kind, java_class)  # type: ignore[arg-type]
        for name, (kind, java_class, _, _) in VALUES.items()
    )
    lists = [values for _, _, _, values in VALUES.values()]
    rows = [
        tuple([values[at] if at < len(values) else None for values in lists])
        for at in range(max(map(len, lists)) + 1)
    ]
    sql = "SELECT '\\u0022 \"' /* */\n FROM t"
    return FixtureResult("all values", sql, (), columns, tuple(rows))


def wide_result() -> FixtureResult:
    """As many columns as a row list has; the labels are hard names."""
    labels = ["class", "Class", "a b", "", "_x", "1st", "é", "count", '"q"', "None"]
    labels += [f"c{n}" for n in range(42)]
    columns = tuple(FixtureColumn(label, "integer", "java.lang.Integer") for label in labels)
    return FixtureResult("wide", "SELECT ?", (7,), columns, (tuple(range(52)),))


def large_result() -> FixtureResult:
    """Texts and bytes beyond a constant, and more rows than a method or a class has room for."""
    chance = random.Random(7)
    long = (
        "x" * 70_000,
        "é" * 40_000,
        "".join(chance.choices('a\n"\\日😀', k=50_000)),
        "😀" * 40_000,
    )
    columns = tuple(
        FixtureColumn(name, "other", java_class)
        for name, java_class in (
            ("n", "java.lang.Long"), ("t", "java.lang.String"), ("d", "java.math.BigDecimal"),
            ("b", "[B"),
        )
    )  # fmt: skip
    rows = [(n, value, Decimal(n), chance.randbytes(40_000)) for n, value in enumerate(long)]
    rows += [(n, f"row {n}", Decimal(n) / 8, b"%d" % n) for n in range(2_100)]
    return FixtureResult("large", "SELECT " + "1, " * 30_000 + "1", (), columns, tuple(rows))


def import_code(code: str, path: Path) -> Any:
    """The generated module of Python, from a file at `path`."""
    path.write_text(code, "ascii")
    spec = importlib.util.spec_from_file_location("written", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["written"] = module  # where named tuples look for their annotations
    spec.loader.exec_module(module)
    return module
