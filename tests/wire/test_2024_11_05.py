"""Revision 2024-11-05, which the conformance suite never speaks, over both transports.

A client of that time sees nothing that came later.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from wire.conftest import Connect
from wire.wires import Peer

LATER = {
    "annotations", "title", "outputSchema", "structuredContent", "icons", "resultType", "ttlMs",
    "cacheScope", "execution",
}  # fmt: skip


@pytest.fixture(params=["stdio", "http"])
def peer(request: pytest.FixtureRequest, connect: Connect) -> Peer:
    return connect(request.param, "2024-11-05")


def _names(value: Any) -> set[str]:
    """Every member name in a value, but not what a tool's own schema says."""
    if isinstance(value, list):
        return {name for item in value for name in _names(item)}
    if isinstance(value, dict):
        below = {
            name for key, item in value.items() if key != "inputSchema" for name in _names(item)
        }
        return set(value) | below
    return set()


def test_the_handshake_names_the_revision(peer: Peer) -> None:
    assert peer.greeting["protocolVersion"] == "2024-11-05"
    assert "completions" not in peer.greeting["capabilities"]
    assert set(peer.greeting["serverInfo"]) == {"name", "version"}


@pytest.mark.parametrize(
    "method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
)
def test_lists_have_no_later_members(peer: Peer, method: str) -> None:
    result = peer.request(method).result
    assert not _names(result) & LATER


def test_a_structured_result_comes_as_text_alone(peer: Peer) -> None:
    result = peer.call("add", {"a": 2, "b": 3}).result
    assert json.loads(result["content"][0]["text"]) == {"sum": 5}
    assert not _names(result) & LATER


def test_audio_is_described_in_text(peer: Peer) -> None:
    (block,) = peer.call("test_audio_content").result["content"]
    assert block["type"] == "text"
    assert "audio/wav" in block["text"]


def test_images_and_resources_are_as_ever(peer: Peer) -> None:
    kinds = [block["type"] for block in peer.call("test_multiple_content_types").result["content"]]
    assert kinds == ["text", "image", "resource"]


def test_progress_has_no_message_yet(peer: Peer) -> None:
    outcome = peer.call("test_tool_with_progress", _meta={"progressToken": 7})
    assert [note["params"] for note in outcome.before] == [
        {"progressToken": 7, "progress": done, "total": 100} for done in (0, 50, 100)
    ]


def test_completion_is_a_method_without_a_capability(peer: Peer) -> None:
    reference = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    argument = {"name": "arg1", "value": "par"}
    result = peer.request("completion/complete", {"ref": reference, "argument": argument}).result
    assert result["completion"]["values"] == ["paris", "park", "party"]


def test_an_unknown_resource_has_the_old_code(peer: Peer) -> None:
    error = peer.request("resources/read", {"uri": "test://nothing"}).error
    assert error["code"] == -32002
    assert error["data"] == {"uri": "test://nothing"}


def test_resources_prompts_and_templates_are_served(peer: Peer) -> None:
    read = peer.request("resources/read", {"uri": "test://template/7/data"}).result
    assert json.loads(read["contents"][0]["text"])["id"] == "7"
    given = {"name": "test_prompt_with_arguments", "arguments": {"arg1": "x", "arg2": "y"}}
    message = peer.request("prompts/get", given).result["messages"][0]
    assert message["role"] == "user"
    assert "arg1='x'" in message["content"]["text"]


def test_sampling_and_roots_are_asked_of_the_client(peer: Peer) -> None:
    assert peer.call("test_sampling", {"prompt": "?"}).text == "LLM response: Paris"
    assert "file:///test/root" in peer.call("test_input_required_result_list_roots").text


def test_log_messages_follow_the_level(peer: Peer) -> None:
    peer.request("logging/setLevel", {"level": "error"})
    outcome = peer.call("test_logging_tool")
    levels = [note["params"]["level"] for note in outcome.before]
    assert levels == ["error", "critical", "alert", "emergency"]
