"""The official TypeScript SDK as a client: generation 1 (handshake) and 2 (both eras)."""

from __future__ import annotations

import pytest

from wire.conversations import STDIO, check_conversation, check_session_ended, typescript_sdk
from wire.served import Served
from wire.wires import MODERN

MODES = [
    (1, "legacy", "2025-11-25"),
    (2, "legacy", "2025-11-25"),
    (2, "auto", MODERN),
    (2, MODERN, MODERN),
]
each_mode = pytest.mark.parametrize(("generation", "mode", "revision"), MODES)


@each_mode
def test_a_conversation_over_stdio(generation: int, mode: str, revision: str) -> None:
    report = typescript_sdk(generation, {**STDIO, "mode": mode})
    assert report["server"] == "everything"
    assert report["revision"] == (revision if generation == 2 else None)
    check_conversation(report, revision)


@each_mode
def test_a_conversation_over_http(
    http_server: Served, generation: int, mode: str, revision: str
) -> None:
    url = f"http://127.0.0.1:{http_server.port}/mcp"
    report = typescript_sdk(generation, {"url": url, "mode": mode})
    assert report["revision"] == revision
    assert report["headed"] == "region=eu"
    assert report["rounds"] == "{'name': 'Alice'} and {'color': 'Alice'}"
    check_conversation(report, revision)
    assert (report["session"] is None) == (revision == MODERN)
    if report["session"] is not None:
        check_session_ended(http_server.port, report["session"])
