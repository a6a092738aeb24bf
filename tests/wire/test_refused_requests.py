"""A refusal over HTTP names the request and the reason, and waits for neither beyond its bounds.

The Python SDK 2.x shows what a refusal says only where it names the request; that it does is seen
in `test_statuses.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from socket import socket
from typing import Any, NamedTuple

import pytest

from support.eventually import PATIENCE_S
from support.http_application import Wire
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.edges.http import request_body
from tidegate.edges.http.application import HttpApplication, HttpLimits
from tidegate.edges.http.endpoint import Endpoint, HttpConventions
from tidegate.edges.http.worker_relay import PagesRelay, WorkerWay
from tidegate.edges.http1.reader import MOST_AHEAD
from tidegate.edges.http1.request import Application
from tidegate.edges.http1.server import Server
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.protocol.kernel import Kernel

PING = b'{"jsonrpc":"2.0","id":"a-7","method":"ping"}'
NOT_SOON_S = 3600.0


class Heard(Wire):
    """A connection on which every answer is heard."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1")
        self.heard = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        super().write(data)
        self.heard.set()


class Refused(NamedTuple):
    """What a client is answered."""

    status: int
    head: str
    body: dict[str, Any]


class Caller:
    """One connection to the application."""

    def __init__(self, server: Server) -> None:
        self.wire = Heard()
        self._server = server
        self.connection = server.connection()
        self.connection.connection_made(self.wire)

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.data_received(piece)

    def leave(self) -> None:
        if not self.connection._lost:
            self.connection.connection_lost(None)

    async def ended(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*self._server.workers)

    async def answer(self) -> Refused:
        async with asyncio.timeout(PATIENCE_S):
            await self.wire.heard.wait()
        self.wire.heard.clear()
        head, _, body = self.wire.written.partition(b"\r\n\r\n")
        self.wire.written = b""
        return Refused(int(head.split(b" ")[1]), head.decode().lower(), json.loads(body))


class Door:
    """An application that refuses everybody for `reason`, and its callers."""

    def __init__(self, kernel: Kernel, reason: TidegateError, *, counts: bool = False) -> None:
        def authenticate(token: str | None, address: str) -> Actor:
            raise reason

        def count(address: str) -> None:
            raise reason

        self.application = HttpApplication(
            [Endpoint("/mcp", kernel, HttpConventions())],
            authenticate,
            count_request=count if counts else None,
            limits=HttpLimits(body_bytes=200),
        )
        self._callers: list[Caller] = []

    def caller(self, application: Application | None = None) -> Caller:
        made = Caller(Server(application or self.application))
        self._callers.append(made)
        return made

    async def close(self) -> None:
        for caller in self._callers:
            caller.leave()
            await caller.ended()

    @property
    def waiting(self) -> int:
        return self.application._refused._waiting


AWAY = TidegateError(
    Code.STATE_FAILED,
    "The state at /srv/secret/state.db cannot be read",
    retry_after_s=3.4,
    details={"path": "/srv/secret/state.db"},
)
ANYBODY = Actor("any", "any", Scope.READ_ONLY)
NOBODY = TidegateError(Code.AUTH_INVALID, "The token is not valid")


def head_of(length: int, more: Mapping[str, str] | None = None) -> bytes:
    headers = {"Host": "localhost", "Content-Type": "application/json"}
    headers |= {"Content-Length": str(length), **(more or {})}
    lines = [f"{name}: {value}" for name, value in headers.items() if value]
    return "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode()


def play(
    tmp_path: Any,
    scenario: Callable[[Door], Awaitable[None]],
    reason: TidegateError = NOBODY,
    **more: Any,
) -> None:
    async def whole() -> None:
        app = App.open(Config(state=str(tmp_path)))
        try:
            surface = app.surface("core")
            door = Door(Kernel(surface, surface.settings), reason, **more)
            await scenario(door)
            await door.close()
        finally:
            await app.close()

    asyncio.run(whole())


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal that waits for a body waits beyond every test."""
    monkeypatch.setattr(request_body, "WAIT_S", NOT_SOON_S)


REASONS = [
    (Code.AUTH_MISSING, 401), (Code.AUTH_INVALID, 401), (Code.AUTH_EXPIRED, 401),
    (Code.AUTH_LOCKED_OUT, 429), (Code.AUTH_UNAVAILABLE, 503), (Code.POLICY_SCOPE, 403),
    (Code.LIMIT_RATE, 429), (Code.STATE_FAILED, 503), (Code.SERVER_STOPPING, 503),
]  # fmt: skip


@pytest.mark.parametrize(("code", "status"), REASONS, ids=lambda each: str(each))
@pytest.mark.parametrize("counts", [False, True])
def test_a_refusal_says_which_request_it_answers_and_why(
    tmp_path: Any, code: Code, status: int, counts: bool
) -> None:
    reason = TidegateError(code, "Not now", hint="Do this.", retry_after_s=2.2)

    async def scenario(door: Door) -> None:
        caller = door.caller()
        caller.send(head_of(len(PING)) + PING)
        answer = await caller.answer()
        assert answer.status == status
        assert "retry-after: 2\r\n" in answer.head
        assert answer.body == {
            "jsonrpc": "2.0",
            "id": "a-7",
            "error": {
                "code": reason.mapping.rpc,
                "message": "Not now. Do this.",
                "data": {"code": code.value, "hint": "Do this.", "retry_after_s": 2},
            },
        }

    play(tmp_path, scenario, reason, counts=counts)


REFUSED_HEADS: dict[str, tuple[dict[str, str], int, str | None]] = {
    "host": ({"Host": "evil.example"}, 403, "host.refused"),
    "origin": ({"Origin": "http://evil.example"}, 403, "host.refused"),
    "a header twice": ({"Mcp-Name": "a", "mcp-name": "b"}, 400, None),
    "a coding": ({"Content-Encoding": "gzip"}, 415, None),
}


@pytest.mark.parametrize("name", REFUSED_HEADS)
def test_a_refusal_of_a_head_names_the_request_too(tmp_path: Any, name: str) -> None:
    headers, status, code = REFUSED_HEADS[name]

    async def scenario(door: Door) -> None:
        caller = door.caller()
        caller.send(head_of(len(PING), headers), PING)
        answer = await caller.answer()
        assert (answer.status, answer.body["id"]) == (status, "a-7")
        assert answer.body["error"].get("data") == (code and {"code": code})

    play(tmp_path, scenario)


def test_a_body_that_comes_after_its_head_is_waited_for(tmp_path: Any, endless: None) -> None:
    async def scenario(door: Door) -> None:
        caller = door.caller()
        for _ in range(2):  # the connection goes on
            caller.send(head_of(len(PING)))
            await _waits(door, 1)
            caller.send(PING[:9])
            await asyncio.sleep(0)
            caller.send(PING[9:])
            answer = await caller.answer()
            assert (answer.status, answer.body["id"], door.waiting) == (401, "a-7", 0)

    play(tmp_path, scenario)


async def _waits(door: Door, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while door.waiting != count:
            await asyncio.sleep(0)


def test_a_body_that_does_not_come_is_not_waited_for_any_longer(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_body, "WAIT_S", 0.01)

    async def scenario(door: Door) -> None:
        caller = door.caller()
        caller.send(head_of(len(PING)), PING[:20])
        answer = await caller.answer()
        assert (answer.status, "id" in answer.body, door.waiting) == (401, False, 0)
        assert answer.body["error"]["data"]["code"] == "auth.invalid"
        # The rest of it is dropped, and what follows is the next request.
        caller.send(PING[20:], head_of(len(PING)) + PING)
        assert (await caller.answer()).body["id"] == "a-7"

    play(tmp_path, scenario)


AT_ONCE = {
    "a client that asks first": head_of(len(PING), {"Expect": "100-continue"}),
    "a large body": head_of(MOST_AHEAD + 1),
    "chunks": head_of(0, {"Content-Length": "", "Transfer-Encoding": "chunked"}),
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_may_take_longer_is_refused_at_once(tmp_path: Any, endless: None, name: str) -> None:
    async def scenario(door: Door) -> None:
        caller = door.caller()
        caller.send(AT_ONCE[name])
        answer = await caller.answer()
        assert (answer.status, "id" in answer.body) == (401, False)

    play(tmp_path, scenario)


def test_only_so_many_refusals_wait(
    tmp_path: Any, endless: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_body, "MOST_WAITING", 2)

    async def scenario(door: Door) -> None:
        slow, gone, other = door.caller(), door.caller(), door.caller()
        slow.send(head_of(len(PING)))
        gone.send(head_of(len(PING)))
        await _waits(door, 2)
        other.send(head_of(len(PING)))
        assert "id" not in (await other.answer()).body
        other.send(PING, head_of(len(PING)) + PING)  # needs no wait
        assert (await other.answer()).body["id"] == "a-7"
        gone.leave()
        await _waits(door, 1)
        slow.send(PING)
        assert (await slow.answer()).body["id"] == "a-7"

    play(tmp_path, scenario)


def test_of_a_body_that_was_refused_nothing_is_kept(tmp_path: Any) -> None:
    async def scenario(door: Door) -> None:
        caller = door.caller()
        # In chunks: it is refused at once, with a part of it here.
        chunk = b"%x\r\n%b" % (50_000, b"x" * 50_000)
        caller.send(head_of(0, {"Content-Length": "", "Transfer-Encoding": "chunked"}) + chunk)
        incoming = caller.connection._incoming
        assert incoming is not None and sum(map(len, incoming._parts)) == 50_000
        await caller.answer()
        assert incoming._parts == []

    play(tmp_path, scenario)


def test_a_refusal_tells_no_path_of_this_machine(tmp_path: Any) -> None:
    async def scenario(door: Door) -> None:
        caller = door.caller()
        caller.send(head_of(len(PING)) + PING)
        answer = await caller.answer()
        assert answer.status == 503
        assert "state.db" in answer.body["error"]["message"]
        assert "/srv" not in json.dumps(answer.body)
        assert answer.body["error"]["data"]["retry_after_s"] == 3

    play(tmp_path, scenario, AWAY)


def test_a_body_over_the_limit_is_refused_by_its_id(tmp_path: Any) -> None:
    async def scenario(door: Door) -> None:
        large = PING[:-1] + b',"params":{"x":"' + b"x" * 300 + b'"}}'
        admitted = HttpApplication(
            list(door.application._kernels.values()),
            lambda token, address: ANYBODY,
            limits=HttpLimits(body_bytes=200),
        )
        caller = door.caller(admitted)
        caller.send(head_of(len(large)), large)
        answer = await caller.answer()
        assert (answer.status, answer.body["id"]) == (413, "a-7")
        assert answer.body["error"]["data"] == {"code": "limit.bytes"}

    play(tmp_path, scenario)


def test_a_request_for_a_worker_that_is_away_is_refused_by_its_id(tmp_path: Any) -> None:
    async def scenario(door: Door) -> None:
        (endpoint,) = door.application._kernels.values()
        endpoint.keeps_choices = True
        admitted = HttpApplication([endpoint], lambda token, address: ANYBODY)
        with socket() as listener:
            way = WorkerWay(str(tmp_path / "workers"), 1, 2, listener)
            other = next(n for n in (1, 2) if n != way.owner_of(ANYBODY.id))
            admitted.join(way._replace(number=other))
            caller = door.caller(admitted)
            caller.send(head_of(len(PING)), PING)
            answer = await caller.answer()
        assert (answer.status, answer.body["id"]) == (503, "a-7")
        assert answer.body["error"]["data"]["code"] == "server.stopping"
        assert "retry-after: 1\r\n" in answer.head

    play(tmp_path, scenario)


def test_it_is_not_said_that_a_request_can_be_sent_again_to_a_worker_that_ended_with_it(
    tmp_path: Any,
) -> None:
    async def scenario(door: Door) -> None:
        async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(PING)
            writer.close()

        (tmp_path / "workers").mkdir()
        ending = await asyncio.start_unix_server(end, tmp_path / "workers" / "1")
        with socket() as listener:
            way = WorkerWay(str(tmp_path / "workers"), 2, 2, listener)
            caller = door.caller(PagesRelay(door.application, way, ("/mcp",)))
            caller.send(head_of(len(PING)) + PING)
            answer = await caller.answer()
        ending.close()
        assert (answer.status, answer.body["error"]) == (502, "bridge.outcome_unknown")
        assert "Whether it ran is not known" in answer.body["message"]
        assert "retry-after" not in answer.head

    play(tmp_path, scenario)


def test_a_page_of_a_worker_that_is_away_is_refused_in_words(tmp_path: Any) -> None:
    async def scenario(door: Door) -> None:
        with socket() as listener:
            way = WorkerWay(str(tmp_path / "workers"), 2, 2, listener)
            caller = door.caller(PagesRelay(door.application, way, ("/mcp",)))
            caller.send(head_of(len(PING)), PING)
            answer = await caller.answer()
        assert (answer.status, answer.body["error"]) == (503, "server.stopping")
        assert answer.body["message"].endswith("is being started again. Try again in a moment.")

    play(tmp_path, scenario)
