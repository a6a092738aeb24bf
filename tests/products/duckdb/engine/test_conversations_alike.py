"""What DuckDB said of a query is taken for those that differ in plain values. Each reply and each
line of the record and of the history is that of a server that asks DuckDB about every query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.repeated_conversation import Desk, compare, with_other_values
from tidegate.products.duckdb.engine import engine

SHOP = """
CREATE TABLE customers (
    id INTEGER, email VARCHAR, price DECIMAL(9, 2), day DATE, big HUGEINT, x DOUBLE);
INSERT INTO customers SELECT
    i, 'name' || i || '@example.org', i * 1.25, DATE '2026-01-01' + i::INTEGER, 2::HUGEINT ** i,
    i / 2
FROM range(60) t(i);
CREATE SEQUENCE s;
CREATE VIEW counted AS SELECT nextval('s') AS n, id FROM customers;
CREATE VIEW dear AS SELECT id, price, day FROM customers WHERE price > 5;
"""
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "hidden": {
        "masks": [{"column": "customers.email", "show": "hash"}],
        "filters": [{"table": "customers", "where": "id < 40"}],
    },
}
STATEMENTS = (
    "SELECT id, email FROM customers WHERE id = 1",
    "SELECT email FROM customers WHERE email = 'name1@example.org'",
    "SELECT * FROM customers WHERE id < 9 ORDER BY id",
    "SELECT id, x FROM customers WHERE id < 50 ORDER BY 1",
    "SELECT price, day FROM dear WHERE id = 7",
    "SELECT n FROM counted WHERE id = 5",
    "SELECT id FROM customers ORDER BY 5",
    "SELECT day FROM customers WHERE day = '2026-01-05'",
    "SELECT big FROM customers WHERE big > 9 LIMIT 3",
    "SELECT 999 AS n, struct_extract(row(1, 'b'), 2) AS b",
    "SELECT nothing FROM customers WHERE id = 5",
    "SELECT * FROM range(3) LIMIT 2",
    "SELECT * FROM read_csv('shop.csv') LIMIT 3",
    "UPDATE customers SET email = 'x' WHERE id = 3",
    "DELETE FROM customers WHERE id = 3",
    "COPY customers TO 'shop.csv'",
)


@pytest.mark.parametrize("name", SETTINGS)
def test_queries_alike_say_and_record_what_each_would_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(SHOP)

    async def script(desk: Desk) -> None:
        line = await desk.line(desk.token())
        for sql in STATEMENTS:
            for text in (sql, with_other_values(sql), sql):
                await line.call({"sql": text})

    also = ((engine, "_alike", lambda statement: ""),)
    recognized = compare(
        *(tmp_path, monkeypatch, script), also=also, url=f"duckdb:///{path}", **SETTINGS[name]
    )
    assert sum(recognized) > 2 * len(STATEMENTS)
