"""The line to the server: one conversation, kept through new tokens, lost sessions and new servers.

After a failure it finds the server again, opens the conversation once more with the host's own
`initialize`, and goes on. Failures at the same time lead to one such renewal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tidegate.bridge.discovery import Discovery
from tidegate.bridge.handshake import Handshake
from tidegate.bridge.http_client import Answer, WireError, ask
from tidegate.bridge.messages import Frame, id_of, marks_of, result_of
from tidegate.errors import Code, TidegateError
from tidegate.identity.bridge_tokens import Share, bearer_for

EVERYTHING = Share()
MARGIN_S = 60.0
FRESH_S = 600.0
"""A token that ends sooner is looked up again: the server renews it earlier than that."""

_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_BOTH = ("Accept", "application/json, text/event-stream")
_JSON = ("Content-Type", "application/json")


class ServerSession:
    """To the server that `finder` finds, on the path of `surface`, for a share of its rights."""

    def __init__(self, finder: Discovery, surface: str | None, share: Share = EVERYTHING) -> None:
        self._finder = finder
        self._share = share
        self._path = "/mcp" if surface is None else f"/mcp/{surface}"
        self._server: Handshake | None = None
        self._opening: Frame | None = None
        self._ready = False
        self._kept: dict[str, Frame] = {}
        self._marked: dict[str, dict[str, str]] = {}
        self._renewal: asyncio.Task[None] | None = None
        self.session: str | None = None
        self.revision: str | None = None
        self.generation = 0
        self.on_renewal: Callable[[], None] = lambda: None

    @property
    def patience_s(self) -> float:
        """How long the server may be silent: for longer than its longest call."""
        return (0.0 if self._server is None else self._server.patience_s) + MARGIN_S

    async def connect(self) -> None:
        """Find the server, or start it. Raises: TidegateError."""
        if self._server is None:
            await self.renew(self.generation)

    async def post(self, frame: Frame) -> Answer:
        """Send one message. Raises: WireError, TidegateError."""
        await self.connect()
        return await self._ask("POST", [_BOTH, _JSON, *self._headers(frame)], frame.data)

    async def get(self, last_event: str | None = None) -> Answer:
        """Open the stream of the session, or one that was left. Raises: WireError,
        TidegateError."""
        headers = [("Accept", "text/event-stream"), *self._session_headers()]
        if last_event is not None:
            headers.append(("Last-Event-ID", last_event))
        return await self._ask("GET", headers, b"")

    async def leave(self) -> None:
        """End the session at the server. Never raises."""
        if self.session is None or self._server is None:
            return
        try:
            async with asyncio.timeout(2.0):
                answer = await self._ask("DELETE", self._session_headers(), b"")
                answer.close()
        except (WireError, TimeoutError, TidegateError):
            pass
        self.session = None

    async def renew(self, seen: int, status: int | None = None) -> None:
        """Make the line good again, unless that has been done since `seen`, a `generation`.

        `status` is what the server said: 401 it does not know our token, 404 nor our session.
        Raises: TidegateError if it cannot be done.
        """
        if seen != self.generation:
            return
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.ensure_future(self._renew(status))
        await asyncio.shield(self._renewal)

    def note_opening(self, frame: Frame, answer: bytes, session: str | None) -> None:
        """The host has opened its conversation."""
        revision = result_of(answer).get("protocolVersion")
        if isinstance(revision, str):
            self._opening, self.session, self.revision = frame, session, revision
            self._ready = False
            self._kept.clear()

    def note_ready(self) -> None:
        """The host has said that it is ready."""
        self._ready = self._opening is not None

    def note_answer(self, frame: Frame, body: bytes) -> None:
        """A request was answered that a new session, or a later request, has to know of."""
        if frame.revision is not None:
            if frame.method == "tools/list":
                self._marked.update(marks_of(body))
        elif frame.method == "logging/setLevel":
            self._kept["level"] = frame
        elif frame.method == "resources/subscribe":
            self._kept[_uri(frame)] = frame
        elif frame.method == "resources/unsubscribe":
            self._kept.pop(_uri(frame), None)

    async def _renew(self, status: int | None) -> None:
        before, now = self._server, await self._finder.find()
        if self._path not in now.paths:
            raise TidegateError(
                Code.CONFIG_INVALID,
                f"The server does not serve {self._path}",
                hint=f"It serves {', '.join(now.paths)}.",
            )
        same = before is not None and before.instance == now.instance
        if status == 401 and before is not None and before.token == now.token:
            raise TidegateError(
                Code.AUTH_INVALID,
                "The server does not take the bridge's token",
                hint="Start the server again.",
            )
        self._server = now
        if self._opening is not None and (status == 404 or not same):
            await self._reopen(self._opening)
        self.generation += 1
        self.on_renewal()

    async def _reopen(self, opening: Frame) -> None:
        """Open the conversation once more, as the host did."""
        self.session = None
        try:
            answer = await self._ask("POST", [_BOTH, _JSON], opening.data)
            body = await _reply(answer, opening)
            if answer.status != 200 or result_of(body).get("protocolVersion") != self.revision:
                raise _lost(f"it answered {answer.status}")
            self.session = answer.headers.get("mcp-session-id")
            if self._ready:
                await self._say(Frame(_INITIALIZED))
            for frame in list(self._kept.values()):
                await self._say(frame)
        except WireError as error:
            raise _lost(str(error) or "the connection ended") from None

    async def _say(self, frame: Frame) -> None:
        """Send what the host has sent before; the answer is not for the host."""
        answer = await self._ask("POST", [_BOTH, _JSON, *self._session_headers()], frame.data)
        await answer.body()

    async def _ask(self, method: str, headers: list[tuple[str, str]], body: bytes) -> Answer:
        server = self._refresh()
        bearer = ("Authorization", f"Bearer {bearer_for(server.token, self._share)}")
        return await ask(
            server.host, server.port, method, self._path, [bearer, *headers], body, self.patience_s
        )

    def _refresh(self) -> Handshake:
        """The server with its newest token. Raises: TidegateError."""
        server = self._server
        if server is None:
            raise _lost("it is not connected")
        if time.time() >= server.expires_at - FRESH_S:
            told = self._finder.reread()
            if told is not None and told.instance == server.instance:
                server = self._server = told
        return server

    def _headers(self, frame: Frame) -> list[tuple[str, str]]:
        if frame.revision is not None:
            return frame.headers(self._marked)
        return [] if frame.method == "initialize" else self._session_headers()

    def _session_headers(self) -> list[tuple[str, str]]:
        headers: list[tuple[str, str]] = []
        if self.session is not None:
            headers.append(("Mcp-Session-Id", self.session))
        if self.revision is not None:
            headers.append(("MCP-Protocol-Version", self.revision))
        return headers


async def _reply(answer: Answer, frame: Frame) -> bytes:
    """The answer's own message, without what came before it. Raises: WireError."""
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


def _lost(reason: str) -> TidegateError:
    return TidegateError(
        Code.BRIDGE_NO_SERVER,
        f"The conversation with the server could not be opened again: {reason}",
        hint="Start the client again.",
    )
