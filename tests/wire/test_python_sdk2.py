"""The official Python SDK 2.x as a client: it probes, it shakes hands, it goes straight ahead."""

from __future__ import annotations

import pytest

from wire.conversations import STDIO, check_conversation, python_sdk
from wire.served import Served
from wire.wires import MODERN

MODES = [("auto", MODERN), ("legacy", "2025-11-25"), (MODERN, MODERN)]
each_mode = pytest.mark.parametrize(("mode", "revision"), MODES)


@each_mode
def test_a_conversation_over_stdio(mode: str, revision: str) -> None:
    report = python_sdk(2, {**STDIO, "mode": mode})
    assert report["revision"] == revision
    check_conversation(report, revision)


@each_mode
def test_a_conversation_over_http(http_server: Served, mode: str, revision: str) -> None:
    url = f"http://127.0.0.1:{http_server.port}/mcp"
    report = python_sdk(2, {"url": url, "mode": mode})
    assert report["revision"] == revision
    assert report["headed"] == "region=eu"
    check_conversation(report, revision)


def test_changes_are_heard_on_a_listen_stream(http_server: Served) -> None:
    url = f"http://127.0.0.1:{http_server.port}/mcp"
    assert python_sdk(2, {"url": url, "mode": MODERN})["changed"] == "ToolsListChanged"


@pytest.mark.parametrize("tasks", [True, False])
def test_a_call_that_lasts_ends_in_its_result(http_server: Served, tasks: bool) -> None:
    calls = [["slow_compute", {"seconds": 0.3, "label": "long"}]]
    url = f"http://127.0.0.1:{http_server.port}/mcp"
    report = python_sdk(2, {"url": url, "mode": MODERN, "tasks": tasks, "calls": calls})
    assert report["results"][0]["text"] == "computed long"
    assert len(report.get("tasks", ())) == tasks
