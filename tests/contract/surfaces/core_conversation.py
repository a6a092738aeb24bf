"""Conversations with `core` on any engine, and what the record says of the samples they took."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from contract.surfaces.engine_shops import EngineShop
from support.surface_client import READER, Peer
from support.surface_gateway import SqliteGate
from tidegate.model.actors import Actor
from tidegate.model.requests import Sample
from tidegate.surfaces import core

ResultT = TypeVar("ResultT")


def converse(
    shop: EngineShop,
    talk: Callable[[Peer], Awaitable[ResultT]],
    actor: Actor = READER,
    gate: SqliteGate | None = None,
    **settings: Any,
) -> tuple[ResultT, SqliteGate]:
    """What a client of core gets, after everything that is sampled in the background was."""
    gate = gate or shop.gate(**settings)

    async def whole() -> ResultT:
        async with gate.opened():
            peer = Peer(core.surface(gate), actor)
            await peer.open()
            await peer.text("search", words="tickets visits")
            await settle(gate, actor)
            return await talk(peer)

    return asyncio.run(whole()), gate


async def settle(gate: SqliteGate, actor: Actor) -> None:
    """Wait until everything that is queued for the actor's source was sampled."""
    profiles = gate.connections.find("shop", actor).profiles
    if profiles is not None:
        await profiles.settle()


def samples(shop: EngineShop) -> list[dict[str, Any]]:
    """The events of samples, in the record of the shop's gate."""
    files = sorted((shop.directory / "audit").rglob("*.jsonl"))
    lines = [line for path in files for line in path.read_text().splitlines()]
    events = [msgspec.json.decode(line) for line in lines]
    return [event for event in events if event.get("request") == Sample.kind]
