"""Lists, reads and completions: pages, order, cache hints, and what each revision may see."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from wire.conftest import Connect
from wire.served import EVERYTHING
from wire.wires import HANDSHAKE, MODERN, REVISIONS, Peer

TRANSPORTS = ("stdio", "http")
LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
both = pytest.mark.parametrize("transport", TRANSPORTS)
every = pytest.mark.parametrize("revision", REVISIONS)
each_list = pytest.mark.parametrize("method", sorted(LISTS))


@pytest.fixture
def connect(reuse: Connect) -> Connect:
    """As everywhere, but by one process: nothing below leaves anything behind in a session."""
    return reuse


@pytest.fixture
def paged(connect: Connect) -> Peer:
    command = [sys.executable, str(EVERYTHING), "--stdio", "--page-size", "7"]
    return connect("stdio", "2025-11-25", command=command)


def test_pages_together_are_the_list(paged: Peer, connect: Connect) -> None:
    whole = connect("stdio", "2025-11-25").request("tools/list").result["tools"]
    collected: list[Any] = []
    result = paged.request("tools/list").result
    while True:
        assert len(result["tools"]) <= 7
        collected += result["tools"]
        if "nextCursor" not in result:
            break
        result = paged.request("tools/list", {"cursor": result["nextCursor"]}).result
    assert collected == whole


@pytest.mark.parametrize("cursor", ["nonsense", "ZnJvbTo5OTk5", "ZnJvbTotMQ==", "é", 5, {}, "7"])
@each_list
def test_an_unknown_cursor_is_refused(paged: Peer, method: str, cursor: Any) -> None:
    assert paged.request(method, {"cursor": cursor}).error["code"] == -32602


@each_list
def test_a_short_list_has_no_cursor(paged: Peer, method: str) -> None:
    if method != "tools/list":
        assert "nextCursor" not in paged.request(method).result


@both
@every
@each_list
def test_lists_come_in_the_same_order_every_time(
    connect: Connect, transport: str, revision: str, method: str
) -> None:
    peer = connect(transport, revision)
    first = peer.request(method).result
    assert first[LISTS[method]]
    assert peer.request(method, {}).result == first


@both
@each_list
def test_lists_carry_cache_hints_in_the_stateless_era(
    connect: Connect, transport: str, method: str
) -> None:
    result = connect(transport, MODERN).request(method).result
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, "private")
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "everything"


@both
def test_discover_and_reads_carry_cache_hints(connect: Connect, transport: str) -> None:
    peer = connect(transport, MODERN)
    for method, params in (
        ("server/discover", {}),
        ("resources/read", {"uri": "test://static-text"}),
    ):
        result = peer.request(method, params).result
        assert isinstance(result["ttlMs"], int)
        assert result["cacheScope"] in ("public", "private")


@both
@pytest.mark.parametrize("revision", HANDSHAKE)
@each_list
def test_older_lists_carry_no_hints(
    connect: Connect, transport: str, revision: str, method: str
) -> None:
    result = connect(transport, revision).request(method).result
    assert not {"ttlMs", "cacheScope", "resultType"} & set(result)


@both
@every
def test_a_tool_shows_what_its_revision_has(
    connect: Connect, transport: str, revision: str
) -> None:
    tools = connect(transport, revision).request("tools/list").result["tools"]
    add = next(tool for tool in tools if tool["name"] == "add")
    assert ("annotations" in add) == (revision >= "2025-03-26")
    assert ("title" in add) == (revision >= "2025-06-18")
    assert ("outputSchema" in add) == (revision >= "2025-06-18")
    assert ("_meta" in add) == (revision >= "2025-06-18")


@both
@every
def test_a_structured_result_is_text_too(connect: Connect, transport: str, revision: str) -> None:
    result = connect(transport, revision).call("add", {"a": 1.5, "b": 2}).result
    assert result["content"] == [{"type": "text", "text": '{"sum": 3.5}'}]
    assert result.get("structuredContent") == ({"sum": 3.5} if revision >= "2025-06-18" else None)


@both
@every
def test_a_tool_error_is_a_result(connect: Connect, transport: str, revision: str) -> None:
    peer = connect(transport, revision)
    assert peer.call("test_error_handling").result["isError"] is True
    assert peer.call("add", {"a": "one"}).result["isError"] is True


@both
@every
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "no_such_tool", "arguments": {}}),
        ("tools/call", {"arguments": {}}),
        ("tools/call", {"name": 5}),
        ("tools/call", {"name": "add", "arguments": []}),
        ("prompts/get", {"name": "no_such_prompt"}),
        ("prompts/get", {"name": "test_prompt_with_arguments", "arguments": {"arg1": 5}}),
        ("resources/read", {}),
        ("resources/read", {"uri": None}),
        ("completion/complete", {"ref": {"type": "ref/unknown"}, "argument": {}}),
        ("completion/complete", {"ref": {}, "argument": {"name": "a", "value": "b"}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}}),
    ],
)
def test_wrong_parameters_are_invalid(
    connect: Connect, transport: str, revision: str, method: str, params: dict[str, Any]
) -> None:
    assert connect(transport, revision).request(method, params).error["code"] == -32602


@both
@every
def test_an_unknown_resource_names_its_uri(connect: Connect, transport: str, revision: str) -> None:
    error = connect(transport, revision).request("resources/read", {"uri": "test://none"}).error
    assert error["code"] == (-32602 if revision == MODERN else -32002)
    assert error["data"]["uri"] == "test://none"


@both
@every
def test_resources_come_as_text_and_as_bytes(
    connect: Connect, transport: str, revision: str
) -> None:
    peer = connect(transport, revision)
    (content,) = peer.request("resources/read", {"uri": "test://static-text"}).result["contents"]
    assert content["text"].startswith("This is the content")
    (content,) = peer.request("resources/read", {"uri": "test://static-binary"}).result["contents"]
    assert content["mimeType"] == "image/png"
    assert content["blob"].startswith("iVBOR")


@both
@every
def test_completion_knows_what_was_chosen(connect: Connect, transport: str, revision: str) -> None:
    params = {
        "ref": {"type": "ref/resource", "uri": "test://template/{id}/data"},
        "argument": {"name": "id", "value": "pa"},
        "context": {"arguments": {"other": "pawn"}},
    }
    completion = connect(transport, revision).request("completion/complete", params).result
    assert completion["completion"] == {
        "values": ["paris", "park", "party", "pawn"],
        "total": 4,
        "hasMore": False,
    }
