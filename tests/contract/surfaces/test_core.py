"""The surface `core`, as an agent meets it: what it reads, and what errors tell it to do next."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from support.surface_client import Peer
from support.surface_gateway import SqliteGate, sqlite_source
from support.surface_shop import build_shop
from tidegate.config.model import Config
from tidegate.surfaces import core
from tidegate.surfaces.registry import open_surface

ResultT = TypeVar("ResultT")

STATELESS: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
OTHER_ID = "11111111-2e3d-4b14-9c3a-1d2f4ad1f6f1"


@pytest.fixture
def gate(tmp_path: Path) -> SqliteGate:
    return SqliteGate(tmp_path, sqlite_source(build_shop(tmp_path / "shop.db")))


@pytest.fixture
def two_sources(tmp_path: Path) -> SqliteGate:
    return SqliteGate(
        tmp_path,
        sqlite_source(build_shop(tmp_path / "first.db")),
        sqlite_source(build_shop(tmp_path / "crm.db"), "crm", OTHER_ID),
    )


def converse(gate: SqliteGate, talk: Callable[[Peer], Awaitable[ResultT]]) -> ResultT:
    """What one client gets that talks to core."""

    async def whole() -> ResultT:
        async with gate.opened():
            peer = Peer(core.surface(gate))
            await peer.open()
            return await talk(peer)

    return asyncio.run(whole())


def read(gate: SqliteGate, tool: str, **arguments: Any) -> str:
    result = converse(gate, lambda peer: peer.result(tool, **arguments))
    assert "structuredContent" not in result
    return result["content"][0]["text"]


def complaint(gate: SqliteGate, tool: str, **arguments: Any) -> str:
    result = converse(gate, lambda peer: peer.call(tool, **arguments))["result"]
    assert result["isError"] is True
    return result["content"][0]["text"]


def test_sources_are_listed_with_dialect_and_access(two_sources: SqliteGate) -> None:
    assert read(two_sources, "sources") == "crm: sqlite read\nshop: sqlite read"


def test_search_shows_types_keys_and_values_of_what_it_finds(gate: SqliteGate) -> None:
    assert read(gate, "search", words="placed").splitlines()[0] == (
        "orders(id int pk, customer_id int>customers.id,"
        " placed_at text [2026-01-02..2026-01-04], total numeric?)"
    )


def test_no_words_list_the_names_and_no_match_too(tmp_path: Path) -> None:
    gate = parts(tmp_path, 21)
    names = ",".join(f"part_{number:03}" for number in range(21))
    assert read(gate, "search", words=" ") == names
    assert read(gate, "search", words="zebra") == f"No match. Tables: {names}"


def test_a_small_database_is_shown_whole(gate: SqliteGate) -> None:
    def tables(lines: list[str]) -> list[str]:
        return [line.partition("(")[0] for line in lines if not line.startswith("Signs: ")]

    whole = ["view big_orders", "customers", "orders"]
    assert tables(read(gate, "search", words=" ").splitlines()) == whole
    note, *others = read(gate, "search", words="zebra").splitlines()
    assert note == "No match. All tables:"
    assert tables(others) == whole
    assert tables(read(gate, "search", words="customers").splitlines())[0] == "customers"
    assert sorted(tables(read(gate, "search", words="email").splitlines())) == sorted(whole)


def parts(path: Path, count: int) -> SqliteGate:
    """A source with tables that match one word equally well."""
    connection = sqlite3.connect(path / "wide.db")
    for number in range(count):
        connection.execute(f"CREATE TABLE part_{number:03} (id INTEGER PRIMARY KEY)")
    connection.close()
    return SqliteGate(path, sqlite_source(path / "wide.db"))


def test_the_best_tables_are_shown_and_the_others_named(tmp_path: Path) -> None:
    lines = read(parts(tmp_path, 21), "search", words="part").splitlines()
    assert lines[0] == "part_000(id int pk)"
    others = ",".join(f"part_{number:03}" for number in range(8, 21))
    assert lines[8:] == [f"Also: {others}", "Signs: pk primary key"]


def many_tables(path: Path) -> SqliteGate:
    """A source of 40 tables, of which some are about books, readers and fines."""
    wide = ", ".join(f"loan_detail_{number} TEXT" for number in range(80))
    connection = sqlite3.connect(path / "many.db")
    connection.executescript(
        f"CREATE TABLE books (id INTEGER PRIMARY KEY, isbn TEXT, shelf TEXT, {wide});"
        "CREATE TABLE readers (id INTEGER PRIMARY KEY, city TEXT);"
        "CREATE TABLE fines (id INTEGER PRIMARY KEY, reader_id INTEGER, amount NUMERIC);"
    )
    for number in range(37):
        connection.execute(f"CREATE TABLE other_{number:02} (id INTEGER PRIMARY KEY, remark TEXT)")
    connection.close()
    return SqliteGate(path, sqlite_source(path / "many.db"))


def test_each_of_several_topics_has_its_tables_within_one_budget(tmp_path: Path) -> None:
    gate = many_tables(tmp_path)
    topics = ["books on a shelf", "cities of readers", "unpaid fines", "zeppelins"]
    answer = read(gate, "search", words=topics, max_bytes=900)
    assert len(answer.encode()) <= 900
    lines = answer.splitlines()
    assert lines[0] == "No match: zeppelins"
    shown = [line.partition("(")[0] for line in lines[1:] if "(" in line]
    assert {"books", "readers", "fines"} <= set(shown)
    assert "shelf text?" in answer and "more)" in answer  # of the wide table what matched


def test_one_wide_table_does_not_leave_others_with_their_names_alone(tmp_path: Path) -> None:
    answer = read(many_tables(tmp_path), "search", words="shelf city amount", max_bytes=800)
    shown = [line.partition("(")[0] for line in answer.splitlines() if "(" in line]
    assert {"books", "readers", "fines"} <= set(shown)


def test_topics_may_come_as_the_json_of_an_array(gate: SqliteGate) -> None:
    as_text = read(gate, "search", words='["orders", "customers"]')
    assert as_text == read(gate, "search", words=["orders", "customers"])


def test_no_parameter_is_a_union_of_types(gate: SqliteGate) -> None:
    for tool in converse(gate, lambda peer: peer.request("tools/list"))["result"]["tools"]:
        assert "anyOf" not in str(tool["inputSchema"])


def test_signs_are_explained_once_in_a_session(gate: SqliteGate) -> None:
    async def talk(peer: Peer) -> list[str]:
        return [await peer.text("search", words="orders") for _ in range(2)]

    first, second = converse(gate, talk)
    *body, legend = first.splitlines()
    assert legend.startswith("Signs: pk primary key; >t.c refers to; ")
    assert second.splitlines() == body


def test_without_sessions_each_answer_explains_its_signs(gate: SqliteGate) -> None:
    async def whole() -> list[str]:
        async with gate.opened():
            peer = Peer(core.surface(gate))
            texts: list[str] = []
            for _ in range(2):
                reply = await peer.request(
                    *("tools/call",),
                    name="search",
                    arguments={"words": "orders"},
                    _meta=STATELESS,
                )
                texts.append(reply["result"]["content"][0]["text"])
            return texts

    for text in asyncio.run(whole()):
        assert text.splitlines()[-1].startswith("Signs: ")


def test_a_search_that_names_no_source_looks_through_all(two_sources: SqliteGate) -> None:
    answer = read(two_sources, "search", words="orders", max_bytes=1500)
    assert len(answer.encode()) <= 1500
    first, second = answer.split("source shop:\n")
    assert first.startswith("source crm:\n")
    assert "orders(id int pk" in first and "orders(id int pk" in second


def test_a_search_of_many_sources_names_those_that_it_left_out(tmp_path: Path) -> None:
    ids = [f"{number:08}-2e3d-4b14-9c3a-1d2f4ad1f6f1" for number in range(12)]
    shop = build_shop(tmp_path / "shop.db")
    sources = [sqlite_source(shop, f"s{number:02}", id) for number, id in enumerate(ids)]
    answer = read(SqliteGate(tmp_path, *sources), "search", words="orders")
    assert "source s07:" in answer
    assert "Not searched, name one in `source`: s08, s09, s10, s11" in answer


def test_a_source_that_cannot_be_opened_is_named_beside_the_others(tmp_path: Path) -> None:
    gone = sqlite_source(tmp_path / "gone.db", "gone", OTHER_ID)
    gate = SqliteGate(tmp_path, sqlite_source(build_shop(tmp_path / "shop.db")), gone)
    answer = read(gate, "search", words="orders")
    assert "source gone:\nsource." in answer
    assert "orders(id int pk" in answer


def test_the_nearest_name_is_found_in_any_number_of_tables(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "big.db")
    for number in range(700):
        connection.execute(f"CREATE TABLE c_{number:03} (id INTEGER PRIMARY KEY)")
    connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    connection.close()
    gate = SqliteGate(tmp_path, sqlite_source(tmp_path / "big.db"))
    assert "Nearest: customers." in complaint(gate, "query", sql="SELECT * FROM custmers")
    assert "Nearest: customers." in complaint(gate, "query", sql="SELECT * FROM ustomers")


def test_an_answer_stays_within_the_bytes_that_the_caller_sets(tmp_path: Path) -> None:
    answer = read(parts(tmp_path, 100), "search", words="part", max_bytes=200)
    assert len(answer.encode()) <= 200
    assert answer.splitlines()[-1].startswith("Also: ")
    assert answer.endswith(": add words")


def test_a_wide_table_shows_what_matched_and_counts_the_rest(tmp_path: Path) -> None:
    columns = ", ".join(f"attribute_{number} TEXT" for number in range(60))
    connection = sqlite3.connect(tmp_path / "wide.db")
    connection.execute(f"CREATE TABLE part (id INTEGER PRIMARY KEY, colour TEXT, {columns})")
    connection.close()
    gate = SqliteGate(tmp_path, sqlite_source(tmp_path / "wide.db"))
    assert read(gate, "search", words="colour of part", max_bytes=500) == (
        "part(id int pk, colour text?, +60 more)"
    )


def test_describe_takes_several_tables_in_any_case(gate: SqliteGate) -> None:
    *lines, _ = read(gate, "describe", tables=["Customers", "main.orders"]).splitlines()
    assert [line.partition("(")[0] for line in lines] == ["customers", "orders"]


def test_describe_shows_what_it_has_and_names_what_it_lacks(gate: SqliteGate) -> None:
    lines = read(gate, "describe", tables=["customers", "ordes"]).splitlines()
    assert lines[1] == "No table ordes (nearest: orders)"


def test_an_unknown_table_is_an_error_with_the_nearest_names(gate: SqliteGate) -> None:
    assert complaint(gate, "describe", tables=["custmers"]) == (
        "source.unknown_table: No table custmers (nearest: customers). Find it with search."
    )
    assert complaint(gate, "query", sql="SELECT * FROM custmers") == (
        "sql.failed: no such table: custmers. Nearest: customers."
    )
    assert complaint(gate, "explain", sql="SELECT * FROM zzz") == (
        "sql.failed: no such table: zzz. Find it with search."
    )


def test_an_unknown_column_is_an_error_with_the_nearest_names(gate: SqliteGate) -> None:
    assert complaint(gate, "query", sql="SELECT emial FROM customers") == (
        "sql.failed: no such column: emial (at character 8). Nearest: customers.email text."
    )


def test_rows_come_as_one_compact_array(gate: SqliteGate) -> None:
    assert read(gate, "query", sql="SELECT id, city FROM customers ORDER BY id") == (
        '{"columns":["id","city"],"rows":[[1,"London"],[2,null],[3,"Nishapur"]]}'
    )


def test_a_cut_result_says_so_and_more_brings_the_rest(gate: SqliteGate) -> None:
    async def talk(peer: Peer) -> tuple[str, str, str]:
        first = await peer.text("query", sql="SELECT id FROM customers ORDER BY id", max_rows=2)
        handle = msgspec.json.decode(first)["more"]
        return (
            first.replace(handle, "HANDLE"),
            await peer.text("more", handle=handle),
            await peer.text("more", handle=handle),
        )

    first, rest, gone = converse(gate, talk)
    assert msgspec.json.decode(first) == {
        "columns": ["id"],
        "rows": [[1], [2]],
        "more": "HANDLE",
        "note": "first 2 rows; call more for the rest",
    }
    assert msgspec.json.decode(rest) == {"columns": ["id"], "rows": [[3]]}
    assert gone.startswith("result.gone: ")


def test_exactly_all_rows_are_not_a_cut_result(gate: SqliteGate) -> None:
    answer = msgspec.json.decode(read(gate, "query", sql="SELECT id FROM customers", max_rows=3))
    assert "more" not in answer
    assert "note" not in answer


def test_one_source_needs_no_name_and_several_do(gate: SqliteGate, two_sources: SqliteGate) -> None:
    async def talk(peer: Peer) -> str:
        said = await peer.text(
            "query", sql="SELECT id FROM orders ORDER BY id", max_rows=2, source="crm"
        )
        return await peer.text("more", handle=msgspec.json.decode(said)["more"])

    read(gate, "query", sql="SELECT 1")
    assert complaint(two_sources, "query", sql="SELECT 1") == (
        "source.unknown: Name a source. Sources: crm, shop"
    )
    assert msgspec.json.decode(converse(two_sources, talk)) == {"columns": ["id"], "rows": [[3]]}
    assert two_sources.calls[-1].source == "crm"


def test_wrong_arguments_say_what_to_send(gate: SqliteGate) -> None:
    assert complaint(gate, "query", query="SELECT 1") == (
        "argument.invalid: Parameter query is unknown."
        " Parameters: sql, also, max_rows, source, confirm, reason."
    )
    assert complaint(gate, "query").startswith("argument.invalid: Parameter sql is required.")
    assert complaint(gate, "describe", tables="customers").startswith(
        "argument.invalid: Parameter tables is wrong: expected array, got string."
    )
    assert complaint(gate, "query", sql=7).startswith(
        "argument.invalid: Parameter sql is wrong: expected string | array, got integer."
    )
    assert complaint(gate, "query", sql="SELECT 1", max_rows="many").startswith(
        "argument.invalid: Parameter max_rows is wrong: expected integer, got string."
    )


def test_rows_are_bounded_by_the_operators_limit(gate: SqliteGate) -> None:
    read(gate, "query", sql="SELECT 1")
    read(gate, "query", sql="SELECT 1", max_rows=1_000_000)
    usual, most = (call.request.limits.max_rows for call in gate.calls)  # pyright: ignore
    assert (usual, most) == (100, Config().limits.max_rows)


def test_every_tool_of_a_read_only_server_says_that_it_only_reads(gate: SqliteGate) -> None:
    for tool in core.surface(gate).tools_by_name.values():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True


@pytest.mark.parametrize(
    "config", [Config(allow_writes=True), Config(http="127.0.0.1:0"), Config(http="[::1]:0")]
)
def test_where_a_caller_may_write_query_says_so(gate: SqliteGate, config: Config) -> None:
    hints = core.surface(gate, config=config).tools_by_name["query"].annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint) == (False, True)


def test_where_no_one_has_a_token_query_only_reads(gate: SqliteGate) -> None:
    config = Config(http="127.0.0.1:0", auth=False)
    hints = core.surface(gate, config=config).tools_by_name["query"].annotations
    assert hints is not None and hints.read_only_hint


@pytest.mark.parametrize("revision", core.REVISIONS[:4])
def test_every_handshake_revision_is_served(gate: SqliteGate, revision: str) -> None:
    async def whole() -> dict[str, Any]:
        async with gate.opened():
            peer = Peer(core.surface(gate), revision=revision)
            opened = await peer.open()
            await peer.result("query", sql="SELECT 1")
            return opened

    assert asyncio.run(whole())["protocolVersion"] == revision


@pytest.mark.parametrize("surface", ["core", "workbench"])
def test_the_stateless_revision_is_served_without_a_handshake(
    gate: SqliteGate, surface: str
) -> None:
    async def whole() -> dict[str, Any]:
        async with gate.opened():
            peer = Peer(open_surface(surface, gate, Config()))
            return await peer.request("tools/list", _meta=STATELESS)

    result = asyncio.run(whole())["result"]
    assert result["resultType"] == "complete"
    assert result["tools"]


def test_a_stateless_call_runs(gate: SqliteGate) -> None:
    async def whole() -> dict[str, Any]:
        async with gate.opened():
            return await Peer(core.surface(gate)).request(
                "tools/call", name="query", arguments={"sql": "SELECT 1 AS one"}, _meta=STATELESS
            )

    assert asyncio.run(whole())["result"]["content"][0]["text"] == (
        '{"columns":["one"],"rows":[[1]]}'
    )
