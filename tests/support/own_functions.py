"""Asks a source of which functions of users are allowed, through the surface `core`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from support.surface_client import READER, Peer
from support.surface_gateway import SqliteGate
from tidegate.model.actors import Actor
from tidegate.model.sources import Source
from tidegate.surfaces import core


class Asker:
    """A caller of one source."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def text(self, sql: str) -> str:
        """The answer as a model sees it."""
        return await self._peer.text("query", sql=sql)

    async def rows(self, sql: str) -> list[list[Any]]:
        """The rows of what must be answered."""
        text = await self.text(sql)
        try:
            return msgspec.json.decode(text)["rows"]
        except (msgspec.DecodeError, KeyError):
            raise AssertionError(text) from None


@asynccontextmanager
async def asking(
    directory: Path, url: str, kind: str, *, actor: Actor = READER, **settings: Any
) -> AsyncIterator[Asker]:
    """A caller of a source of the engine and dialect `kind` with these settings."""
    directory.mkdir(exist_ok=True)
    source = Source("s1", "shop", url, kind, kind, **settings)
    gate = SqliteGate(directory, source)
    async with gate.opened():
        peer = Peer(core.surface(gate), actor)
        await peer.open()
        yield Asker(peer)
