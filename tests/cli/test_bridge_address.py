"""A bridge finds the server of its machine at an address that other machines reach, too."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.bridge_host import bridged, end_server, handshake_of
from support.command_line import serving, tidegate

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs file owners and modes")


@pytest.fixture
def address() -> str:
    """An address of this machine that is not loopback. Nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        found: str = probe.getsockname()[0]
        return found


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    state = tmp_path / "state"
    yield state
    end_server(state)


def settings(folder: Path, address: str, **more: object) -> str:
    file = folder / "shop.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS items (id INTEGER)")
    source = {"name": "shop", "url": f"sqlite:///{file}"}
    path = folder / "settings.json"
    path.write_text(json.dumps({"http": f"{address}:0", "sources": [source], **more}))
    path.chmod(0o600)
    return str(path)


@pytest.mark.parametrize("workers", [1, 2])
def test_it_uses_the_server_that_listens_at_an_address_of_its_machine(
    tmp_path: Path, state: Path, address: str, workers: int
) -> None:
    given = settings(tmp_path, address, workers=workers)
    with serving(("serve", "--config", given), state) as server:
        server.until("serving core")
        with bridged(state, "--surface", "core") as host:
            host.open()
            reply = host.call(1, "query", sql="SELECT count(*) AS n FROM items")
            assert "error" not in reply and not reply["result"].get("isError"), reply
            found = handshake_of(state)
            assert (found["host"], found["by_bridge"]) == (address, False)
            assert found["pid"] == server.process.pid
    shown = tidegate("status", "--json", state=state)
    assert shown.status != 0, "no second server was started"


def test_where_bridges_are_not_wanted_no_address_is_written(
    tmp_path: Path, state: Path, address: str
) -> None:
    given = settings(tmp_path, address, bridge={"enabled": False})
    with serving(("serve", "--config", given), state) as server:
        server.until("serving core")
        assert not (state / "bridge" / "handshake.json").exists()
