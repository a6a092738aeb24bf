"""The bridge's session at a server, which survives new tokens, lost sessions and server restarts.

After a failure it finds the server again and opens a new session with the host's own `initialize`
message. Failures at the same time lead to one renewal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tidegate.bridge.discovery import Discovery
from tidegate.bridge.handshake_file import Handshake
from tidegate.bridge.http_client import Answer, WireError, send_request
from tidegate.bridge.messages import Frame, header_arguments, id_of, result_of
from tidegate.errors import Code, TidegateError
from tidegate.identity.bridge_tokens import Share, bearer_for

FULL_ACCESS = Share()
MARGIN_S = 60.0
REREAD_S = 600.0
"""With less time left in a token, the handshake file is read again; it has a new token by then."""

_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_BOTH = ("Accept", "application/json, text/event-stream")
_JSON = ("Content-Type", "application/json")


class BridgeSession:
    """A session at the server that `discovery` finds, on the path of `surface`, with the access
    that `share` asks for."""

    def __init__(
        self, discovery: Discovery, surface: str | None, share: Share = FULL_ACCESS
    ) -> None:
        self._discovery = discovery
        self._share = share
        self._path = "/mcp" if surface is None else f"/mcp/{surface}"
        self._server: Handshake | None = None
        self._initialize: Frame | None = None
        self._ready = False
        self._replayed: dict[str, Frame] = {}
        self._header_arguments: dict[str, dict[str, str]] = {}
        self._renewal: asyncio.Task[None] | None = None
        self.session_id: str | None = None
        self.revision: str | None = None
        self.generation = 0
        self.on_renewal: Callable[[], None] = lambda: None

    @property
    def patience_s(self) -> float:
        """The longest time to wait for the server: more than its longest call takes."""
        return (0.0 if self._server is None else self._server.patience_s) + MARGIN_S

    @property
    def is_outdated(self) -> bool:
        """Whether the handshake file names another server, or another token, than is in use."""
        now = self._discovery.read()
        return now is not None and self._server is not None and now.token != self._server.token

    async def connect(self) -> None:
        """Find the server, or start it. Raises: TidegateError."""
        if self._server is None:
            await self.renew(self.generation)

    async def post(self, frame: Frame) -> Answer:
        """Send one message. Raises: WireError, TidegateError."""
        await self.connect()
        return await self._ask("POST", [_BOTH, _JSON, *self._headers(frame)], frame.data)

    async def get(self, last_event: str | None = None) -> Answer:
        """Open the stream of the session, or resume one after `last_event`. Raises: WireError,
        TidegateError."""
        headers = [("Accept", "text/event-stream"), *self._session_headers()]
        if last_event is not None:
            headers.append(("Last-Event-ID", last_event))
        return await self._ask("GET", headers, b"")

    async def close(self) -> None:
        """End the session at the server. Never raises."""
        if self.session_id is None or self._server is None:
            return
        try:
            async with asyncio.timeout(2.0):
                answer = await self._ask("DELETE", self._session_headers(), b"")
                answer.close()
        except (WireError, TimeoutError, TidegateError):
            pass
        self.session_id = None

    async def renew(self, generation: int, status: int | None = None) -> None:
        """Find the server again and reopen the session.

        Does nothing if that has been done since `generation`. `status` is the server's answer: 401
        if it does not accept the token, 404 if it does not know the session. Raises: TidegateError.
        """
        if generation != self.generation:
            return
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.ensure_future(self._renew(status))
        await asyncio.shield(self._renewal)

    def note_initialize(self, frame: Frame, answer: bytes, session_id: str | None) -> None:
        """Keep the host's `initialize` and its result, to open a new session with it."""
        revision = result_of(answer).get("protocolVersion")
        if isinstance(revision, str):
            self._initialize, self.session_id, self.revision = frame, session_id, revision
            self._ready = False
            self._replayed.clear()

    def note_initialized(self) -> None:
        """Take note that the host sent `notifications/initialized`."""
        self._ready = self._initialize is not None

    def note_answer(self, frame: Frame, body: bytes) -> None:
        """Keep what a new session or a later request needs of a request and its response."""
        if frame.revision is not None:
            if frame.method == "tools/list":
                self._header_arguments.update(header_arguments(body))
        elif frame.method == "logging/setLevel":
            self._replayed["level"] = frame
        elif frame.method == "resources/subscribe":
            self._replayed[_uri(frame)] = frame
        elif frame.method == "resources/unsubscribe":
            self._replayed.pop(_uri(frame), None)

    async def _renew(self, status: int | None) -> None:
        before, now = self._server, await self._discovery.find()
        if self._path not in now.paths:
            raise TidegateError(
                Code.CONFIG_INVALID,
                f"The server does not serve {self._path}",
                hint=f"Use the surface of one of its paths: {', '.join(now.paths)}.",
            )
        same = before is not None and before.instance == now.instance
        if status == 401 and before is not None and before.token == now.token:
            raise TidegateError(
                Code.AUTH_INVALID,
                "The server does not accept the bridge's token",
                hint="Restart the server.",
            )
        self._server = now
        if self._initialize is not None and (status == 404 or not same):
            await self._reinitialize(self._initialize)
        self.generation += 1
        self.on_renewal()

    async def _reinitialize(self, initialize: Frame) -> None:
        """Open a new session with the messages that the host sent to open the first one."""
        self.session_id = None
        try:
            answer = await self._ask("POST", [_BOTH, _JSON], initialize.data)
            body = await _reply(answer, initialize)
            if answer.status != 200 or result_of(body).get("protocolVersion") != self.revision:
                raise _reconnect_failed(f"it answered {answer.status}")
            self.session_id = answer.headers.get("mcp-session-id")
            if self._ready:
                await self._replay(Frame(_INITIALIZED))
            for frame in list(self._replayed.values()):
                await self._replay(frame)
        except WireError as error:
            raise _reconnect_failed(str(error) or "the connection ended") from None

    async def _replay(self, frame: Frame) -> None:
        """Send a message of the host again. The host does not get this response."""
        answer = await self._ask("POST", [_BOTH, _JSON, *self._session_headers()], frame.data)
        await answer.body()

    async def _ask(self, method: str, headers: list[tuple[str, str]], body: bytes) -> Answer:
        server = self._current_server()
        bearer = ("Authorization", f"Bearer {bearer_for(server.token, self._share)}")
        fields = [bearer, *headers]
        return await send_request(server.address, method, self._path, fields, body, self.patience_s)

    def _current_server(self) -> Handshake:
        """The server with its current token. Raises: TidegateError."""
        server = self._server
        if server is None:
            raise _reconnect_failed("it is not connected")
        if time.time() >= server.expires_at - REREAD_S:
            handshake = self._discovery.read()
            if handshake is not None and handshake.instance == server.instance:
                server = self._server = handshake
        return server

    def _headers(self, frame: Frame) -> list[tuple[str, str]]:
        if frame.revision is not None:
            return frame.headers(self._header_arguments)
        return [] if frame.method == "initialize" else self._session_headers()

    def _session_headers(self) -> list[tuple[str, str]]:
        headers: list[tuple[str, str]] = []
        if self.session_id is not None:
            headers.append(("Mcp-Session-Id", self.session_id))
        if self.revision is not None:
            headers.append(("MCP-Protocol-Version", self.revision))
        return headers


async def _reply(answer: Answer, frame: Frame) -> bytes:
    """The response message, without notifications before it. Raises: WireError."""
    if not answer.is_stream:
        return await answer.body()
    async for event in answer.events():
        if id_of(event.data) == frame.id:
            answer.close()
            return event.data
    raise WireError("the stream ended before the answer")


def _uri(frame: Frame) -> str:
    import msgspec

    return str(msgspec.json.decode(frame.data).get("params", {}).get("uri"))


def _reconnect_failed(reason: str) -> TidegateError:
    return TidegateError(
        Code.BRIDGE_NO_SERVER,
        f"The session at the server could not be reopened: {reason}",
        hint="Restart the client.",
    )
