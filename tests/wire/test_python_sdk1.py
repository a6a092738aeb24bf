"""The official Python SDK 1.x as a client, at every revision that it can be made to ask for."""

from __future__ import annotations

import pytest

from wire.conversations import STDIO, check_conversation, check_session_ended, python_sdk
from wire.served import Served
from wire.wires import HANDSHAKE


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_conversation_over_stdio(revision: str) -> None:
    report = python_sdk(1, {**STDIO, "revision": revision})
    assert report["revision"] == revision
    check_conversation(report, revision)


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_conversation_over_http(http_server: Served, revision: str) -> None:
    url = f"http://127.0.0.1:{http_server.port}/mcp"
    report = python_sdk(1, {"url": url, "revision": revision})
    assert report["revision"] == revision
    check_conversation(report, revision)
    check_session_ended(http_server.port, report["session"])
