"""Contract C8: endpoints with conventions of their own, routes, several edges in one process."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.eventually import PATIENCE_S
from support.http_application import Answer, ask
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.edges.http.application import HttpApplication
from tidegate.edges.http.edge import HttpEdge
from tidegate.edges.http.endpoint import Endpoint, HttpConventions, JsonConventions
from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.router import HttpRequest, HttpResponse, Router, cookie, json_response
from tidegate.edges.http.www_authenticate import Challenge
from tidegate.edges.listening import bind
from tidegate.edges.stdio import StdioEdge
from tidegate.identity.builtin_actors import stdio
from tidegate.identity.request_rate import RequestRate
from tidegate.model.actors import Scope
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.transport import Answer as Reply
from tidegate.serve.lifecycle import Shutdown, serve
from tidegate.store.records import TokenRights

PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}  # fmt: skip


class PlainErrors(HttpConventions):
    """As the document of a product may want it: POST only, any media type, `{"error": TEXT}`."""

    methods = frozenset({"POST"})

    def takes_events(self, headers: Mapping[bytes, bytes]) -> bool:
        return False

    def refuse(self, refusal: HttpRefusal) -> Reply:
        text = "Unauthorized" if refusal.status == 401 else refusal.message
        return Reply(msgspec.json.encode({"error": text}), refusal.status, refusal.headers)


async def table(request: HttpRequest) -> HttpResponse:
    """Shows a table's name and counts visits in a cookie."""
    seen = int(request.cookies.get("seen", "0")) + 1
    body = {"table": request.parameters["name"], "query": request.query, "seen": seen}
    return json_response(200, body, [cookie("seen", str(seen), secure=False)])


async def echo(request: HttpRequest) -> HttpResponse:
    body = await request.read(8)
    return HttpResponse(200, body[::-1], [(b"content-type", b"application/octet-stream")])


async def style(request: HttpRequest) -> HttpResponse:
    return HttpResponse(200, b"\xff\x00body", [(b"content-type", b"text/css")])


class Harness:
    """An application with an endpoint of each kind."""

    def __init__(self, directory: Path) -> None:
        self.app = App.open(Config(state=str(directory)))
        surface = self.app.surface("core")
        kernel = Kernel(surface, surface.settings)
        router = Router()
        router.add("GET", "/pages/tables/{name}", table)
        router.add("GET", "/pages/tables/list", echo)
        router.add("POST", "/pages/echo", echo)
        router.add("GET", "/pages/style.css", style)
        self.endpoints = [
            Endpoint("/mcp", kernel, HttpConventions()),
            Endpoint("/mcp/v1", kernel, PlainErrors(Challenge("a product"))),
            Endpoint("/pages", router, JsonConventions()),
        ]
        self.application = HttpApplication(self.endpoints, self.app.authenticate)
        self.token, _ = self.app.tokens.create("test", TokenRights(Scope.READ_ONLY))

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return await ask(self.application, method, path, body, given)


def play(directory: Path, scenario: Callable[[Harness], Awaitable[None]]) -> None:
    async def whole() -> None:
        harness = Harness(directory)
        try:
            await scenario(harness)
        finally:
            await harness.app.close()

    asyncio.run(whole())


def test_c8_an_endpoint_refuses_by_its_own_conventions(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        plain = await harness.send("POST", "/mcp/v1", PING)
        assert (plain.status, plain.json) == (401, {"error": "Unauthorized"})
        assert plain.headers["www-authenticate"] == 'Bearer realm="a product"'
        ours = await harness.send("POST", "/mcp", PING)
        assert ours.status == 401 and ours.json["error"]["code"] < 0
        bearer = f"Bearer {harness.token}"
        got = await harness.send("GET", "/mcp/v1", authorization=bearer)
        assert (got.status, got.headers["allow"]) == (405, "POST")
        assert got.json == {"error": "GET is not served here"}
        lost = await harness.send("POST", "/mcp/v1", PING, host="evil.example")
        assert lost.status == 403 and "evil.example" in lost.json["error"]

    play(tmp_path, scenario)


def test_an_address_that_sends_too_many_requests_is_refused_as_each_endpoint_says(
    tmp_path: Path,
) -> None:
    async def scenario(harness: Harness) -> None:
        rate = RequestRate(60, 2, harness.app.server_audit.record_anonymous, lambda: 0.0)
        limited = HttpApplication(
            harness.endpoints, harness.app.authenticate, count_request=rate.check
        )
        sent = [("POST", "/mcp/v1"), ("POST", "/mcp"), ("GET", "/pages/tables/x")] * 2
        found = [
            await ask(limited, method, path, PING if method == "POST" else None)
            for method, path in sent
        ]
        assert [answer.status for answer in found] == [401, 401, 429, 429, 429, 429]
        assert {answer.headers["retry-after"] for answer in found[2:]} == {"1"}
        assert found[3].json["error"].startswith("This address has sent more than 60 requests")
        assert found[4].json["error"]["message"].startswith("This address has sent")
        assert found[5].json["error"] == "limit.rate"
        assert (await ask(limited, "GET", "/health")).status == 200
        assert (await ask(limited, "POST", "/mcp", PING, address="192.0.2.7")).status == 401

    play(tmp_path, scenario)


def test_c8_an_endpoint_takes_the_media_types_of_its_conventions(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        sent = {"authorization": f"Bearer {harness.token}", "content_type": "text/plain"}
        served = await harness.send("POST", "/mcp/v1", INITIALIZE, **sent)
        assert served.status == 200 and served.json["result"]["protocolVersion"] == "2025-06-18"
        refused = await harness.send("POST", "/mcp", INITIALIZE, **sent)
        assert refused.status == 415 and refused.json["error"]["code"] < 0

    play(tmp_path, scenario)


def test_c8_a_route_has_parameters_and_cookies(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        first = await harness.send("GET", "/pages/tables/a%2Fb%20c?x=1&y=%C3%A9")
        assert first.json == {"table": "a/b c", "query": {"x": "1", "y": "é"}, "seen": 1}
        assert first.headers["set-cookie"] == "seen=1; Path=/; HttpOnly; SameSite=Strict"
        second = await harness.send("GET", "/pages/tables/t", cookie="other=5; seen=1; seen=9")
        assert second.json["seen"] == 2

    play(tmp_path, scenario)


def test_c8_a_route_serves_any_bytes(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        style = await harness.send("GET", "/pages/style.css")
        assert (style.status, style.body) == (200, b"\xff\x00body")
        assert style.headers["content-type"] == "text/css"
        head = await harness.send("HEAD", "/pages/style.css")
        assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "6")
        echoed = await harness.send("POST", "/pages/echo", b"\x01\x02\xff")
        assert echoed.body == b"\xff\x02\x01"

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("method", "path", "status", "name"),
    [
        ("GET", "/pages/tables/", 404, "not_found"),
        ("GET", "/pages/tables/a/b", 404, "not_found"),
        ("GET", "/pages%2Fstyle.css", 404, "not_found"),
        ("GET", "/mcp%2Fv1", 404, "not_found"),
        ("GET", "/pages/echo", 405, "method_not_allowed"),
        ("POST", "/pages/echo", 413, "payload_too_large"),
    ],
)
def test_c8_a_route_refuses_with_json(
    tmp_path: Path, method: str, path: str, status: int, name: str
) -> None:
    async def scenario(harness: Harness) -> None:
        answer = await harness.send(method, path, b"nine byte")
        assert (answer.status, answer.json["error"]) == (status, name)
        assert answer.json["message"]

    play(tmp_path, scenario)


def test_c8_a_fixed_path_is_preferred_to_a_parameter(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        answer = await harness.send("GET", "/pages/tables/list", b"ab")
        assert answer.body == b"ba"

    play(tmp_path, scenario)


@pytest.mark.parametrize("text", ["a;b", "a\r\nb", "a b", "é"])
def test_c8_a_cookie_holds_no_character_that_ends_it(text: str) -> None:
    with pytest.raises(ValueError, match="cookie"):
        cookie("name", text)


def test_c8_of_two_edges_in_one_process_one_stops_and_the_other_goes_on(tmp_path: Path) -> None:
    async def whole() -> None:
        harness = Harness(tmp_path / "state")
        surface = harness.app.surface("core")
        ours_in, theirs_in = os.pipe()
        theirs_out, ours_out = os.pipe()
        with open(ours_in, "rb") as stdin, open(ours_out, "wb") as stdout:
            pipes = StdioEdge(
                Kernel(surface, surface.settings), stdio(), stdin=stdin, stdout=stdout
            )
            listener = bind("127.0.0.1", 0)
            port = listener.getsockname()[1]
            http = HttpEdge(harness.application, listener)
            shutdown, ready = Shutdown(), asyncio.Event()
            serving = asyncio.ensure_future(serve(harness.app, [pipes, http], shutdown, ready.set))
            await ready.wait()
            os.write(theirs_in, json.dumps(INITIALIZE).encode() + b"\n")
            received = await asyncio.to_thread(os.read, theirs_out, 65_536)
            assert json.loads(received)["result"]["protocolVersion"] == "2025-06-18"
            assert await _status(port) == b"HTTP/1.1 200 OK"
            os.close(theirs_in)  # the end of the input: this edge ends
            async with asyncio.timeout(PATIENCE_S):
                while list(pipes.actors()):
                    await asyncio.sleep(0)
            assert not serving.done()
            assert await _status(port) == b"HTTP/1.1 200 OK"
            shutdown.ask()
            await asyncio.wait_for(serving, PATIENCE_S)
            with pytest.raises(OSError):
                await _status(port)
        os.close(theirs_out)

    asyncio.run(whole())
    names = [
        json.loads(line).get("name")
        for file in sorted((tmp_path / "state" / "audit").glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    assert names.count("server.started") == names.count("server.stopped") == 1


def test_c8_a_revoked_token_ends_its_sessions_on_every_edge(tmp_path: Path) -> None:
    async def whole() -> None:
        harness = Harness(tmp_path)
        other = HttpApplication(
            [Endpoint("/mcp", _kernel(harness.app), HttpConventions())], harness.app.authenticate
        )
        edges = [HttpEdge(each, bind("127.0.0.1", 0)) for each in (harness.application, other)]
        shutdown, ready = Shutdown(), asyncio.Event()
        serving = asyncio.ensure_future(serve(harness.app, edges, shutdown, ready.set))
        await ready.wait()
        headers = {"authorization": f"Bearer {harness.token}"}
        for each in (harness.application, other):
            opened = await ask(each, "POST", "/mcp", INITIALIZE, headers)
            assert opened.status == 200
            assert [actor.name for actor in each.actors()] == ["test"]
        harness.app.tokens.revoke("test")
        async with asyncio.timeout(PATIENCE_S):
            while list(harness.application.actors()) or list(other.actors()):
                await asyncio.sleep(0)
        shutdown.ask()
        await serving

    asyncio.run(whole())


def _kernel(app: App) -> Kernel:
    surface = app.surface("core")
    return Kernel(surface, surface.settings)


async def _status(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /health HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n\r\n")
    line = await reader.readline()
    writer.close()
    return line.strip()
