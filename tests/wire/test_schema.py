"""Every message the server sends validates against the published schema of its revision.

The traffic is generated: right and wrong requests of every method, of unknown methods,
notifications, batches and noise, over both transports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import ValidationError

from wire.condense import DIGESTS, SCHEMAS, condense, digest, without_prose
from wire.fixture_tools import FIXTURES
from wire.published import published
from wire.raw_http import http_request
from wire.served import everything
from wire.wires import BOTH, META, MODERN, NAMED, REVISIONS, HttpPeer, Peer, StdioPeer

EXAMPLES = 75
URIS = ("test://static-text", "test://static-binary", "test://template/5/data", "test://nothing")
PROMPTS = (
    "test_simple_prompt", "test_prompt_with_arguments", "test_prompt_with_embedded_resource",
    "test_prompt_with_image", "test_input_required_result_prompt", "unknown",
)  # fmt: skip
ENDLESS = {"wait", "large", "test_reconnection", "slow_compute", "approved_change", "hold"}
MODERN_FORM = "test_elicitation_sep1330_enums"
"""Its form asks for lists, which no form could before 2025-11-25."""

# What is sent

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
objects = st.dictionaries(st.text(max_size=6), json_values, max_size=4)
uris = st.sampled_from(URIS) | st.text(max_size=10)
tool_names = st.sampled_from(sorted(set(FIXTURES) - ENDLESS - {MODERN_FORM})) | st.text(max_size=6)
PARAMS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "ping": st.just({}),
    "tools/list": st.just({}),
    "tools/call": st.fixed_dictionaries(
        {"name": tool_names, "arguments": st.just({"a": 1, "b": 2.5, "region": "x"}) | objects}
    ),
    "resources/list": st.just({}),
    "resources/templates/list": st.just({}),
    "resources/read": st.fixed_dictionaries({"uri": uris}),
    "resources/subscribe": st.fixed_dictionaries({"uri": uris}),
    "resources/unsubscribe": st.fixed_dictionaries({"uri": uris}),
    "prompts/list": st.just({}),
    "prompts/get": st.fixed_dictionaries(
        {"name": st.sampled_from(PROMPTS)},
        optional={"arguments": st.dictionaries(st.text(max_size=6), st.text(max_size=6))},
    ),
    "completion/complete": st.fixed_dictionaries(
        {
            "ref": st.fixed_dictionaries({"type": st.just("ref/prompt"), "name": st.text()}),
            "argument": st.fixed_dictionaries({"name": st.text(), "value": st.text(max_size=3)}),
        }
    ),
    "logging/setLevel": st.fixed_dictionaries({"level": st.sampled_from(["debug", "error"])}),
    "server/discover": st.just({}),
    "initialize": st.fixed_dictionaries({"protocolVersion": st.sampled_from(REVISIONS)}),
    "notifications/cancelled": st.fixed_dictionaries({"requestId": json_values}),
    "no/such/method": objects,
}
METAS = st.fixed_dictionaries(
    {},
    optional={
        "progressToken": st.text(max_size=4) | st.integers() | json_values,
        f"{META}logLevel": st.sampled_from(["debug", "warning", "loud"]),
        "example.org/anything": json_values,
    },
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, Any]:
    """A method and its params: mostly right, often wrong in one place, sometimes noise."""
    method = draw(st.sampled_from(sorted(PARAMS)) | st.text(max_size=8))
    params = dict(draw(PARAMS.get(method, objects)))
    if draw(st.booleans()):
        params["_meta"] = draw(METAS)
    match draw(st.sampled_from(["right"] * 5 + ["without", "wrong", "more"])):
        case "without" if params:
            del params[draw(st.sampled_from(sorted(params)))]
        case "wrong" if params:
            params[draw(st.sampled_from(sorted(params)))] = draw(json_values)
        case "more":
            params |= {f"x{name}": value for name, value in draw(objects).items()}
        case _:
            pass
    return method, params


ids = st.text(max_size=12) | st.integers(-(2**70), 2**70)
noise = st.one_of(
    st.binary(max_size=30).filter(lambda data: b"\n" not in data and data.strip()),
    json_values.map(lambda value: json.dumps(value).encode()),
    objects.map(lambda value: json.dumps({"jsonrpc": "2.0", "id": 1, **value}).encode()),
)

# Sending and listening


@pytest.fixture(scope="module", params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=["stdio", "http"])
def peer(request: pytest.FixtureRequest, revision: str) -> Iterator[Peer]:
    if request.param == "stdio":
        with StdioPeer(revision) as stdio:
            stdio.connect().request("tools/list")
            yield stdio
        return
    server = everything()
    with HttpPeer(server.port, revision) as http:
        yield http.connect()
    server.close()


def _send(peer: Peer, message: bytes, method: str | None, name: Any = None) -> list[Any]:
    """Send a frame and return all that came because of it."""
    if isinstance(peer, HttpPeer):
        response = http_request(peer.port, "POST", "/mcp", message, _headers(peer, method, name))
        messages = []
        for received in response.messages():
            messages.append(received)
            if isinstance(received, dict) and "method" in received and "id" in received:
                peer.post(peer._reply_to(received)).close()
        response.close()
        return messages
    assert isinstance(peer, StdioPeer)
    peer.write(message + b"\n")
    messages = []
    marker = {"jsonrpc": "2.0", "id": "the end", "method": "no/more", "params": peer.add_meta({})}
    peer.send(marker)
    ended, owed = False, _is_owed_an_answer(message)
    while not ended or owed:
        received = peer.receive()
        if isinstance(received, dict) and received.get("id") == "the end":
            ended = True
            continue
        messages.append(received)
        if "method" not in received:
            owed = False
        elif "id" in received:
            peer.send(peer._reply_to(received))
    return messages


def _headers(peer: HttpPeer, method: str | None, name: Any) -> dict[str, str]:
    """Headers that fit the message, as far as header values can."""
    headers = {"Content-Type": "application/json", "Accept": BOTH}
    if not peer.modern:
        return {**headers, "Mcp-Session-Id": peer.session or ""}
    headers |= {"MCP-Protocol-Version": MODERN}
    if method is not None and method.isascii() and method.isprintable():
        headers["Mcp-Method"] = method
    if isinstance(name, str) and name.isascii() and name.isprintable():
        headers["Mcp-Name"] = name
    return headers


def _is_owed_an_answer(message: bytes) -> bool:
    """True for requests, and for lists: none that is generated has notifications only."""
    try:
        value = json.loads(message)
    except ValueError:
        return False
    return isinstance(value, list) or (isinstance(value, dict) and {"id", "method"} <= set(value))


bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@bounded
@given(request=requests(), id=ids)
def test_what_answers_a_request_is_as_published(
    peer: Peer, request: tuple[str, Any], id: str | int
) -> None:
    method, params = request
    with_meta = peer.add_meta(params) if isinstance(params.get("_meta", {}), dict) else params
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": with_meta}
    messages = _send(peer, json.dumps(message).encode(), method, params.get(NAMED.get(method, "")))
    schema = published(peer.revision)
    for received in messages:
        schema.check_message(method, received)
    replies = [received for received in messages if "method" not in received]
    assert len(replies) == 1, messages
    assert replies[0]["id"] == id


@bounded
@given(frame=noise)
def test_what_answers_noise_is_as_published(peer: Peer, frame: bytes) -> None:
    schema = published(peer.revision)
    for received in _send(peer, frame, None):
        schema.check_message(None, received)


@settings(bounded, max_examples=40)
@given(request=requests())
def test_notifications_are_owed_nothing(peer: Peer, request: tuple[str, Any]) -> None:
    method, params = request
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    messages = _send(peer, json.dumps(message).encode(), method)
    assert [received for received in messages if "method" not in received] == []


def test_each_tool_answers_as_published(peer: Peer) -> None:
    schema = published(peer.revision)
    given: Mapping[str, Any] = {"a": 1, "b": 2, "prompt": "p", "message": "m"}
    unknown = {MODERN_FORM} if peer.revision == "2025-06-18" else set[str]()
    for name in sorted(set(FIXTURES) - ENDLESS - unknown):
        first = peer.request("tools/call", {"name": name, "arguments": given})
        last = peer.call(name, {**given})
        for outcome in (first, last):
            for received in (*outcome.before, outcome.response):
                schema.check_message("tools/call", received)


@pytest.mark.parametrize(
    "method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
)
def test_each_list_is_as_published(peer: Peer, method: str) -> None:
    published(peer.revision).check_result(method, peer.request(method).result)


def test_the_greeting_is_as_published(peer: Peer) -> None:
    schema = published(peer.revision)
    if peer.modern:
        schema.check_result("server/discover", peer.request("server/discover").result)
    else:
        schema.check_result("initialize", peer.greeting)


def test_a_batch_of_replies_is_as_published() -> None:
    with StdioPeer("2025-03-26") as peer:
        peer.connect()
        calls = [
            {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": name}}
            for n, name in enumerate(["test_simple_text", "add", "unknown"])
        ]
        peer.send([*calls, 5, {"jsonrpc": "2.0"}])
        published("2025-03-26").check_message(None, peer.receive())


def test_a_listen_stream_is_as_published() -> None:
    with StdioPeer(MODERN) as peer:
        params = peer.add_meta(
            {
                "notifications": {
                    "toolsListChanged": True,
                    "promptsListChanged": True,
                    "resourceSubscriptions": ["test://watched-resource"],
                }
            }
        )
        listen = {"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": params}
        peer.send(listen)
        messages = [peer.receive()]
        for name in ("test_trigger_tool_change", "test_trigger_prompt_change"):
            messages += peer.call(name).before
        messages += peer.call("trigger_resource_change").before
        peer.close_input()
        while (line := peer.read_line()) is not None:
            messages.append(json.loads(line))
    assert len(messages) == 5
    for received in messages:
        published(MODERN).check_message("subscriptions/listen", received)


# The judge itself


@pytest.mark.parametrize(
    ("revision", "method", "result"),
    [
        ("2024-11-05", "tools/list", {"tools": [{"name": "x"}]}),
        ("2024-11-05", "tools/list", {"tools": [{"name": "x", "inputSchema": {}, "title": "X"}]}),
        ("2025-03-26", "tools/call", {"content": [{"type": "resource_link"}]}),
        ("2025-06-18", "resources/read", {"contents": [{"uri": "x"}]}),
        ("2025-11-25", "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}),
        (MODERN, "tools/list", {"tools": [], "resultType": "complete"}),
        (MODERN, "tools/call", {"content": []}),
    ],
)
def test_the_judge_finds_faults(revision: str, method: str, result: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        published(revision).check_result(method, result)


def test_e_the_schemas_and_examples_are_those_that_were_condensed() -> None:
    digests = json.loads(DIGESTS.read_text())
    kept = {str(path.relative_to(SCHEMAS)): digest(path) for path in SCHEMAS.rglob("20*.json")}
    assert kept == digests
    assert len([name for name in kept if "/" not in name]) == 5


def test_e_the_published_examples_pass_the_judge() -> None:
    schema = published(MODERN)
    examples = json.loads((SCHEMAS / "examples" / f"{MODERN}.json").read_text())
    seen = 0
    for name, values in examples.items():
        for value in values:
            if name in schema.definitions:
                schema.check(name, value)
                seen += 1
    assert seen > 50


def test_condensing_keeps_shapes_and_no_prose() -> None:
    schema = {"title": "T", "properties": {"title": {"type": "string", "description": "D"}}}
    assert condense(schema) == {"properties": {"title": {"type": "string"}}}
    example = {"title": "T", "n": 1, "content": [{"text": "long", "type": "text"}]}
    assert without_prose(example) == {
        "title": "words", "n": 1, "content": [{"text": "words", "type": "text"}],
    }  # fmt: skip
