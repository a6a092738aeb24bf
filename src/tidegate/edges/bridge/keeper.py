"""The server's side of the bridge: keeps the handshake file true while the server runs.

One server of a state directory is found by bridges, the one that holds the lock. Another waits
for the lock and takes over when the first ends.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable

from tidegate.edges.bridge.handshake import CHALLENGE, PAGE, VERSION, Handshake, Place
from tidegate.edges.pages import Page, Serve, Visit, wrong_method
from tidegate.errors import GateError
from tidegate.identity.bridge import RENEW_S, BridgePass

LOOK_S = 0.5
_MOST_CHALLENGE = 128


class Keeper:
    """Keeps the handshake of the server at `host`:`port`, which serves MCP on `paths`, by the
    settings of that mark."""

    def __init__(
        self,
        place: Place,
        admission: BridgePass,
        host: str,
        port: int,
        paths: tuple[str, ...],
        patience_s: float,
        clock: Callable[[], float] = time.time,
        *,
        settings: str = "",
    ) -> None:
        self._place = place
        self._admission = admission
        self._clock = clock
        self._lock: int | None = None
        self._told = Handshake(
            VERSION, secrets.token_hex(16), host, port, os.getpid(), 0.0, "",
            secrets.token_hex(32), paths, patience_s, settings,
        )  # fmt: skip

    def open(self) -> bool:
        """Write the file; False if another server is the one that bridges find.

        Raises: GateError STATE_FAILED, BRIDGE_UNTRUSTED, AUDIT_UNAVAILABLE.
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

    async def keep(self, opened: Callable[[], None] | None = None, look_s: float = LOOK_S) -> None:
        """Take over when it is our turn, and renew the token in time, until cancelled. `opened`
        is called once, when bridges can find us. What fails is tried again."""
        while True:
            try:
                held = self.open()
            except GateError:
                held = False
            if held and opened is not None:
                opened()
                opened = None
            await asyncio.sleep(look_s)

    def close(self) -> None:
        """Take the file away, so that no bridge comes any more. Safe to call twice."""
        if self._lock is not None:
            self._place.remove()
            os.close(self._lock)
            self._lock = None

    def pages(self) -> dict[str, Serve]:
        """Where a bridge asks for the proof that it has found us."""

        async def prove(visit: Visit) -> Page:
            if visit.method != "GET":
                return wrong_method(b"GET")
            challenge = visit.headers.get(CHALLENGE.encode(), b"")
            if not 0 < len(challenge) <= _MOST_CHALLENGE or not challenge.isalnum():
                return Page(400, {"error": "bad_request", "message": f"Send {CHALLENGE}"})
            return Page(200, {"proof": self._told.proof(challenge.decode())})

        return {PAGE: prove}
