"""Two gates on one state with a record each, as the console of each shows all of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from products.console.support.two_gates import two_gates
from support.eventually import HANG_S
from tidegate.app import App
from tidegate.audit.activity import ActivityIndex
from tidegate.audit.proof import Prover
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import RoleGrant
from tidegate.model.source_settings import Mask
from tidegate.model.sources import Source
from tidegate.products.console import gate_records
from tidegate.products.console.activity import Activity
from tidegate.products.console.all_activity import AllActivity
from tidegate.products.console.gate_records import GateRecords
from tidegate.products.console.serving import open_records
from tidegate.store.records import OperatorEntry

SECRET_TEXT = "SELECT 'a text that is only on record'"
SOURCES = (
    Source("s1", "shop", "memory://shop", "memory", "memory"),
    Source("s2", "hidden", "memory://hidden", "memory", "memory", masks=(Mask("t.name"),)),
)


def record(directory: Path, calls: list[tuple[int, str, str]]) -> Path:
    """A log with these calls more: when, the source, the statement."""
    log = directory / "log"
    log.mkdir(parents=True, exist_ok=True)
    lines: list[bytes] = []
    for at, source, statement in calls:
        time = datetime.fromtimestamp(1_700_000_000 + at, UTC).isoformat().replace("+00:00", "Z")
        fields: dict[str, Any] = {"seq": at, "time": time, "phase": "outcome", "actor": "t1"}
        fields |= {"call_id": f"{directory.name}{at}", "actor_name": "bot", "client": "c"}
        fields |= {"source": source, "statement": statement, "effect": "read"}
        lines.append(json.dumps(fields).encode() + b"\n")
    with (log / "000001.jsonl").open("ab") as file:
        file.write(b"".join(lines))
    return log


class Pair(NamedTuple):
    """Two gates with a record each, of odd and of even seconds, and what follows their messages."""

    apps: tuple[App, App]
    homes: list[Activity]
    records: list[GateRecords]
    views: list[AllActivity]
    reading: list[asyncio.Task[None]]
    ids: list[str]
    directory: Path

    def call(self, gate: int, at: int, source: str, statement: str) -> None:
        """Put a call more on the record of a gate."""
        record(self.directory / "ab"[gate], [(at, source, statement)])

    def sign_in(self, name: str, *roles: RoleGrant) -> SignedIn:
        operators = self.apps[0].operators
        self.apps[0].state.operators.add(OperatorEntry(f"o-{name}", name, b"", b"", roles, 0.0))
        return operators.sign_in_by_link(operators.make_link(name, "cli"), "127.0.0.1", "b")[0]


@asynccontextmanager
async def gates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    """Two gates with records, while the block runs. They wait for each other on a busy machine."""
    monkeypatch.setattr(gate_records, "WAIT_S", HANG_S)
    monkeypatch.setattr(gate_records, "LONG_WAIT_S", HANG_S)
    apps = await two_gates(tmp_path, monkeypatch)
    reading = [asyncio.create_task(app.mailbox.run()) for app in apps]
    homes: list[Activity] = []
    records: list[GateRecords] = []
    indexes: list[ActivityIndex] = []
    for number, app in enumerate(apps):
        name = "ab"[number]
        calls = [(at, "shop", f"SELECT {at}") for at in range(1 + number, 21, 2)]
        calls += [(30 + number, "hidden", SECRET_TEXT)]
        log = record(tmp_path / "records" / name, calls)
        indexes.append(ActivityIndex(log.parent / "activity.db", log))
        homes.append(Activity(indexes[-1], Prover(log, log.parent / "no-key"), lambda: SOURCES))
        records.append(open_records(app, homes[-1]))
    views = [AllActivity(*each) for each in zip(homes, records, strict=True)]
    ids = [app.lease.id for app in apps if app.lease is not None]
    try:
        yield Pair(apps, homes, records, views, reading, ids, tmp_path / "records")
    finally:
        for task in reading:
            task.cancel()
        for index in indexes:
            index.close()
        for app in apps:
            await app.close()
