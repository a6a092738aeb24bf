"""The server's side of the bridge: keeps the handshake file up to date while the server runs.

Bridges find one server of a state directory, the one that holds the lock. Another server waits for
the lock and takes over when the first one ends.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable

from tidegate.bridge.handshake import CHALLENGE, PAGE, VERSION, Handshake, HandshakeFile
from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.router import HttpRequest, HttpResponse, Router, json_response
from tidegate.errors import TidegateError
from tidegate.identity.bridge_tokens import RENEW_S, BridgeTokens

LOOK_S = 0.5
_MOST_CHALLENGE = 128


class HandshakeWriter:
    """Writes the handshake of the server at `host`:`port`, which serves MCP on `paths`, and runs as
    long as its edge does (`edges.edge.Companion`). `settings` is the digest of the settings that
    the server was started with; `opened` is called once, when bridges can find the server."""

    def __init__(
        self,
        place: HandshakeFile,
        admission: BridgeTokens,
        host: str,
        port: int,
        paths: tuple[str, ...],
        patience_s: float,
        clock: Callable[[], float] = time.time,
        *,
        settings: str = "",
        opened: Callable[[], None] | None = None,
    ) -> None:
        self._opened = opened
        self._keeping: asyncio.Task[None] | None = None
        self._place = place
        self._admission = admission
        self._clock = clock
        self._lock: int | None = None
        self._told = Handshake(
            VERSION, secrets.token_hex(16), host, port, os.getpid(), 0.0, "",
            secrets.token_hex(32), paths, patience_s, settings,
        )  # fmt: skip

    async def start(self) -> None:
        """Write the file if no other server has, and keep it up to date from now on.

        Raises: TidegateError STATE_FAILED, BRIDGE_UNTRUSTED, AUDIT_UNAVAILABLE.
        """
        self.open()
        self._keeping = asyncio.ensure_future(self.keep())

    async def stop(self) -> None:
        """Remove the file, so that no more bridges come. Safe to call twice."""
        if self._keeping is not None:
            self._keeping.cancel()
            self._keeping = None
        self.close()

    def open(self) -> bool:
        """Write the file; False if another server is the one that bridges find.

        Raises: TidegateError STATE_FAILED, BRIDGE_UNTRUSTED, AUDIT_UNAVAILABLE.
        """
        self._place.prepare()
        if self._lock is None:
            self._lock = self._place.lock("server", wait=False)
        if self._lock is None:
            return False
        if self._clock() >= self._told.expires_at - RENEW_S:
            token, expires_at = self._admission.renew()
            self._told = self._told._replace(token=token, expires_at=expires_at)
            self._place.write(self._told)
        return True

    async def keep(self, look_s: float = LOOK_S) -> None:
        """Take over when the lock is free, and renew the token in time, until cancelled. A
        failure is tried again."""
        while True:
            try:
                held = self.open()
            except TidegateError:
                held = False
            if held and self._opened is not None:
                self._opened()
                self._opened = None
            await asyncio.sleep(look_s)

    def close(self) -> None:
        """Remove the file and give the lock back. Safe to call twice."""
        if self._lock is not None:
            self._place.remove()
            os.close(self._lock)
            self._lock = None

    def routes(self) -> Router:
        """Where a bridge asks for the proof that it has found this server."""

        async def prove(request: HttpRequest) -> HttpResponse:
            challenge = request.headers.get(CHALLENGE.encode(), b"")
            if not 0 < len(challenge) <= _MOST_CHALLENGE or not challenge.isalnum():
                raise HttpRefusal(400, f"Send {CHALLENGE}")
            return json_response(200, {"proof": self._told.proof(challenge.decode())})

        router = Router()
        router.add("GET", PAGE, prove)
        return router
