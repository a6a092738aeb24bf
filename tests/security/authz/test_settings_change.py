"""What the settings file says of a source holds from the next call of a client that stays."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

from support.surface_client import WRITER, Peer
from support.surface_shop import build_shop
from tidegate.app import App
from tidegate.config.loading import load
from tidegate.config.reload import ConfigWatcher
from tidegate.serve.settings_following import follow_settings

INSERT = "INSERT INTO customers (email, full_name) VALUES ('new@example.org', 'New')"


class Harness:
    """A server that follows its settings, and the database behind it."""

    def __init__(self, directory: Path) -> None:
        self.shop = build_shop(directory / "shop.db")
        self.state = directory / "state"
        self.file = directory / "tidegate.json"
        self.log: list[str] = []

    def write(self, more: dict[str, Any] | None = None, **source: Any) -> None:
        declared = {"name": "shop", "url": f"sqlite:///{self.shop}", **source}
        settings = {"state": str(self.state), "sources": [declared], **(more or {})}
        self.file.write_text(json.dumps(settings))

    def open(self) -> App:
        following = ConfigWatcher(self.file)
        app = App.open(load(str(self.file)))
        follow_settings(app, following, lambda: load(str(self.file)), self.log.append)
        return app

    def customers(self) -> int:
        with sqlite3.connect(self.shop) as seen:
            return seen.execute("SELECT count(*) FROM customers").fetchone()[0]


async def outcome(peer: Peer, id: str, query: str) -> str:
    reply = (await peer.call("query", source=id, sql=query))["result"]
    return reply["content"][0]["text"].partition(":")[0] if reply.get("isError") else "ok"


def test_a_change_of_the_settings_holds_from_the_next_call(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    harness.write(access="write")

    async def scenario() -> None:
        app = harness.open()
        try:
            peer = Peer(app.surface("core"), WRITER)
            await peer.open()
            (source,) = app.connections.sources()
            before = harness.customers()
            assert await outcome(peer, source.id, INSERT) == "ok"
            harness.write(access="read")
            assert await outcome(peer, source.id, INSERT.replace("new@", "a@")) == (
                "policy.read_only"
            )
            harness.write(masks=[{"column": "customers.email"}])
            text = await peer.text(
                "query",
                source=source.id,
                sql="SELECT email FROM customers WHERE email IS NOT NULL",
            )
            assert '"rows":[]' in text
            harness.write(access="none")
            assert await outcome(peer, source.id, "SELECT 1") == "policy.blocked"
            harness.file.write_text("{")
            assert await outcome(peer, source.id, "SELECT 1") == "config.invalid"
            harness.write()
            assert await outcome(peer, source.id, "SELECT 1") == "ok"
            assert harness.customers() == before + 1
        finally:
            await app.close()

    asyncio.run(scenario())


def test_settings_that_cannot_be_used_are_not_forgotten_for_the_old_ones(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    harness.write(access="write")

    async def scenario() -> None:
        app = harness.open()
        try:
            peer = Peer(app.surface("core"), WRITER)
            await peer.open()
            (source,) = app.connections.sources()
            before = harness.customers()
            lost = {"sources": [{"name": "shop", "url": f"sqlite:///{tmp_path}/lost.db"}]}
            harness.write(lost)
            (lost_source,) = app.connections.sources()
            for _ in range(3):
                # The id comes from the URL: what the caller knew is no longer there.
                assert await outcome(peer, source.id, INSERT) == "source.unknown"
                assert await outcome(peer, lost_source.id, "SELECT 1") == "source.unreachable"
            assert harness.customers() == before
            harness.write()
            assert await outcome(peer, source.id, INSERT) == "policy.read_only"
            assert await outcome(peer, source.id, "SELECT 1") == "ok"
        finally:
            await app.close()

    asyncio.run(scenario())


def test_the_log_and_no_caller_sees_what_waits_for_a_start(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    harness.write()

    async def scenario() -> None:
        app = harness.open()
        try:
            peer = Peer(app.surface("core"), WRITER)
            await peer.open()
            (source,) = app.connections.sources()
            harness.write({"limits": {"max_rows": 700}}, agents="deny")
            for _ in range(2):
                assert await outcome(peer, source.id, "SELECT 1") == "policy.blocked"
            assert harness.log == [
                "these changes take effect when the server restarts: limits.max_rows"
            ]
            harness.write({"limits": {"max_rows": 700}, "approvals": {"dry_run": False}})
            assert await outcome(peer, source.id, "SELECT 1") == "ok"
            assert not app.approvals.settings.dry_run
            assert len(harness.log) == 1
        finally:
            await app.close()

    asyncio.run(scenario())
