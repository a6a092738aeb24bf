"""Calls that never reach the gate, for want of such a tool or of fit arguments, are on record."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from tidegate.app import App
from tidegate.config.model import Config
from tidegate.identity.builtin_actors import stdio
from tidegate.protocol.model import Info, RpcError


def rejected(directory, tool, arguments):
    app = App.open(Config(state=str(directory)))

    async def play():
        context = SimpleNamespace(
            actor=stdio(False),
            client=Info("agent", "1.0"),
            client_capabilities={},
            user_agent="",
            address="203.0.113.9",
            revision="2025-11-25",
            wants_progress=False,
        )
        try:
            await app.surface("workbench").call_tool(context, tool, arguments)
        except RpcError:
            pass
        finally:
            await app.close()

    asyncio.run(play())
    lines = (directory / "audit" / "000001.jsonl").read_bytes().splitlines()
    return [line for line in map(json.loads, lines) if line.get("name") == "call.rejected"]


@pytest.mark.needs("workbench")
def test_an_unknown_tool_is_recorded_with_who_wanted_it(tmp_path):
    (line,) = rejected(tmp_path, "drop_everything", {})
    assert (line["actor"], line["client"]) == ("stdio", "agent/1.0")
    assert (line["actor_name"], line["address"]) == ("stdio", "203.0.113.9")
    assert line["details"] == {"tool": "drop_everything", "reason": "there is no such tool"}


@pytest.mark.needs("workbench")
def test_unfit_arguments_are_recorded_with_what_is_wrong(tmp_path):
    (line,) = rejected(tmp_path, "execute_query", {"query": 7})
    assert line["details"]["tool"] == "execute_query"
    assert line["details"]["reason"]
