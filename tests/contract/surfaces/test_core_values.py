"""What `core` says of values, on every engine: seen with the caller's rights, never beyond them."""

from __future__ import annotations

import asyncio
import re

import msgspec
import pytest

from contract.surfaces.core_conversation import converse, samples, settle
from contract.surfaces.engine_shops import EngineShop
from support.surface_client import READER, Peer
from tidegate.gateway import profiles
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, ReadProfiles, SearchHistory
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.surfaces import core

TICKETS = """
CREATE TABLE tickets (id INTEGER PRIMARY KEY, state VARCHAR(20), level INTEGER, owner VARCHAR(20),
  reported VARCHAR(20), cost VARCHAR(20), kind VARCHAR(20), closed VARCHAR(20), note VARCHAR(200));
INSERT INTO tickets VALUES
  (1, 'open', 1, 'ada', '2026-01-02', '1.50', 'Bug', NULL, 'the first of them'),
  (2, 'open', 2, 'bo', '2026-02-03', '2.75', 'bug', NULL, 'another one'),
  (3, 'done ', 1, 'ada', '2026-03-04', '10', 'Bug', NULL, 'nothing like the others'),
  (4, 'open', 2, 'bo', '2026-03-05', '11', 'bug', NULL, 'free text'),
  (5, 'done ', 1, 'ada', '2026-03-06', '12', 'Bug', NULL, 'of any kind'),
  (6, 'open', 1, 'bo', '2026-03-07', '13', 'bug', NULL, 'and any length'),
  (7, 'open', 1, 'ada', '2026-03-08', '14', 'Bug', NULL, 'is not shown'),
  (8, 'done ', 1, 'bo', '2026-03-09', '15', 'bug', NULL, 'at all'),
  (9, 'open', 2, 'ada', '2026-03-10', '16', 'Bug', NULL, 'by search'),
  (10, 'open', 2, 'bo', '2026-03-11', '17', 'bug', NULL, 'or describe');
"""


def columns(line: str) -> dict[str, str]:
    """By column, what a table's line says behind its name."""
    inside = line.partition("(id ")[2].rpartition(")")[0]
    parts = re.split(r", (state|level|owner|reported|cost|kind|closed|note) ", inside)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_a_column_shows_its_values_its_range_or_what_is_odd(engine_shop: EngineShop) -> None:
    engine_shop.script(TICKETS)
    line, _ = converse(engine_shop, lambda peer: peer.text("describe", tables=["tickets"]))
    seen = columns(line)
    assert seen["state"].endswith(" {open,'done '} !blanks at the end")
    assert seen["level"].endswith(" {1,2}")
    assert seen["owner"].endswith((" {ada,bo}", " {bo,ada}"))
    assert seen["reported"].endswith(" [2026-01-02..2026-03-11]")
    assert " like '" in seen["cost"] and seen["cost"].endswith(" !numbers")
    assert "{Bug,bug} !mixed case" in seen["kind"] or "{bug,Bug} !mixed case" in seen["kind"]
    assert seen["closed"].endswith(" !only null")
    assert "{" not in seen["note"] and "like" not in seen["note"]


def test_nothing_of_a_masked_column_is_shown(engine_shop: EngineShop) -> None:
    engine_shop.script(TICKETS)
    mask = Mask(f"{engine_shop.schema}.tickets.state")
    (line, found, empty), _ = converse(
        engine_shop, lambda peer: _look(peer, "state = 'opened'"), masks=(mask,)
    )
    for text in (line, found, empty):
        assert "open," not in text and "done" not in text
    assert "{ada,bo}" in line or "{bo,ada}" in line


def test_a_row_that_is_filtered_away_adds_nothing(engine_shop: EngineShop) -> None:
    engine_shop.script(TICKETS)
    only_ada = RowFilter(f"{engine_shop.schema}.tickets", "owner = 'ada'")
    (line, found, empty), _ = converse(
        engine_shop, lambda peer: _look(peer, "owner = 'boo'"), filters=(only_ada,)
    )
    seen = columns(line)
    assert seen["owner"].endswith(" {ada}")
    assert seen["reported"].endswith(" [2026-01-02..2026-03-10]")
    assert "bo," not in found and "'bo'" not in empty


async def _look(peer: Peer, condition: str) -> tuple[str, str, str]:
    return (
        await peer.text("describe", tables=["tickets"]),
        await peer.text("search", words="tickets"),
        await peer.text("query", sql=f"SELECT id FROM tickets WHERE {condition}"),
    )


def test_callers_with_other_rules_do_not_share_what_was_seen(engine_shop: EngineShop) -> None:
    engine_shop.script(TICKETS)
    bound, free = Actor("tok_1", "bound", Scope.READ_ONLY), Actor("tok_2", "free", Scope.READ_ONLY)
    rule = RowFilter(f"{engine_shop.schema}.tickets", "owner = 'ada'", tokens=("bound",))

    async def whole() -> list[str]:
        async with engine_shop.gate(filters=(rule,)).opened() as gate:
            lines: list[str] = []
            for actor in (free, bound, free):
                peer = Peer(core.surface(gate), actor)
                await peer.open()
                await peer.text("search", words="tickets")
                await settle(gate, actor)
                lines.append(await peer.text("describe", tables=["tickets"]))
            return lines

    first, second, third = [columns(line)["owner"] for line in asyncio.run(whole())]
    assert second.endswith(" {ada}")
    assert "bo" in first and first == third


def test_each_sample_is_on_record_and_none_is_in_the_history(engine_shop: EngineShop) -> None:
    engine_shop.script(TICKETS)

    gate = engine_shop.gate()

    async def talk(peer: Peer) -> list[str]:
        await peer.text("query", sql="SELECT 1")
        call = Call(READER, "core", "query", SearchHistory())
        return [entry.text for entry in (await gate.handle(call)).payload.entries]

    kept, _ = converse(engine_shop, talk, gate=gate)
    assert kept == ["SELECT 1"]
    sampled = samples(engine_shop)
    tables = {event["statement"].rpartition(" FROM ")[2] for event in sampled}
    assert any("tickets" in table for table in tables)
    assert all(event["actor"] == READER.id and event["tool"] == "search" for event in sampled)
    assert any(isinstance(call.request, ReadProfiles) for call in gate.calls)


def test_a_search_shows_values_or_says_that_they_follow(
    engine_shop: EngineShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "WAIT_S", 0.0)
    engine_shop.script(TICKETS)
    gate = engine_shop.gate()

    async def whole() -> tuple[str, str]:
        async with gate.opened():
            peer = Peer(core.surface(gate))
            await peer.open()
            early = await peer.text("search", words="tickets")
            await settle(gate, READER)
            return early, await peer.text("search", words="tickets")

    early, late = asyncio.run(whole())
    shown = "{open,'done '}"
    assert "\nValues follow: ask again." in early or shown in early  # SQLite may be faster
    assert "Values follow" not in late and shown in late


def test_a_source_that_asks_a_person_for_reads_is_not_sampled(engine_shop: EngineShop) -> None:
    engine_shop.script(TICKETS)
    gate = engine_shop.gate(approval_for="everything")

    async def talk(peer: Peer) -> tuple[str, int]:
        line = await peer.text("describe", tables=["tickets"])
        return line, len(gate.approvals.list())

    (line, waiting), _ = converse(engine_shop, talk, gate=gate)
    assert "tickets(id " in line and "{" not in line
    assert [event["phase"] for event in samples(engine_shop)] == ["refusal"]
    assert waiting == 0


def test_what_a_person_may_read_is_not_said_to_an_agent_that_must_ask(
    engine_shop: EngineShop,
) -> None:
    engine_shop.script(TICKETS)
    gate = engine_shop.gate(agents="ask")
    person = Actor("cli", "cli", Scope.READ_ONLY, kind="human")

    async def talk(peer: Peer) -> tuple[str, str]:
        seen = await peer.text("describe", tables=["tickets"])
        agent = Peer(core.surface(gate), READER)
        await agent.open()
        await agent.text("describe", tables=["tickets"])
        await settle(gate, READER)
        return seen, await agent.text("describe", tables=["tickets"])

    (seen, said), _ = converse(engine_shop, talk, actor=person, gate=gate)
    assert "{open,'done '}" in seen
    assert "tickets(id " in said and "{" not in said


def test_an_empty_result_names_the_values_that_are_like_it(engine_shop: EngineShop) -> None:
    engine_shop.script(TICKETS)

    async def talk(peer: Peer) -> list[str]:
        answers: list[str] = []
        for condition in ("state = 'OPEN?'", "t.state IN ('close')", "id = 77", "owner = 'ada x'"):
            sql = f"SELECT t.id FROM tickets t WHERE {condition}"
            answers.append(msgspec.json.decode(await peer.text("query", sql=sql)).get("note", ""))
        return answers

    (near, none, silent, alike), _ = converse(engine_shop, talk)
    assert near.endswith("tickets.state has no 'OPEN?', but 'open', 'done '") or "'open'" in near
    assert "tickets.state has no 'close'" in none
    assert silent == ""
    assert "tickets.owner has no 'ada x', but 'ada'" in alike


def test_numbers_are_written_alike(engine_shop: EngineShop) -> None:
    sql = (
        "SELECT CAST(42 AS DECIMAL(20, 10)) AS a, CAST(55.99 AS DECIMAL(10, 2)) AS b, total"
        " FROM orders WHERE id = 2"
    )
    answer, _ = converse(engine_shop, lambda peer: peer.text("query", sql=sql))
    assert msgspec.json.decode(answer)["rows"] == [[42, 55.99, 80]]
    assert ".0" not in answer


def test_a_column_of_numbers_is_of_one_kind(engine_shop: EngineShop) -> None:
    long = "1234567890123.4567890123"
    engine_shop.script(
        "CREATE TABLE sums (id INTEGER, total DECIMAL(30, 10), small DECIMAL(10, 2));"
        f"INSERT INTO sums VALUES (1, 1.5, 2.5), (2, {long}, 3.5), (3, NULL, NULL);"
    )
    sql = "SELECT total, small, id FROM sums ORDER BY id"
    answer, _ = converse(engine_shop, lambda peer: peer.text("query", sql=sql))
    rows = msgspec.json.decode(answer)["rows"]
    kinds = {type(row[0]) for row in rows} - {type(None)}
    assert len(kinds) == 1
    assert [row[1] for row in rows] == [2.5, 3.5, None]
    if engine_shop.dialect != "sqlite":  # SQLite keeps no decimals
        assert [row[0] for row in rows] == ["1.5", long, None]


def test_several_reads_run_in_one_call_and_a_fault_stands_beside_results(
    engine_shop: EngineShop,
) -> None:
    statements = [
        "SELECT id FROM customers ORDER BY id",
        "SELECT nothing FROM customers",
        "DELETE FROM orders",
        "SELECT total FROM orders WHERE id = 1",
    ]
    before = engine_shop.count("orders")
    writer = Actor("tok_writer", "writer", Scope.READ_WRITE)
    answer, gate = converse(engine_shop, lambda peer: peer.text("query", sql=statements), writer)
    first, fault, change, last = msgspec.json.decode(answer)
    assert first == {"columns": ["id"], "rows": [[1], [2], [3]]}
    assert fault["error"].startswith("sql.failed: ")
    assert change["error"].endswith("Send a change in a call of its own.")
    assert last["rows"] == [[120.5]]
    assert engine_shop.count("orders") == before
    sent = [call for call in gate.calls if call.tool == "query"]
    assert len({id(call.request) for call in sent if call.request.kind == "query"}) == 4


def test_a_query_without_columns_answers_with_its_rows_and_as_no_change(
    engine_shop: EngineShop,
) -> None:
    if engine_shop.dialect != "postgres":
        return
    engine_shop.script(TICKETS)
    for text, rows in (
        ("SELECT", [[]]),
        ("SELECT FROM tickets WHERE id < 4", [[], [], []]),
        ("SELECT FROM tickets WHERE false", []),
    ):
        asked = text
        found, _ = converse(engine_shop, lambda peer, asked=asked: peer.text("query", sql=asked))
        assert msgspec.json.decode(found) == {"columns": [], "rows": rows}
