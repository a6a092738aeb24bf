"""Calls and forms that take longer than a proxy waits, through nginx, HAProxy and Caddy with the
settings of the page on proxies. `./dev proxies` does the same in real time, for ten minutes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.eventually import wait_until
from support.proxies import NAMES, program, proxied
from wire.served import Served, everything
from wire.wires import MODERN, REVISIONS, HttpPeer

SCALE = float(os.environ.get("TIDEGATE_TEST_PROXY_SCALE", "0.03"))
"""1 is real time: the product's 12 s between two keep-alives, the proxies' 30 s, and a call of ten
minutes; less is that, in the same proportions, of a call of 60 s."""
KEEP_ALIVE_S, PATIENCE_S = 12 * SCALE, 30 * SCALE
CALL_S = 600.0 if SCALE == 1 else 60 * SCALE


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    served = everything("--keep-alive", str(KEEP_ALIVE_S))
    yield served
    served.close()


@pytest.fixture(scope="module")
def ports(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """The ports of the proxies that are installed, and that of the server itself."""
    with ExitStack() as running:
        found = {"nothing": server.port}
        for name in NAMES:
            if program(name) is not None:
                folder: Path = tmp_path_factory.mktemp(name)
                found[name] = running.enter_context(proxied(name, server.port, folder, PATIENCE_S))
        yield found


def port_of(ports: dict[str, int], proxy: str) -> int:
    if proxy not in ports:
        pytest.skip(f"{proxy} is not installed (tests/external/debian.sh)")
    return ports[proxy]


def call_of(peer: HttpPeer, tool: str, **arguments: Any) -> dict[str, Any]:
    """The message of a call of a tool."""
    params = peer.add_meta({"name": tool, "arguments": arguments})
    return {"jsonrpc": "2.0", "id": peer.next_id(), "method": "tools/call", "params": params}


each_proxy = pytest.mark.parametrize("proxy", ["nothing", *NAMES])


@each_proxy
@pytest.mark.parametrize("token", [None, "p"])
def test_long_calls_of_every_revision_are_answered(
    ports: dict[str, int], proxy: str, token: str | None
) -> None:
    port = port_of(ports, proxy)
    peers = [HttpPeer(port, revision) for revision in REVISIONS]
    sent: list[tuple[HttpPeer, Any, dict[str, Any]]] = []
    for peer in peers:
        peer.connect()
        message = call_of(peer, "pause", seconds=CALL_S)
        if token is not None:
            message["params"].setdefault("_meta", {})["progressToken"] = token
        sent.append((peer, peer.post(message), message))
    for peer, response, message in sent:
        assert response.status == 200, (peer.revision, response.read())
        *_, answer = response.messages()
        assert answer["id"] == message["id"], peer.revision
        assert answer["result"]["content"][0]["text"] == "paused", peer.revision
        response.close()


@each_proxy
def test_a_form_may_wait_as_long(ports: dict[str, int], proxy: str) -> None:
    port = port_of(ports, proxy)
    asked = []
    for revision in ("2025-06-18", "2025-11-25"):
        peer = HttpPeer(port, revision, capabilities={"elicitation": {}})
        peer.connect()
        message = call_of(peer, "confirm_name")
        response = peer.post(message)
        assert response.status == 200, (revision, response.read())
        messages = response.messages()
        question = next(messages, None)
        assert question is not None, (revision, response.headers)
        assert question["method"] == "elicitation/create"
        asked.append((peer, message, response, messages, question))
    # The clock: a call of that time.
    assert HttpPeer(port, MODERN).call("pause", {"seconds": CALL_S}).text == "paused"
    for peer, message, response, messages, question in asked:
        result = {"action": "accept", "content": {"name": "Ada"}}
        peer.post({"jsonrpc": "2.0", "id": question["id"], "result": result}).close()
        answer = next(messages)
        assert answer["id"] == message["id"]
        assert answer["result"]["content"][0]["text"] == "accept: Ada", peer.revision
        response.close()


def test_a_connection_that_was_lost_is_taken_up_and_the_answer_to_a_form_counts(
    server: Served,
) -> None:
    peer = HttpPeer(server.port, "2025-11-25", capabilities={"elicitation": {}})
    peer.connect()
    message = call_of(peer, "confirm_name")
    response = peer.post(message)
    events = response.events()
    first = next(events)
    response.close()
    again = peer.listen(first.id)
    assert again.status == 200
    messages = again.messages()
    question = next(messages)
    assert question["method"] == "elicitation/create"
    result = {"action": "accept", "content": {"name": "Ada"}}
    peer.post({"jsonrpc": "2.0", "id": question["id"], "result": result}).close()
    assert next(messages)["result"]["content"][0]["text"] == "accept: Ada"
    again.close()


def test_the_end_of_a_stream_that_a_proxy_lost_is_sent_again(server: Served) -> None:
    peer = HttpPeer(server.port, "2025-11-25")
    peer.connect()
    message = call_of(peer, "test_tool_with_progress")
    message["params"]["_meta"] = {"progressToken": "p"}
    response = peer.post(message)
    events = list(response.events())
    response.close()
    again = peer.listen(events[0].id)
    *_, answer = again.messages()
    assert answer["id"] == message["id"]
    again.close()


def test_a_client_that_stays_away_ends_its_call(server: Served) -> None:
    peer = HttpPeer(server.port, "2025-11-25", capabilities={"elicitation": {}})
    peer.connect()
    before = cancelled(peer)
    message = call_of(peer, "wait")
    message["params"]["_meta"] = {"progressToken": "p"}
    response = peer.post(message)
    next(response.messages())
    response.close()
    wait_until(lambda: cancelled(peer) > before, "the call of a client that is gone is cancelled")


def cancelled(peer: HttpPeer) -> int:
    return json.loads(peer.call("witness").text)["cancelled"]
