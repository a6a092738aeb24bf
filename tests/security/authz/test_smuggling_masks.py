"""What is hidden from a caller comes out by no tool: no result, plan, export, error or history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.authz_engines import ENGINES, HIDDEN
from support.authz_server import Harness, play

pytestmark = pytest.mark.needs("workbench")

SECRETS = ("ada@example.org", "omar@example.org", "987654")
"""Values of the masked column, and of the row that the filter hides."""

MASKS = tuple(mask | {"except_tokens": ["owner"]} for mask in HIDDEN["masks"])
FILTERS = tuple(rule | {"except_tokens": ["owner"]} for rule in HIDDEN["filters"])
STATEMENTS = (
    "SELECT * FROM customers",
    "SELECT email FROM customers ORDER BY email",
    "SELECT lower(email) AS full_name FROM customers",
    "SELECT max(email) FROM customers GROUP BY full_name",
    "SELECT c.email FROM customers AS c JOIN orders AS o ON o.customer_id = c.id",
    "WITH c AS (SELECT * FROM customers) SELECT email FROM c",
    "SELECT CAST(email AS INTEGER) FROM customers",
    "SELECT 1 / (total - 987654) FROM orders",
    "SELECT total FROM big_orders",
    "SELECT total FROM orders WHERE id = 3",
    "SELECT sum(total) - 200 FROM orders",
    "SELECT email FROM customers UNION SELECT full_name FROM customers",
    "INSERT INTO orders SELECT id + 10, id, 5 FROM customers WHERE email LIKE 'ada%'",
    "UPDATE customers SET full_name = email WHERE id = 1",
    "DELETE FROM orders WHERE id = 3",
)
TOOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_tables", {"include_row_counts": True}),
    ("describe_table", {"table": "customers"}),
    ("describe_table", {"table": "orders"}),
    ("get_table_ddl", {"table": "big_orders"}),
    ("find_tables", {"words": "ada"}),
    ("search_schema", {"term": "ada"}),
    ("browse_table", {"table": "customers", "sort": [{"column": "email"}]}),
    ("browse_table", {"table": "orders"}),
    ("browse_table", {"table": "big_orders"}),
    ("export_data", {"format": "csv", "tables": ["customers", "orders"]}),
    ("export_data", {"format": "sql", "tables": ["big_orders"]}),
    ("insert_rows", {"table": "orders", "columns": ["id"], "rows": [[3]]}),
    ("get_server_dashboard", {}),
    ("search_query_history", {"query": ""}),
    ("list_recent_tabs", {}),
)


async def everything(harness: Harness, name: str) -> list[str]:
    """All that every tool answers to one caller, with its own questions taken out."""
    (peer,) = await harness.peers("workbench", name)
    (core,) = await harness.peers("core", name)
    where = {"connection_id": harness.source.id}
    replies = [await peer.call(tool, **where, **arguments) for tool, arguments in TOOLS]
    for text in STATEMENTS:
        replies += [
            await peer.call("execute_query", **where, query=text),
            await peer.call("explain_query", **where, query=text),
            await peer.call("export_data", **where, format="json", query=text),
            await core.call("query", source=harness.source.name, sql=text, max_rows=1),
            await core.call("explain", source=harness.source.name, sql=text),
        ]
    for path in ("schema", "history"):
        uri = f"tablepro://connections/{harness.source.id}/{path}"
        replies.append(await peer.request("resources/read", uri=uri))
    return [repr(reply).replace("total - 987654", "") for reply in replies]


@pytest.mark.parametrize("engine", ENGINES)
def test_no_tool_tells_what_is_hidden(tmp_path: Path, engine: str) -> None:
    async def talk(harness: Harness) -> tuple[list[str], list[str], bool]:
        seen = await everything(harness, "owner")
        before = harness.shop.digest()
        reported = await everything(harness, "writer")
        return seen, reported, harness.shop.digest() == before

    rules = {"masks": MASKS, "filters": FILTERS, "access": "read"}
    seen, reported, untouched = play(tmp_path, engine, "readWrite", talk, settings=rules)
    for secret in SECRETS:
        assert any(secret in reply for reply in seen)
        assert [reply for reply in reported if secret in reply] == []
    assert untouched


@pytest.mark.parametrize("engine", ENGINES)
def test_a_filter_on_what_is_masked_finds_nothing_out(tmp_path: Path, engine: str) -> None:
    guess = {"column": "email", "operator": "equals", "value": "ada@example.org"}

    async def talk(harness: Harness) -> list[list[Any]]:
        found: list[list[Any]] = []
        where = {"connection_id": harness.source.id, "table": "customers", "filters": [guess]}
        for name in ("owner", "writer"):
            (peer,) = await harness.peers("workbench", name)
            rows = (await peer.call("browse_table", **where)).get("result", {})
            count = (await peer.call("count_rows", **where)).get("result", {})
            found.append([
                rows.get("structuredContent", {}).get("row_count", 0),
                count.get("structuredContent", {}).get("row_count", 0),
            ])  # fmt: skip
        return found

    rules = {"masks": MASKS, "filters": FILTERS}
    assert play(tmp_path, engine, "readWrite", talk, settings=rules) == [[1, 1], [0, 0]]


def test_a_statement_of_another_is_not_in_the_history_of_who_sees_less(tmp_path: Path) -> None:
    text = "SELECT id FROM customers WHERE email = 'ada@example.org'"

    async def talk(harness: Harness) -> list[int]:
        counts: list[int] = []
        where = {"connection_id": harness.source.id}
        (owner,) = await harness.peers("workbench", "owner")
        await owner.result("execute_query", **where, query=text)
        for name in ("owner", "writer", "reader"):
            (peer,) = await harness.peers("workbench", name)
            await peer.result("execute_query", **where, query="SELECT id FROM customers")
            for more in ({}, where):
                found = await peer.result("search_query_history", query="customers", **more)
                entries = found["structuredContent"]["entries"]
                counts.append(len(entries))
                assert name == "owner" or text not in {entry["query"] for entry in entries}
        return counts

    rules = {"masks": MASKS}
    counts = play(tmp_path, "sqlite", "readWrite", talk, settings=rules)
    assert counts == [2, 2, 1, 1, 1, 1]
