"""`execute_query` and `confirm_destructive_operation`: what they change, and what they do not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from contract.surfaces.engine_shops import EngineShop
from support.surface_client import OWNER, READER, WRITER, Peer
from support.surface_gateway import SHOP_ID
from tidegate.model.actors import Actor
from tidegate.surfaces.confirmation import PHRASE

KEYS = ["columns", "rows", "row_count", "rows_affected", "execution_time_ms", "is_truncated"]
READ_ONLY = "Forbidden: Connection is read-only for external clients"
SAFE = "Forbidden: Cannot execute write queries: connection is read-only"
LACKS = "Forbidden: Principal lacks tools:write scope required for write queries"
DESTRUCTIVE = (
    "Forbidden: Destructive queries (DROP, TRUNCATE, ALTER...DROP) cannot be executed via"
    " execute_query. Use confirm_destructive_operation."
)
UNQUALIFIED = (
    "Forbidden: Changes of every row of a table cannot be executed via execute_query."
    " Use confirm_destructive_operation."
)
MULTIPLE = (
    "Invalid params: Multi-statement queries are not supported. Send one statement at a time."
)
NEEDLESS = (
    "Invalid params: This tool only accepts destructive queries (DROP, TRUNCATE, ALTER...DROP)."
    " Use execute_query for other queries."
)


def state(engine_shop: EngineShop) -> list[Any]:
    """The rows of the shop."""
    return [
        sorted(engine_shop.look(f"SELECT * FROM {table}"), key=repr)
        for table in ("customers", "orders", "void")
    ]


@pytest.mark.parametrize(
    ("query", "rows", "affected"),
    [
        ("INSERT INTO void VALUES (1, 'a'), (2, NULL)", [], 2),
        ("UPDATE orders SET total = 1 WHERE id < 3", [], 2),
        ("DELETE FROM orders WHERE id = 3", [], 1),
        ("DELETE FROM orders WHERE id = 99", [], 0),
        ("INSERT INTO void VALUES (1, 'a'), (2, NULL) RETURNING id, name",
         [["1", "a"], ["2", None]], 2),
        ("DELETE FROM orders WHERE id = 3 RETURNING id", [["3"]], 1),
    ],
)  # fmt: skip
def test_a_change_tells_its_rows(
    engine_shop: EngineShop, query: str, rows: list[list[str | None]], affected: int
) -> None:
    before = state(engine_shop)
    shown = engine_shop.result("execute_query", query=query)
    assert list(shown) == KEYS
    assert sorted(shown["rows"]) == rows
    assert (shown["row_count"], shown["rows_affected"]) == (len(rows), affected)
    assert (state(engine_shop) != before) is bool(affected)


def test_a_change_that_returns_more_rows_than_wanted_is_made_whole(engine_shop: EngineShop) -> None:
    query = "DELETE FROM orders WHERE id <> 2 RETURNING id"
    shown = engine_shop.result("execute_query", query=query, max_rows=1)
    assert (shown["row_count"], shown["is_truncated"]) == (1, True)
    assert shown["rows_affected"] == 2
    assert engine_shop.count("orders") == 1


@pytest.mark.parametrize(
    ("query", "actor", "settings", "code", "message"),
    [
        ("DELETE FROM orders WHERE id = 1", READER, {}, -32007, LACKS),
        ("INSERT INTO void VALUES (1, 'a') RETURNING id", READER, {}, -32007, LACKS),
        ("DELETE FROM orders WHERE id = 1", WRITER, {"access": "read"}, -32007,
         READ_ONLY),
        ("UPDATE orders SET total = 0 WHERE id = 1", OWNER, {"access": "read"},
         -32007, READ_ONLY),
        ("DELETE FROM orders WHERE id = 1", OWNER, {"changes": "deny"}, -32007, SAFE),
        ("DROP TABLE orders", WRITER, {}, -32007, DESTRUCTIVE),
        ("/* x */ drop\ttable orders", OWNER, {}, -32007, DESTRUCTIVE),
        ("TRUNCATE TABLE orders", WRITER, {}, -32007, DESTRUCTIVE),
        ("ALTER TABLE orders\nDROP\tCOLUMN total", WRITER, {}, -32007, DESTRUCTIVE),
        ("DELETE FROM orders", WRITER, {}, -32007, UNQUALIFIED),
        ("UPDATE orders SET total = 0", OWNER, {}, -32007, UNQUALIFIED),
        ("SELECT 1; DELETE FROM orders WHERE id = 1", WRITER, {}, -32602, MULTIPLE),
        ("DELETE FROM orders WHERE id = 1 -- " + "x" * 102_400, WRITER, {}, -32602,
         "Invalid params: Query exceeds 100KB limit"),
        ("SELECT 1", WRITER, {"access": "none"}, -32007,
         "Forbidden: External access is disabled for this connection"),
        ("SELECT 1", WRITER, {"agents": "deny"}, -32007,
         "Forbidden: AI access is disabled for this connection"),
    ],
)  # fmt: skip
def test_a_refused_statement_changes_nothing(
    engine_shop: EngineShop,
    query: str,
    actor: Actor,
    settings: dict[str, Any],
    code: int,
    message: str,
) -> None:
    if query.startswith("TRUNCATE") and engine_shop.dialect == "sqlite":
        pytest.skip("SQLite has no TRUNCATE")
    before = state(engine_shop)
    error = engine_shop.error("execute_query", actor, settings, query=query)
    assert (error["code"], error["message"]) == (code, message)
    assert error["data"]["hint"]
    assert state(engine_shop) == before


def confirm(engine_shop: EngineShop, actor: Actor = WRITER, settings: dict[str, Any] | None = None,
            *, allow: bool | None = None, **arguments: Any) -> list[dict[str, Any]]:  # fmt: skip
    """The replies to a confirmation, and, once a person decided, to the same call again."""
    given = {
        "connection_id": SHOP_ID, "query": "DROP TABLE orders", "confirmation_phrase": PHRASE,
    } | arguments  # fmt: skip
    gate = engine_shop.gate(**(settings or {}))

    async def talk(peer: Peer) -> list[dict[str, Any]]:
        replies = [await peer.call("confirm_destructive_operation", **given)]
        if allow is not None:
            (question,) = gate.approvals.list()
            state = "allowed" if allow else "denied"
            await asyncio.to_thread(gate.approvals.resolve, question.id, state, "Ada")
            replies += [await peer.call("confirm_destructive_operation", **given) for _ in "12"]
        return replies

    return engine_shop.converse(talk, actor, gate=gate)


def tables(engine_shop: EngineShop) -> int:
    """How many orders there are, -1 if the table is gone."""
    try:
        return engine_shop.count("orders")
    except Exception:  # noqa: BLE001 - each driver has its own
        return -1


def test_the_phrase_alone_runs_nothing(engine_shop: EngineShop) -> None:
    (reply,) = confirm(engine_shop)
    assert reply["error"]["code"] == -32007
    assert reply["error"]["message"] == "Forbidden: A person must approve this call"
    assert reply["error"]["data"]["code"] == "approval.needed"
    assert engine_shop.count("orders") == 3


@pytest.mark.parametrize(
    "query", ["DROP TABLE orders", "DELETE FROM orders", "ALTER TABLE void DROP COLUMN name"]
)
def test_the_phrase_and_a_person_run_it_once(engine_shop: EngineShop, query: str) -> None:
    if query.startswith("DROP"):
        engine_shop.script("DROP VIEW big_orders")
    asked, done, again = confirm(engine_shop, allow=True, query=query)
    assert asked["error"]["data"]["code"] == "approval.needed"
    assert list(done["result"]["structuredContent"]) == KEYS
    assert "error" in again
    if query.startswith("ALTER"):
        columns = engine_shop.result("describe_table", table="void")["columns"]
        assert [column["name"] for column in columns] == ["id"]
    else:
        assert tables(engine_shop) == (-1 if query.startswith("DROP") else 0)


def test_what_a_person_denies_does_not_run(engine_shop: EngineShop) -> None:
    _, denied, again = confirm(engine_shop, allow=False)
    for reply in (denied, again):
        assert reply["error"]["data"]["code"] == "approval.declined"
        assert reply["error"]["code"] == -32007
    assert engine_shop.count("orders") == 3


@pytest.mark.parametrize("phrase", ["", "yes", PHRASE + " ", PHRASE.upper(), PHRASE + "."])
def test_another_phrase_is_an_invalid_confirmation(engine_shop: EngineShop, phrase: str) -> None:
    (reply,) = confirm(engine_shop, settings={"unattended": "allow"}, confirmation_phrase=phrase)
    assert reply["error"]["code"] == -32602
    assert "invalid confirmation" in reply["error"]["message"]
    assert f"confirmation_phrase must be exactly: {PHRASE}" in reply["error"]["message"]
    assert engine_shop.count("orders") == 3


@pytest.mark.parametrize(
    ("actor", "settings", "query", "code", "message"),
    [
        (READER, {}, "DROP TABLE orders", -32007,
         "Forbidden: Tool 'confirm_destructive_operation' requires additional scopes"),
        (OWNER, {"access": "read"}, "DROP TABLE orders", -32007, READ_ONLY),
        (OWNER, {"changes": "deny"}, "DROP TABLE orders", -32007, SAFE),
        (WRITER, {"destructive_scope": "fullAccess"}, "DROP TABLE orders", -32007,
         "Forbidden: Destructive statements on this source need the scope fullAccess; the caller"
         " has readWrite"),
        (WRITER, {}, "SELECT 1", -32602, NEEDLESS),
        (WRITER, {}, "INSERT INTO void VALUES (1, 'a')", -32602, NEEDLESS),
        (WRITER, {"unqualified": "deny"}, "DELETE FROM orders", -32007,
         "Forbidden: The source does not admit changes of every row of a table"),
        (WRITER, {}, "DROP TABLE orders; DROP TABLE void", -32602, MULTIPLE),
    ],
)  # fmt: skip
def test_what_may_not_be_confirmed_changes_nothing(
    engine_shop: EngineShop,
    actor: Actor,
    settings: dict[str, Any],
    query: str,
    code: int,
    message: str,
) -> None:
    before = state(engine_shop)
    (reply,) = confirm(engine_shop, actor, {"unattended": "allow"} | settings, query=query)
    assert (reply["error"]["code"], reply["error"]["message"]) == (code, message)
    assert state(engine_shop) == before


def test_full_access_confirms_where_that_is_demanded(engine_shop: EngineShop) -> None:
    engine_shop.script("DROP VIEW big_orders")
    settings = {"destructive_scope": "fullAccess", "unattended": "allow"}
    (reply,) = confirm(engine_shop, OWNER, settings)
    assert "result" in reply
    assert tables(engine_shop) == -1


def test_unattended_where_the_operator_says_so_needs_the_phrase_only(
    engine_shop: EngineShop,
) -> None:
    (reply,) = confirm(engine_shop, settings={"unattended": "allow"}, query="DELETE FROM orders")
    assert reply["result"]["structuredContent"]["rows_affected"] == 3
    assert engine_shop.count("orders") == 0
