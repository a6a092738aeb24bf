"""Official clients of the handshake era wait by `more` for a call that outlasts its reply."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wire.conversations import python_sdk, typescript_sdk
from wire.lasting_gate import Gate

LONG = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 4000000)"
    " SELECT count(*) AS c FROM n"
)


@pytest.fixture
def conversation(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """How a client asks a real gate that answers after 0.1 s."""
    gate = Gate(tmp_path)
    gate.write(tasks="answer_s = 0.1\nafter_s = 0.1")
    gate.start()
    url = f"http://127.0.0.1:{gate.port}/mcp"
    calls = [["query", {"sql": LONG}]]
    yield {"url": url, "token": gate.token, "follow": True, "calls": calls, "mode": "legacy"}
    gate.close()


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
def test_the_python_sdk_1_waits_by_the_handle(conversation: dict[str, Any], revision: str) -> None:
    check(python_sdk(1, {**conversation, "revision": revision}))


@pytest.mark.parametrize("generation", [1, 2])
def test_the_typescript_sdk_waits_by_the_handle(
    conversation: dict[str, Any], generation: int
) -> None:
    check(typescript_sdk(generation, conversation))


def check(report: dict[str, Any]) -> None:
    assert "[[4000000]]" in report["results"][0]["text"].replace(" ", "")
    assert report["followed"] >= 1
