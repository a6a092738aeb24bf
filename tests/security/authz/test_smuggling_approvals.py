"""What a person allowed is that call and no other: not its like, not elsewhere, not by another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.authz_engines import ENGINES, SqliteShop
from support.authz_server import Harness, play
from support.surface_client import Peer

ALLOWED = "UPDATE orders SET total = 1 WHERE id = 1"
OTHERS = (
    "UPDATE orders SET total = 1 WHERE id = 2",
    "UPDATE orders SET total = 1",
    "UPDATE orders SET total = 1 WHERE id = 1 OR 1 = 1",
    "update orders set total = 1 where id = 1",
    "UPDATE  orders SET total = 1 WHERE id = 1",
    "UPDATE orders SET total = 1 WHERE id = 1 /* twice */",
    "DELETE FROM orders WHERE id = 1",
)


async def allowed(harness: Harness, peer: Peer, **more: Any) -> None:
    """Have `ALLOWED` asked for by this caller and allowed by a person."""
    where = {"connection_id": harness.source.id, "query": ALLOWED, **more}
    error = await peer.error("execute_query", **where)
    assert error["data"]["code"] == "approval.needed"
    (question,) = harness.app.approvals.list()
    harness.app.approvals.resolve(question.id, "allowed", "the operator")


@pytest.mark.needs("workbench")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_grant_is_for_that_statement_and_that_caller_once(tmp_path: Path, engine: str) -> None:
    async def scenario(harness: Harness) -> None:
        writer, owner, twin = await harness.peers("workbench", "writer", "owner", "tagged")
        (core,) = await harness.peers("core", "owner")
        before = harness.shop.digest()
        await allowed(harness, writer)
        assert harness.shop.digest() == before
        where = {"connection_id": harness.source.id}
        for text in OTHERS:
            await writer.error("execute_query", **where, query=text)
        for peer in (owner, twin):
            await peer.error("execute_query", **where, query=ALLOWED)
        said = await core.text("query", source=harness.source.name, sql=ALLOWED)
        assert said.startswith("approval.needed: ")
        await writer.error("explain_query", **where, query=f"ANALYZE {ALLOWED}")
        await writer.error("export_data", **where, query=ALLOWED, format="csv")
        assert harness.shop.digest() == before
        await writer.result("execute_query", **where, query=ALLOWED)
        after = harness.shop.digest()
        assert after != before
        again = await writer.error("execute_query", **where, query=ALLOWED)
        assert again["data"]["code"] == "approval.needed"
        assert harness.shop.digest() == after

    play(tmp_path, engine, "writes", scenario)


@pytest.mark.needs("workbench")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_grant_is_for_the_values_that_were_shown(tmp_path: Path, engine: str) -> None:
    async def scenario(harness: Harness) -> None:
        (writer,) = await harness.peers("workbench", "writer")
        where = {"connection_id": harness.source.id, "table": "customers", "columns": ["id"]}
        await writer.error("insert_rows", **where, rows=[[7]])
        (question,) = harness.app.approvals.list()
        harness.app.approvals.resolve(question.id, "allowed", "the operator")
        before = harness.shop.digest()
        for rows in ([[8]], [["7"]], [[7], [7]], [[7.0]], [[True]], [[None]]):
            await writer.error("insert_rows", **where, rows=rows)
        assert harness.shop.digest() == before
        await writer.result("insert_rows", **where, rows=[[7]])
        assert harness.shop.digest() != before

    play(tmp_path, engine, "writes", scenario)


@pytest.mark.needs("workbench")
def test_a_grant_is_for_the_source_and_the_place_that_were_shown(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    shop = SqliteShop(tmp_path / "other", ())
    other = {
        "name": "other", "url": shop.url, "access": "write", "approval_for": "writes"
    }  # fmt: skip

    async def scenario(harness: Harness) -> None:
        (writer,) = await harness.peers("workbench", "writer")
        (foreign,) = [each for each in harness.app.connections.sources() if each.name == "other"]
        await allowed(harness, writer)
        before = shop.digest(), harness.shop.digest()
        await writer.error("execute_query", connection_id=foreign.id, query=ALLOWED)
        placed = {"connection_id": harness.source.id, "schema": "main", "query": ALLOWED}
        await writer.error("execute_query", **placed)
        assert (shop.digest(), harness.shop.digest()) == before

    play(tmp_path, "sqlite", "writes", scenario, beside=[other])


def test_a_grant_does_not_outweigh_a_source_that_was_closed(tmp_path: Path) -> None:
    from msgspec import structs

    async def scenario(harness: Harness) -> None:
        (writer,) = await harness.peers("core", "writer")
        kept = structs.replace(harness.source, name="kept", id="kept", ephemeral=False)
        harness.app.state.sources.add(kept)
        said = await writer.text("query", source="kept", sql=ALLOWED)
        assert said.startswith("approval.needed: ")
        (question,) = harness.app.approvals.list()
        harness.app.approvals.resolve(question.id, "allowed", "the operator")
        before = harness.shop.digest()
        for change in ({"access": "read"}, {"access": "none"},
                       {"changes": "deny"}, {"agents": "deny"}):  # fmt: skip
            harness.app.state.sources.remove("kept")
            harness.app.state.sources.add(structs.replace(kept, **change))
            said = await writer.text("query", source="kept", sql=ALLOWED)
            assert said.startswith("policy."), said
        assert harness.shop.digest() == before

    play(tmp_path, "sqlite", "writes", scenario)
