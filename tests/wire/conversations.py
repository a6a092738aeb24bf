"""Conversations of official clients with a server: how to have one, and what it must report."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from external.install import node, node_modules, python_of
from wire.fixture_tools import FIXTURES
from wire.kept_clients import converse
from wire.raw_http import http_request
from wire.served import EVERYTHING
from wire.wires import MODERN

PEERS = Path(__file__).with_name("peers")
STDIO = {"command": [sys.executable, str(EVERYTHING), "--stdio"]}


def python_sdk(generation: int, config: Mapping[str, Any]) -> dict[str, Any]:
    """Let the official Python SDK, generation 1 or 2, talk to a server."""
    return _python(generation, f"python_sdk{generation}", config)


def python_oauth(config: Mapping[str, Any]) -> dict[str, Any]:
    """Let the official Python SDK get a token from an authorization server by itself."""
    return _python(2, "python_oauth", config)


def _python(generation: int, module: str, config: Mapping[str, Any]) -> dict[str, Any]:
    command = (str(python_of(f"peers-sdk{generation}")), str(PEERS / "loaded.py"))
    return converse(command, {"module": module, "config": config})


def typescript_sdk(generation: int, config: Mapping[str, Any]) -> dict[str, Any]:
    """Let the official TypeScript SDK, generation 1 or 2, talk to a server."""
    whole = {**config, "sdk": generation, "modules": str(node_modules())}
    return converse((str(node()), str(PEERS / "typescript_sdk.mjs")), {"config": whole})


def check_conversation(report: Mapping[str, Any], revision: str) -> None:
    """Assert that a client heard all that the fixtures have to tell at this revision."""
    modern = revision == MODERN
    late = [_read_late_progress(fault) for fault in report.get("faults", [])]
    assert report["tools"] == list(FIXTURES)
    structured, text = report["sum"]
    assert text == {"sum": 3}
    assert structured == ({"sum": 3} if revision >= "2025-06-18" else None)
    assert report["tool_error"] is True
    heard = [reported[:2] for reported in report["progress"]]
    assert heard + late == [[0, 100], [50, 100], [100, 100]]
    assert report["logs"] == ["alert", "emergency"]
    assert report["elicited"] == "accept: Alice"
    assert report["sampled"] == "LLM response: Paris"
    assert report["roots"] == "Roots: file:///test/root"
    assert report["kinds"] == ["text", "image", "resource"]
    assert report["resources"][:2] == ["test://static-text", "test://static-binary"]
    assert report["templates"] == ["test://template/{id}/data"]
    assert report["read"] == "This is the content of the static text resource."
    assert report["blob"] == "image/png"
    assert set(report["updated"]) == {"test://watched-resource"}
    assert len(report["prompts"]) == 5
    assert report["prompt"] == "Prompt with arguments: arg1='x', arg2='y'"
    assert report["completion"] == ["paris", "park", "party"]
    assert report.get("ping", modern) is True
    assert report["cancelled"] == 1
    assert (report["unknown_tool"], report["unknown_prompt"]) == (-32602, -32602)
    assert report["unknown_resource"] in ((-32602,) if modern else (-32002, -32602))


def _read_late_progress(fault: str) -> list[int]:
    """Read the progress of a notice that the TypeScript SDK received but did not deliver.

    It handles a response before the notices that came just before it in one read
    (modelcontextprotocol/typescript-sdk#2580), and then reports their token as unknown. No other
    fault is accepted.
    """
    opening = "Error: Received a progress notification for an unknown token: "
    assert fault.startswith(opening), fault
    notice = json.loads(fault.removeprefix(opening))
    return [notice["params"]["progress"], notice["params"]["total"]]


def check_session_ended(port: int, session: str) -> None:
    """Assert that the client ended its session when it left."""
    response = http_request(port, "DELETE", "/mcp", None, {"Mcp-Session-Id": session})
    assert response.status == 404
    response.close()
