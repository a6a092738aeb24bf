"""Writes by way of tools that are for something else: each ends in a refusal and changes nothing.

The caller may write; it is the way that is closed. On every engine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.authz_calls import PHRASE
from support.authz_engines import ENGINES
from support.authz_server import Harness, play
from support.surface_client import Peer

pytestmark = pytest.mark.needs("workbench")

WRITES = (
    "DELETE FROM orders WHERE id = 1",
    "UPDATE orders SET total = 0 WHERE id = 1",
    "INSERT INTO orders (id, customer_id, total) VALUES (9, 1, 1)",
    "DROP TABLE orders",
    "CREATE TABLE stolen AS SELECT * FROM customers",
)
ANALYSING = (
    "ANALYZE {}",
    "(ANALYZE) {}",
    "(ANALYZE, BUFFERS) {}",
    "(VERBOSE, ANALYZE true) {}",
    "/* plain */ ANALYZE {}",
    "ANALYZE /* */ {}",
    "analyze\n{}",
    "FORMAT=JSON {0}; {0}",
    "ANALYZE FORMAT=JSON {}",
    "SELECT 1; {}",
    "QUERY PLAN SELECT 1; {}",
)
VALUES = (
    "' OR 1=1 -- ",
    "\\' OR 1=1 -- ",
    "'; DROP TABLE orders; --",
    "x' UNION SELECT email FROM customers --",
    "%",
    "\\",
    "$$; DROP TABLE orders; $$",
)
NAMES = (
    "id; DROP TABLE orders",
    'id" = 1 OR 1=1 --',
    "id` = 1 OR 1=1 -- ",
    "(SELECT email FROM customers)",
    "id FROM customers --",
)
Talked = tuple[list[dict[str, Any]], bool]


def attack(directory: Path, engine: str, talk: Any, setting: str = "readWrite") -> Talked:
    """The replies that `talk(harness, peer)` collects as the writer; whether nothing changed."""

    async def whole(harness: Harness) -> Talked:
        (peer,) = await harness.peers("workbench", "writer")
        before = harness.shop.digest()
        replies = await talk(harness, peer)
        return replies, harness.shop.digest() == before

    return play(directory, engine, setting, whole)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_export_does_not_write(tmp_path: Path, engine: str) -> None:
    async def talk(harness: Harness, peer: Peer) -> list[dict[str, Any]]:
        where = {"connection_id": harness.source.id, "format": "csv"}
        replies = [await peer.call("export_data", **where, query=text) for text in WRITES]
        for name in ("orders; DROP TABLE orders", "orders) AS x; --", "orders WHERE 1=1"):
            replies.append(await peer.call("export_data", **where, tables=[name]))
        return replies

    replies, untouched = attack(tmp_path, engine, talk)
    assert all("error" in reply for reply in replies)
    assert untouched


@pytest.mark.parametrize("engine", ENGINES)
def test_a_refused_export_leaves_no_file(tmp_path: Path, engine: str) -> None:
    downloads = tmp_path / "downloads"
    downloads.mkdir()

    async def scenario(harness: Harness) -> list[dict[str, Any]]:
        (peer,) = await harness.peers("workbench", "writer")
        where = {"connection_id": harness.source.id, "format": "csv"}
        asked = [{"query": text} for text in WRITES] + [{"tables": ["orders", "nowhere"]}]
        paths = ["out.csv", "../out.csv", "/etc/out.csv"]
        return [
            await peer.call("export_data", **where, **one, output_path=path)
            for one in asked
            for path in paths
        ]

    workbench = {"export_directory": str(downloads)}
    replies = play(tmp_path, engine, "readWrite", scenario, workbench=workbench)
    assert all("error" in reply for reply in replies)
    assert list(downloads.iterdir()) == []
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("engine", ENGINES)
def test_asking_for_a_plan_runs_nothing(tmp_path: Path, engine: str) -> None:
    async def talk(harness: Harness, peer: Peer) -> list[dict[str, Any]]:
        where = {"connection_id": harness.source.id}
        (core,) = await harness.peers("core", "writer")
        for text in WRITES:
            await peer.call("explain_query", **where, query=text)
            await peer.call("explain_query", **where, query=text, analyze=True)
        replies: list[dict[str, Any]] = []
        for form in ANALYSING:
            text = form.format("DELETE FROM orders")
            replies.append(await peer.call("explain_query", **where, query=text))
            said = await core.call("explain", source=harness.source.name, sql=text)
            assert said["result"]["isError"] is True, text
        return replies

    replies, untouched = attack(tmp_path, engine, talk)
    assert all("error" in reply for reply in replies)
    assert untouched


@pytest.mark.parametrize("engine", ENGINES)
def test_a_filter_is_a_value_and_never_sql(tmp_path: Path, engine: str) -> None:
    async def talk(harness: Harness, peer: Peer) -> list[dict[str, Any]]:
        where = {"connection_id": harness.source.id, "table": "customers"}
        for value in VALUES:
            for operator in ("equals", "contains", "starts_with", "between"):
                given = {"column": "full_name", "operator": operator, "value": value}
                filters = [given | {"second_value": value}]
                found = await peer.result("browse_table", **where, filters=filters)
                assert found["structuredContent"]["row_count"] == 0, (value, operator)
                counted = await peer.result("count_rows", **where, filters=filters)
                assert counted["structuredContent"]["row_count"] == 0, (value, operator)
        return []

    assert attack(tmp_path, engine, talk) == ([], True)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_is_a_name_and_never_sql(tmp_path: Path, engine: str) -> None:
    async def talk(harness: Harness, peer: Peer) -> list[dict[str, Any]]:
        where = {"connection_id": harness.source.id}
        replies: list[dict[str, Any]] = []
        for name in NAMES:
            condition = {"column": name, "operator": "is_null"}
            for more in (
                {"columns": [name]},
                {"filters": [condition]},
                {"sort": [{"column": name}]},
                {"sort": [{"column": "id", "direction": "asc; DROP TABLE orders"}]},
                {"filters": [{"column": "id", "operator": "= 1 OR", "value": 1}]},
                {"logic": "or 1=1 or"},
            ):
                replies.append(await peer.call("browse_table", **where, table="orders", **more))
            replies.append(await peer.call("browse_table", **where, table=name))
            replies.append(
                await peer.call("insert_rows", **where, table="orders", columns=[name], rows=[[1]])
            )
        return replies

    replies, untouched = attack(tmp_path, engine, talk)
    assert {reply["error"]["code"] for reply in replies} == {-32602}
    assert untouched


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_go_into_tables_alone(tmp_path: Path, engine: str) -> None:
    async def talk(harness: Harness, peer: Peer) -> list[dict[str, Any]]:
        where = {"connection_id": harness.source.id, "columns": ["id"], "rows": [[9]]}
        tables = ("big_orders", "nowhere", "sqlite_master", "pg_class", "orders; --")
        replies = [await peer.call("insert_rows", **where, table=table) for table in tables]
        for schema in ("information_schema", "pg_catalog", "mysql", "elsewhere"):
            for table in ("tables", "pg_class", "user", "orders"):
                replies.append(await peer.call("insert_rows", **where, table=table, schema=schema))
        values = ["1); DROP TABLE orders; --", "' || (SELECT 1) || '"]
        for value in values:  # a value is a parameter: it does not fit, or is kept as it is
            rows = {"columns": ["id"], "rows": [[value]], "table": "orders"}
            replies.append(await peer.call("insert_rows", **(where | rows)))
        return replies

    replies, untouched = attack(tmp_path, engine, talk)
    assert [reply for reply in replies if "error" not in reply] == []
    assert untouched


@pytest.mark.parametrize("engine", ENGINES)
def test_the_phrase_opens_nothing_but_what_it_is_for(tmp_path: Path, engine: str) -> None:
    async def talk(harness: Harness, peer: Peer) -> list[dict[str, Any]]:
        where = {"connection_id": harness.source.id}
        confirm = "confirm_destructive_operation"
        replies = [
            await peer.call(confirm, **where, query=text, **PHRASE)
            for text in (
                "SELECT 1",
                "INSERT INTO orders (id) VALUES (9)",
                "DROP TABLE orders; DROP TABLE customers",
                "SELECT 1; DROP TABLE orders",
                "-- DROP\nINSERT INTO orders (id) VALUES (9)",
            )
        ]
        for phrase in ("", "yes", PHRASE["confirmation_phrase"].lower(), " I understand"):
            replies.append(
                await peer.call(
                    confirm, **where, query="DROP TABLE orders", confirmation_phrase=phrase
                )
            )
        replies.append(await peer.call(confirm, **where, query="DROP TABLE orders"))
        return replies

    replies, untouched = attack(tmp_path, engine, talk, "unattended")
    assert all("error" in reply for reply in replies)
    assert untouched


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("field", ["database", "schema"])
def test_a_place_is_a_name_and_moves_no_refused_statement(
    tmp_path: Path, engine: str, field: str
) -> None:
    places = ("x; DROP TABLE orders", "x'; --", "../shop", "/etc/passwd", "nowhere")

    async def talk(harness: Harness, peer: Peer) -> list[dict[str, Any]]:
        where = {"connection_id": harness.source.id}
        await peer.result("connect", **where)
        at = await peer.result("get_connection_status", **where)
        replies: list[dict[str, Any]] = []
        for place in places:
            given = {**where, field: place}
            replies += [
                await peer.call("execute_query", **given, query=WRITES[0]),
                await peer.call("execute_query", **given, query="SELECT 1"),
                await peer.call(f"switch_{field}", **given),
                await peer.call("browse_table", **given, table="orders"),
                await peer.call("list_tables", **given),
            ]
        own = {field: getattr(harness.shop, field)}
        replies.append(await peer.call("execute_query", **where, **own, query="DROP TABLE orders"))
        now = await peer.result("get_connection_status", **where)
        for key in ("current_database", "current_schema"):
            assert now["structuredContent"].get(key) == at["structuredContent"].get(key)
        return replies

    replies, untouched = attack(tmp_path, engine, talk)
    assert all("error" in reply for reply in replies)
    assert untouched


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_another_database_of_the_server_is_reached_under_the_same_rules(
    tmp_path: Path, engine: str
) -> None:
    """A source is an account at a server: its databases are listed, and what a caller may do in
    one it may do in the others, no more. What else the account reaches is the account's matter."""
    (tmp_path / "annex").mkdir()
    second_database = ENGINES[engine].make(tmp_path / "annex", ())

    async def talk(harness: Harness, peer: Peer) -> list[dict[str, Any]]:
        (reader,) = await harness.peers("workbench", "reader")
        where = {"connection_id": harness.source.id, "database": second_database.database}
        before = second_database.digest()
        replies = [
            await one.call("execute_query", **where, query=text)
            for one in (reader, peer)
            for text in ("DROP TABLE orders", "UPDATE orders SET total = 0", "SET @x = 1")
        ]
        replies.append(await reader.call("execute_query", **where, query=WRITES[0]))
        replies.append(
            await reader.call("insert_rows", **where, table="orders", columns=["id"], rows=[[9]])
        )
        assert second_database.digest() == before
        read = await reader.result("browse_table", **where, table="orders")
        assert read["structuredContent"]["row_count"] == 3
        hidden = await harness.peers("workbench", "listed")
        assert "error" in await hidden[0].call("browse_table", **where, table="scrap_reader")
        return replies

    try:
        replies, untouched = attack(tmp_path, engine, talk)
    finally:
        second_database.close()
    assert all("error" in reply for reply in replies)
    assert untouched


@pytest.mark.parametrize("engine", sorted(set(ENGINES) & {"postgres", "mariadb"}))
def test_what_is_hidden_is_hidden_in_every_database_of_the_server(
    tmp_path: Path, engine: str
) -> None:
    (tmp_path / "annex").mkdir()
    second_database = ENGINES[engine].make(tmp_path / "annex", ())

    async def talk(harness: Harness, peer: Peer) -> list[dict[str, Any]]:
        where = {"connection_id": harness.source.id}
        there = {**where, "database": second_database.database}
        replies = [
            await peer.call("browse_table", **there, table="customers"),
            await peer.call("execute_query", **there, query="SELECT * FROM customers"),
            await peer.call("execute_query", **there, query="SELECT * FROM orders"),
            await peer.call("switch_database", **there),
            await peer.call("execute_query", **where, query="SELECT * FROM customers"),
            await peer.call("export_data", **where, format="csv", tables=["customers", "orders"]),
        ]
        name = f"{second_database.database}.customers"
        replies.append(await peer.call("execute_query", **where, query=f"SELECT * FROM {name}"))
        return replies

    try:
        replies, _ = attack(tmp_path, engine, talk, "masked")
    finally:
        second_database.close()
    assert "example.org" not in repr(replies)
    assert "987654" not in repr(replies)
