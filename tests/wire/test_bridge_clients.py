"""Official clients over the bridge: stdio on one side, a server on HTTP on the other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.free_ports import claim_port
from wire.conversations import check_conversation, python_sdk, typescript_sdk
from wire.served import EVERYTHING, Served
from wire.wires import HANDSHAKE, MODERN


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """How to start a bridge to a server with one of everything."""
    state: Path = tmp_path_factory.mktemp("state")
    state.chmod(0o700)
    port = claim_port()
    options = ["--http", str(port), "--bridge", str(state)]
    server = Served([sys.executable, str(EVERYTHING), *options], port)
    yield {"command": [sys.executable, "-m", "tidegate", "bridge", "--state", str(state)]}
    server.close()


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_the_python_sdk_1_receives_everything(bridge: dict[str, Any], revision: str) -> None:
    report = python_sdk(1, {**bridge, "revision": revision})
    assert report["revision"] == revision
    check_conversation(report, revision)


@pytest.mark.parametrize(
    ("mode", "revision"), [("auto", MODERN), ("legacy", "2025-11-25"), (MODERN, MODERN)]
)
def test_the_python_sdk_2_receives_everything(
    bridge: dict[str, Any], mode: str, revision: str
) -> None:
    report = python_sdk(2, {**bridge, "mode": mode})
    assert report["revision"] == revision
    check_conversation(report, revision)


@pytest.mark.parametrize(
    ("generation", "mode", "revision"),
    [(1, "legacy", "2025-11-25"), (2, "auto", MODERN), (2, MODERN, MODERN)],
)
def test_the_typescript_sdk_receives_everything(
    bridge: dict[str, Any], generation: int, mode: str, revision: str
) -> None:
    report = typescript_sdk(generation, {**bridge, "mode": mode})
    assert report["server"] == "everything"
    check_conversation(report, revision)
