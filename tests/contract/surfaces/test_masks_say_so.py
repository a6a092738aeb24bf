"""Masked columns are marked where tables are described, and named once by a result that touched
them."""

from __future__ import annotations

import asyncio

from contract.surfaces.engine_shops import EngineShop
from support.surface_client import Peer
from tidegate.model.source_settings import Mask
from tidegate.surfaces import core

SAID = "customers.email is masked: conditions and counts use the mask, not the value"
# A table of that name in another schema has no such column, and does not close the source.
MASKS = (Mask("customers.email", "hash"),)


def test_core_says_it_once_and_marks_columns(engine_shop: EngineShop) -> None:
    async def scenario() -> list[str]:
        gate = engine_shop.gate(masks=MASKS)
        async with gate.opened():
            peer = Peer(core.surface(gate))
            await peer.open()
            first = await peer.text("query", sql="SELECT email FROM customers", max_rows=1)
            handle = first.partition('"more":"')[2].partition('"')[0]
            return [
                first,
                await peer.text("more", handle=handle),
                await peer.text("query", sql="SELECT city FROM customers"),
                await peer.text("describe", tables=["customers"]),
                await peer.text("search", words="customers"),
            ]

    first, rest, other, described, listed = asyncio.run(scenario())
    assert first.count("masked") == 1 and SAID in first
    assert "masked" not in rest and "masked" not in other
    assert "masked:hash" in described and described.count("masked") == 1
    assert "masked:hash" in listed
