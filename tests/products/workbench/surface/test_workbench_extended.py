"""The tools beyond the document's 19: off unless the settings say so; safe with any argument."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from contract.surfaces.engine_shops import EngineShop
from support.eventually import PATIENCE_S
from support.surface_client import READER, WRITER, Peer
from support.surface_gateway import SHOP_ID
from tidegate.config.model import Config
from tidegate.gateway import profiles
from tidegate.model.actors import Actor
from tidegate.model.source_settings import Mask

EXTENDED = Config(surface={"workbench": {"extended": True}})
NAMES = ["find_tables", "search_schema", "list_indexes", "list_foreign_keys", "browse_table",
         "count_rows", "explain_query", "get_server_dashboard", "insert_rows"]  # fmt: skip


def reply(
    engine_shop: EngineShop, tool: str, actor: Actor = WRITER, **arguments: Any
) -> dict[str, Any]:
    given = {"connection_id": SHOP_ID} | arguments
    return engine_shop.converse(lambda peer: peer.call(tool, **given), actor, config=EXTENDED)


def shown(
    engine_shop: EngineShop, tool: str, actor: Actor = READER, **arguments: Any
) -> dict[str, Any]:
    answer = reply(engine_shop, tool, actor, **arguments)
    assert "result" in answer, answer
    return answer["result"]["structuredContent"]


def test_they_are_offered_only_where_the_settings_say_so(engine_shop: EngineShop) -> None:
    async def listed(peer: Peer) -> list[str]:
        return [tool["name"] for tool in (await peer.request("tools/list"))["result"]["tools"]]

    plain = engine_shop.converse(listed)
    assert len(plain) == 19
    assert engine_shop.converse(listed, config=EXTENDED) == [*plain, *NAMES]
    assert engine_shop.error("browse_table", table="orders")["code"] == -32601


def test_their_outputs_fit_their_schemas_and_their_texts(engine_shop: EngineShop) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    arguments: dict[str, dict[str, Any]] = {
        "find_tables": {"words": "orders"},
        "search_schema": {"term": "id"},
        "browse_table": {"table": "orders"},
        "count_rows": {"table": "orders"},
        "explain_query": {"query": "SELECT * FROM orders"},
        "insert_rows": {"table": "void", "columns": ["id"], "rows": [[1]]},
    }

    async def talk(peer: Peer) -> None:
        tools = (await peer.request("tools/list"))["result"]["tools"]
        for tool in tools[19:]:
            name = tool["name"]
            answer = await peer.result(name, connection_id=SHOP_ID, **arguments.get(name, {}))
            jsonschema.validate(answer["structuredContent"], tool["outputSchema"])
            (block,) = answer["content"]
            assert msgspec.json.decode(block["text"]) == answer["structuredContent"]

    engine_shop.converse(talk, config=EXTENDED)


def ids(engine_shop: EngineShop, *filters: dict[str, Any], **more: Any) -> list[str]:
    found = shown(
        engine_shop, "browse_table", table="customers", columns=["id"], filters=list(filters),
        sort=[{"column": "id"}], **more,
    )  # fmt: skip
    return [row[0] for row in found["rows"]]


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ({"column": "id", "operator": "equals", "value": 2}, ["2"]),
        ({"column": "ID", "operator": "not_equals", "value": 2}, ["1", "3"]),
        ({"column": "id", "operator": "less_than", "value": 2}, ["1"]),
        ({"column": "id", "operator": "less_or_equal", "value": 2}, ["1", "2"]),
        ({"column": "id", "operator": "greater_than", "value": 2}, ["3"]),
        ({"column": "id", "operator": "greater_or_equal", "value": 2}, ["2", "3"]),
        ({"column": "id", "operator": "between", "value": 2, "second_value": 9}, ["2", "3"]),
        ({"column": "city", "operator": "is_null"}, ["2"]),
        ({"column": "city", "operator": "is_not_null"}, ["1", "3"]),
        ({"column": "full_name", "operator": "contains", "value": "Love"}, ["1"]),
        ({"column": "full_name", "operator": "contains", "value": "love"}, []),
        ({"column": "full_name", "operator": "contains", "value": "love",
          "case_sensitive": False}, ["1"]),
        ({"column": "full_name", "operator": "starts_with", "value": "葛"}, ["2"]),
        ({"column": "email", "operator": "ends_with", "value": "example.org"}, ["1", "2", "3"]),
        ({"column": "email", "operator": "equals", "value": "ADA@example.org"}, []),
        ({"column": "email", "operator": "equals", "value": "ADA@example.org",
          "case_sensitive": False}, ["1"]),
        ({"column": "email", "operator": "contains", "value": "%"}, []),
        ({"column": "email", "operator": "contains", "value": "a_a"}, []),
        ({"column": "email", "operator": "contains", "value": "*"}, []),
        ({"column": "email", "operator": "contains", "value": "[a]"}, []),
        ({"column": "email", "operator": "equals", "value": "' OR '1'='1"}, []),
        ({"column": "email", "operator": "equals", "value": "\\' OR 1=1 -- "}, []),
        ({"column": "email", "operator": "contains", "value": "'; DROP TABLE void; --"}, []),
    ],
)  # fmt: skip
def test_a_filter_finds_what_it_says(
    engine_shop: EngineShop, filter: dict[str, Any], found: list[str]
) -> None:
    assert ids(engine_shop, filter) == found
    counted = shown(engine_shop, "count_rows", table="customers", filters=[filter])
    assert counted == {"row_count": len(found), "is_approximate": False, "filter_count": 1}
    assert engine_shop.count("void") == 0


def test_filters_are_joined_by_and_or_or(engine_shop: EngineShop) -> None:
    one, two = ({"column": "id", "operator": "equals", "value": id} for id in (1, 2))
    assert ids(engine_shop, one, two) == []
    assert ids(engine_shop, one, two, logic="or") == ["1", "2"]


def test_a_table_is_browsed_page_by_page(engine_shop: EngineShop) -> None:
    page: dict[str, Any] = {"table": "customers", "columns": ["id"], "limit": 2}
    down = [{"column": "id", "direction": "desc"}]
    first = shown(engine_shop, "browse_table", sort=down, **page)
    assert (first["rows"], first["is_truncated"]) == ([["3"], ["2"]], True)
    second = shown(engine_shop, "browse_table", sort=down, offset=2, **page)
    assert (second["rows"], second["is_truncated"]) == ([["1"]], False)


@pytest.mark.parametrize(
    "arguments",
    [
        {"columns": ["id FROM void; --"]},
        {"columns": ["*"]},
        {"columns": ['"id"']},
        {"sort": [{"column": "id; DROP TABLE void"}]},
        {"sort": [{"column": "id", "direction": "desc; DROP TABLE void"}]},
        {"filters": [{"column": "1=1 OR id", "operator": "equals", "value": 1}]},
        {"filters": [{"column": "id", "operator": "= 1 OR 1", "value": 1}]},
        {"filters": [{"column": "id", "operator": "equals"}]},
        {"filters": [{"column": "id", "operator": "between", "value": 1}]},
        {"logic": "OR 1=1"},
        {"offset": -1},
        {"table": "customers; DROP TABLE void"},
        {"schema": "main.x"},
    ],
)
def test_what_is_no_column_or_operator_is_refused(
    engine_shop: EngineShop, arguments: dict[str, Any]
) -> None:
    given: dict[str, Any] = {"table": "customers"} | arguments
    answer = reply(engine_shop, "browse_table", actor=WRITER, **given)
    assert answer["error"]["code"] == -32602
    assert engine_shop.count("void") == 0


def test_keys_and_indexes_are_listed(engine_shop: EngineShop) -> None:
    indexes = shown(engine_shop, "list_indexes", table="orders")["tables"]
    assert [table["table"] for table in indexes] == ["orders"]
    assert "orders_by_customer" in [index["name"] for index in indexes[0]["indexes"]]
    (keys,) = shown(engine_shop, "list_foreign_keys")["tables"]
    assert keys["table"] == "orders"
    (key,) = keys["foreign_keys"]
    assert (key["column"], key["referenced_table"]) == ("customer_id", "customers")


def test_the_schema_is_searched(engine_shop: EngineShop) -> None:
    found = shown(engine_shop, "search_schema", term="CUSTOMER", schema=engine_shop.schema)
    assert [(m["kind"], m["name"]) for m in found["matches"]] == [
        ("table", "customers"), ("column", "customer_id"), ("column", "customer_id"),
    ]  # fmt: skip
    cut = shown(engine_shop, "search_schema", term="CUSTOMER", limit=1)
    assert (len(cut["matches"]), cut["is_truncated"]) == (1, True)


@pytest.mark.parametrize(
    "query",
    ["ANALYZE DELETE FROM orders", "SELECT 1; DELETE FROM orders", "(ANALYZE) DELETE FROM orders"],
)
def test_an_explanation_runs_nothing(engine_shop: EngineShop, query: str) -> None:
    assert "error" in reply(engine_shop, "explain_query", query=query)
    assert "error" in reply(engine_shop, "explain_query", query="SELECT 1", analyze=True)
    assert engine_shop.count("orders") == 3


def test_inserted_values_are_data(engine_shop: EngineShop) -> None:
    rows = [[1, "'); DROP TABLE void; --"], [2, None], [3, "海\\"]]
    done = shown(
        engine_shop, "insert_rows", WRITER, table="void", columns=["id", "name"], rows=rows
    )
    assert done == {"rows_submitted": 3, "rows_affected": 3}
    assert [list(row) for row in engine_shop.look("SELECT id, name FROM void ORDER BY id")] == rows


def test_all_rows_go_in_or_none(engine_shop: EngineShop) -> None:
    answer = reply(engine_shop, "insert_rows", table="void", columns=["id"], rows=[[1], [2], [1]])
    assert answer["error"]["code"] == -32602
    assert engine_shop.count("void") == 0


def test_a_thousand_rows_go_in_at_once_and_no_more(engine_shop: EngineShop) -> None:
    rows = [[number] for number in range(1_000)]
    done = shown(engine_shop, "insert_rows", WRITER, table="void", columns=["id"], rows=rows)
    assert done["rows_affected"] == 1_000
    more = reply(engine_shop, "insert_rows", table="void", columns=["id"], rows=[*rows, [1_000]])
    assert more["error"]["message"] == "Invalid params: Parameter rows must hold 1 to 1000 rows"


@pytest.mark.parametrize(("actor", "settings"), [(READER, {}), (WRITER, {"access": "read"})])
def test_who_may_not_write_inserts_nothing(
    engine_shop: EngineShop, actor: Actor, settings: dict[str, Any]
) -> None:
    gate = engine_shop.gate(**settings)
    error = engine_shop.converse(
        lambda peer: peer.error(
            "insert_rows", connection_id=SHOP_ID, table="void", columns=["id"], rows=[[1]]
        ),
        actor, gate=gate, config=EXTENDED,
    )  # fmt: skip
    assert error["code"] == -32007
    assert engine_shop.count("void") == 0


def test_the_dashboard_shows_no_statement_of_anybody(engine_shop: EngineShop) -> None:
    async def talk(peer: Peer) -> dict[str, Any]:
        await peer.result("execute_query", connection_id=SHOP_ID, query="SELECT 'my secret'")
        return await peer.result("get_server_dashboard", connection_id=SHOP_ID)

    reported = engine_shop.converse(talk, READER, config=EXTENDED)["structuredContent"]
    assert "my secret" not in msgspec.json.encode(reported).decode()
    missing = {failure["panel"] for failure in reported["unavailable"]}
    assert (
        missing
        == {
            "postgres": set(),
            "mysql": set(),
            "sqlite": {"sessions", "metrics", "slow_queries", "errors"},
            "duckdb": {"sessions", "metrics", "slow_queries", "errors"},
        }[engine_shop.dialect]
    ), reported["unavailable"]


def test_the_dashboard_has_sizes_and_memory_if_asked(engine_shop: EngineShop) -> None:
    panels = ["blocking", "sizes", "memory"]
    reported = shown(engine_shop, "get_server_dashboard", panels=panels)
    tables = {row[reported["sizes"]["columns"].index("table")] for row in reported["sizes"]["rows"]}
    assert {"orders", "customers"} <= tables
    assert reported["memory"]["row_count"] > 0
    missing = {failure["panel"] for failure in reported["unavailable"]}
    assert missing == (set() if engine_shop.dialect in ("postgres", "mysql") else {"blocking"})


def test_tables_are_found_by_words_with_keys_and_values(
    engine_shop: EngineShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "WAIT_S", PATIENCE_S)  # a busy machine reads values later
    found = shown(engine_shop, "find_tables", words="orders placed")["tables"].splitlines()
    assert found[0].startswith("orders(id int")
    assert "customer_id int>customers.id" in found[0]
    assert "[2026-01-02..2026-01-04]" in found[0]


def test_an_error_names_the_nearest_column(engine_shop: EngineShop) -> None:
    answer = reply(engine_shop, "execute_query", READER, query="SELECT emial FROM customers")
    assert "Nearest: customers.email" in answer["error"]["data"]["hint"]


def test_an_empty_result_says_which_values_are_like_the_one_asked_for(
    engine_shop: EngineShop,
) -> None:
    engine_shop.script(
        "CREATE TABLE tickets (id INTEGER PRIMARY KEY, state VARCHAR(9));"
        "INSERT INTO tickets VALUES (1, 'open'), (2, 'open'), (3, 'done'), (4, 'done');"
    )
    sql = "SELECT id FROM tickets WHERE state = 'opened'"
    assert (
        "has no 'opened', but 'open'"
        in (shown(engine_shop, "execute_query", query=sql)["status_message"])
    )


def test_a_filter_that_no_row_meets_names_values_that_are_like_it(engine_shop: EngineShop) -> None:
    wanted = [{"column": "city", "operator": "equals", "value": "LONDON"}]

    async def talk(peer: Peer) -> list[str]:
        given: dict[str, Any] = {"connection_id": SHOP_ID, "table": "customers", "filters": wanted}
        found = [await peer.result(tool, **given) for tool in ("browse_table", "count_rows")]
        return [each["content"][0]["text"] for each in found]

    for said in engine_shop.converse(talk, config=EXTENDED):
        assert "customers.city has no 'LONDON', but 'London'" in said
    masked = engine_shop.gate(masks=(Mask("customers.city"),))
    for said in engine_shop.converse(talk, config=EXTENDED, gate=masked):
        assert "London" not in said.replace("LONDON", "")
        assert "customers.city is masked" in said


def test_a_misspelt_table_is_answered_with_the_nearest(engine_shop: EngineShop) -> None:
    answer = reply(engine_shop, "browse_table", table="custmers")
    assert answer["error"]["data"]["hint"].startswith("Nearest: ")
    assert "customers" in answer["error"]["data"]["hint"]
