"""What the wire tests share: one fixture server a worker, and peers that are closed at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import wire.task_tools  # noqa: F401  its tools are among those of the server
from wire.served import Served, everything
from wire.wires import HttpPeer, Peer, StdioPeer

Connect = Callable[..., Any]


@pytest.fixture(scope="session")
def http_server() -> Iterator[Served]:
    server = everything()
    yield server
    server.close()


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """`connect(transport, revision, **more)` opens a peer and does the handshake."""
    peers: list[Peer] = []

    def open_peer(transport: str, revision: str, *, handshake: bool = True, **more: Any) -> Any:
        if transport == "stdio":
            peer: Peer = StdioPeer(revision, **more)
        else:
            peer = HttpPeer(request.getfixturevalue("http_server").port, revision, **more)
        peers.append(peer)
        return peer.connect() if handshake else peer

    yield open_peer
    for peer in peers:
        peer.close()


@pytest.fixture(scope="module")
def _processes() -> Iterator[dict[tuple[str, ...], Peer]]:
    kept: dict[tuple[str, ...], Peer] = {}
    yield kept
    for peer in kept.values():
        peer.close()


@pytest.fixture
def reuse(connect: Connect, _processes: dict[tuple[str, ...], Peer]) -> Connect:
    """`connect` for tests that leave nothing behind in a session: on stdio, those of a module share
    one process for each revision and command."""

    def open_peer(transport: str, revision: str, *, command: Sequence[str] = ()) -> Peer:
        if transport != "stdio":
            return connect(transport, revision)
        key = (revision, *command)
        if key not in _processes:
            _processes[key] = StdioPeer(revision, command=command or None)
            _processes[key].connect()
        return _processes[key]

    return open_peer
