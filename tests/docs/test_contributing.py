"""The worked example of a surface in CONTRIBUTING.md, built and served as it is written there."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from support.surface_client import Peer
from support.surface_gateway import SqliteGate, sqlite_source
from tidegate.config.model import Config
from tidegate.surfaces import registry
from tidegate.surfaces.registry import Entry, open_surface

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


def test_the_surface_of_the_contributing_guide_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = CONTRIBUTING.read_text().partition("## Add a surface")[2].partition("\n## ")[0]
    module, line = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    folder = tmp_path / "counting"
    folder.mkdir()
    (folder / "__init__.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    place = line.replace("tidegate.surfaces.counting", "counting")
    added: dict[str, Entry] = eval("{" + place + "}", {"Entry": Entry})
    monkeypatch.setattr(registry, "SURFACES", registry.SURFACES | added)
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE items (id INTEGER)")
        connection.execute("INSERT INTO items VALUES (1), (2)")
    connection.close()

    async def talk() -> tuple[Any, Any]:
        gate = SqliteGate(tmp_path, sqlite_source(tmp_path / "shop.db"))
        async with gate.opened():
            peer = Peer(open_surface("counting", gate, Config()))
            await peer.open()
            call = {"name": "count"}
            counted = await peer.request("tools/call", **call, arguments={"table": "items"})
            wrong = await peer.request("tools/call", **call, arguments={"tabel": "items"})
        return counted["result"], wrong["result"]

    counted, wrong = asyncio.run(talk())
    sys.modules.pop("counting", None)
    assert counted["content"][0]["text"] == "[[2]]"
    assert wrong["isError"]
