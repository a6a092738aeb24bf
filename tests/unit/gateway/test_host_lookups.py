"""Which names of hosts are looked up when a caller opens a source of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.surface_client import Peer
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings, TemporarySourceSettings
from tidegate.protocol.session_state import settled
from unit.gateway.test_temporary_sources import surface


@pytest.mark.needs("mysql")
async def test_hosts_of_sources_at_other_ports_are_not_looked_up(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    config = Config(
        sources=(
            SourceSettings("near", "mysql://near.invalid:3999/shop"),
            SourceSettings("far", "mysql://far.invalid:4000/shop"),
        ),
        temporary_sources=TemporarySourceSettings(hosts=("127.0.0.1:3999",)),
    )
    looked_up: list[object] = []
    watching = True

    def watch(event: str, values: tuple[object, ...]) -> None:
        if watching and event == "socket.getaddrinfo":
            looked_up.append(values[0])

    sys.addaudithook(watch)  # it stays for as long as the process runs
    app = App(config, tmp_path / "state")
    try:
        peer = Peer(surface(app))
        await peer.open()
        said = await peer.text("open", name="other", url="mariadb://me@127.0.0.1:3999/shop")
        assert "already" not in said
    finally:
        watching = False
        await app.close()
        await settled()
    assert "near.invalid" in looked_up
    assert "far.invalid" not in looked_up
