"""A caller that may use two tables only learns nothing of other tables from core."""

from __future__ import annotations

import re

from contract.surfaces.core_conversation import settle
from contract.surfaces.engine_shops import EngineShop
from support.surface_client import WRITER, Peer
from tidegate.model.actors import Actor, Scope
from tidegate.surfaces import core

LISTED = Actor(
    "tok_listed", "listed", Scope.READ_WRITE, tables=frozenset({"orders", "shop:big_orders"})
)
OTHERS = re.compile(r"customers|email|\bvoid\b|totals|visits|reporting|\bAda\b", re.IGNORECASE)
SEARCHES = ("email void", "placed", "id", "", "zebra")


async def test_the_core_surface_knows_no_other_table(engine_shop: EngineShop) -> None:
    """Also after another caller, who may see all tables, has searched through the same surface."""
    gate = engine_shop.gate()
    async with gate.opened():
        surface = core.surface(gate)
        everyone, listed = Peer(surface, WRITER), Peer(surface, LISTED)
        await everyone.open()
        await listed.open()
        await everyone.text("search", words="id")
        await settle(gate, WRITER)
        seen = [await everyone.text("search", words=words) for words in SEARCHES]
        assert OTHERS.search(seen[0]) and "placed_at" in seen[1]
        found = [await listed.text("search", words=words) for words in SEARCHES]
        assert found[0].startswith("No match. All tables:") and "placed_at" in found[1]
        shown = [await listed.text("search", words="id", max_bytes=size) for size in (300, 5000)]
        assert all("customer_id" in text for text in shown)
        shown += [await listed.text("describe", tables=[name]) for name in ("orders", "big_orders")]
        assert "customer_id" in shown[2] and "big_orders" in shown[3]
        refused = [
            await listed.text("describe", tables=["custmers"]),
            await listed.text("query", sql="SELECT * FROM custmers"),
            await listed.text("query", sql="SELECT emai FROM orders"),
        ]
        assert [text.partition(":")[0] for text in refused[:2]] == [
            "source.unknown_table",
            "policy.table",
        ]
        for text in (*found, *shown, *refused):
            assert "argument.invalid" not in text
            # Where a foreign key leads is a column's own property.
            named = text.replace("custmers", "").replace("customers.id", "")
            assert not OTHERS.search(named), text
        # And the other way round: what was hidden from one is not hidden from another.
        assert [await everyone.text("search", words=words) for words in SEARCHES] == seen
