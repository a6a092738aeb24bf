"""A table with a column of every type of a database, with values that are hard to write."""

from __future__ import annotations

from contract.surfaces.engine_shops import EngineShop

COLUMNS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "sqlite": (
        ("INTEGER", ("0", "9223372036854775807", "-9223372036854775808")),
        ("REAL", ("1.5", "-0.1", "1e300", "9e999", "-9e999")),
        ("TEXT", ("'x'", "''", "CAST(x'610062' AS TEXT)")),
        ("BLOB", ("x'00ff27'", "x''")),
        ("NUMERIC", ("12.5", "'12,5'")),
        ("", ("1", "'1'", "1.0", "x'31'")),
    ),
    "duckdb": (
        ("BOOLEAN", ("true", "false")),
        ("TINYINT", ("-128",)),
        ("HUGEINT", ("-170141183460469231731687303715884105728",)),
        ("UBIGINT", ("18446744073709551615",)),
        ("DOUBLE", ("1.5", "'nan'", "'inf'", "'-inf'", "1e300")),
        ("FLOAT", ("0.1", "3.4028235e38")),
        ("DECIMAL(18,3)", ("12.500", "-0.001")),
        ("VARCHAR", ("'x'", "'a' || chr(0) || 'b'")),
        ("BLOB", ("'\\x00\\xff'::BLOB", "''::BLOB")),
        ("DATE", ("'2026-01-02'", "'infinity'", "'0044-03-15 (BC)'")),
        ("TIME", ("'03:04:05.000006'",)),
        ("TIMETZ", ("'03:04:05+00'", "'03:04:05+05:30'")),
        ("TIMESTAMP", ("'2026-01-02 03:04:05.6'", "'-infinity'")),
        ("TIMESTAMP_NS", ("'2026-01-02 03:04:05.123456789'",)),
        ("TIMESTAMPTZ", ("'2026-01-02 03:04:05.6+02'",)),
        ("INTERVAL", ("INTERVAL '1 year 2 months -3 days 04:05:06.5'", "INTERVAL '0 days'",
                      "INTERVAL '-1 year -2 hours'", "INTERVAL '-500 milliseconds'")),
        ("UUID", ("'9f1f0c3e-2e3d-4b14-9c3a-1d2f4ad1f6f1'",)),
        ("BIT", ("'0101'",)),
        ("ENUM('a', 'b''c')", ("'b''c'",)),
        ("INTEGER[]", ("[1, NULL, 3]", "[]")),
        ("VARCHAR[][]", ("[['it''s', 'b\\'], NULL]",)),
        ("INTERVAL[]", ("[INTERVAL '1 month 2 days']",)),
        ("DATE[2]", ("['2026-01-02', NULL]",)),
        ("STRUCT(\"a b\" INTEGER, c STRUCT(d DATE, e INTERVAL))",
         ("{'a b': 1, 'c': {'d': '2026-01-02', 'e': INTERVAL '1 day'}}",)),
        ("MAP(VARCHAR, INTEGER)", ("MAP {'it''s': 1, '': NULL}", "MAP {}")),
        ("TUPLE(INTEGER, VARCHAR, DATE)", ("row(1, 'it''s', '2026-01-02')", "row(2, NULL, NULL)")),
        ("STRUCT(m MAP(INTEGER, STRUCT(x INTEGER)))[]", ("[{'m': MAP {1: {'x': 2}}}]",)),
    ),
    "postgres": (
        ("boolean", ("true", "false")),
        ("bigint", ("-9223372036854775808",)),
        ("double precision", ("1.5", "'NaN'", "'-Infinity'", "1e300")),
        ("real", ("0.1",)),
        ("numeric", ("12.500", "-0.001", "'NaN'", "123456789012345678901234567890.5")),
        ("money", ("'-12.50'",)),
        ("text", ("'x'",)),
        ("char(5)", ("'ab'",)),
        ("bytea", ("'\\x00ff27'", "''")),
        ("date", ("'2026-01-02'", "'infinity'", "'0044-03-15 BC'")),
        ("time", ("'03:04:05.000006'",)),
        ("timetz", ("'03:04:05+00'", "'03:04:05+05:30'")),
        ("timestamp", ("'2026-01-02 03:04:05.6'", "'-infinity'", "'0044-03-15 01:00:00 BC'")),
        ("timestamptz", ("'2026-01-02 03:04:05.6+02'",)),
        ("interval", ("'1 year 2 mons -3 days 04:05:06.5'", "'0'", "'-1 year -2 hours'",
                      "'-0.5 seconds'")),
        ("uuid", ("'9f1f0c3e-2e3d-4b14-9c3a-1d2f4ad1f6f1'",)),
        ("json", ("'{\"a\":  [1, \"it''s \\\\ \"]}'", "'null'")),
        ("jsonb", ("'{\"b\": 1.50}'", "'\"x\"'")),
        ("inet", ("'10.0.0.1/8'",)),
        ("bit(4)", ("'0101'",)),
        ("int4range", ("'[1,5)'",)),
        ("point", ("'(1,2)'",)),
        ("tsvector", ("'a:1 b''c:2'",)),
        ("integer[]", ("'{1,NULL,3}'", "'{}'", "'{{1,2},{3,4}}'")),
        ("text[]", ("ARRAY['it''s', 'b\\', 'say \"so\"', '', 'NULL', NULL, 'a,{b}']",)),
        ("bytea[]", ("ARRAY['\\x00ff'::bytea, ''::bytea]",)),
        ("date[]", ("'{2026-01-02}'",)),
        ("interval[]", ("ARRAY['-1 year'::interval, '1 day 00:00:01']",)),
        ("jsonb[]", ("ARRAY['{\"a\": \"b\\\\c\"}'::jsonb]",)),
        ("boolean[]", ("'{t,f,NULL}'",)),
        ("double precision[]", ("'{1.5,NaN,-Infinity}'",)),
        ("numeric[]", ("'{1.50}'",)),
    ),
    "mysql": (
        ("TINYINT(1)", ("0", "-128")),
        ("BIGINT UNSIGNED", ("18446744073709551615",)),
        ("DOUBLE", ("1.5", "1e300")),
        ("DECIMAL(30,3)", ("12.500", "-0.001", "123456789012345678901234567.125")),
        ("TEXT", ("'x'", "'a\\0b'")),
        ("VARCHAR(20) CHARACTER SET latin1", ("'é\\\\'",)),
        ("BLOB", ("x'00ff27'", "x''")),
        ("BINARY(3)", ("x'00ff27'",)),
        ("BIT(9)", ("b'100000001'",)),
        ("DATE", ("'2026-01-02'",)),
        ("TIME(6)", ("'03:04:05.000006'", "'-25:00:01.5'", "'838:59:59'", "'-00:00:01'")),
        ("DATETIME(6)", ("'2026-01-02 03:04:05.6'",)),
        ("TIMESTAMP(6) NULL", ("'2026-01-02 03:04:05.6'",)),
        ("YEAR", ("2026",)),
        ("ENUM('a', 'b''c')", ("'b''c'",)),
        ("SET('a', 'b')", ("'a,b'", "''")),
        ("JSON", ("'{\"a\": \"it''s\"}'",)),
        ("POINT", ("ST_GeomFromText('POINT(1 2.5)')",)),
        ("UUID", ("'9f1f0c3e-2e3d-4b14-9c3a-1d2f4ad1f6f1'",)),
        ("INET6", ("'::1'",)),
    ),
}  # fmt: skip


def make_typed(engine_shop: EngineShop) -> None:
    """Make the table `typed`, with one value in each row."""
    kinds = [kind for kind, _ in COLUMNS[engine_shop.dialect]]
    engine_shop.script(
        "CREATE TABLE typed (id INTEGER, "
        + ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds))
        + ")"
    )
    number = 0
    for place, (_, values) in enumerate(COLUMNS[engine_shop.dialect]):
        for value in values:
            engine_shop.script(f"INSERT INTO typed (id, c{place}) VALUES ({number}, {value})")
            number += 1


def contents(engine_shop: EngineShop, table: str) -> list[str]:
    shown = f"{table}::text" if engine_shop.dialect == "postgres" else "*"
    return [repr(row) for row in engine_shop.look(f"SELECT {shown} FROM {table} ORDER BY id")]
