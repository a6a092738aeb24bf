"""The server's side of the bridge: keeps the handshake file current while the server runs.

Bridges use one server of a state directory, the one that holds the lock. Another server waits for
the lock and takes over when the first one ends.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from tidegate import __version__
from tidegate.bridge.handshake_file import (
    CHALLENGE,
    PAGE,
    PROOF,
    STATUS_PAGE,
    VERSION,
    Handshake,
    HandshakeFile,
    ServerAddress,
    digest,
)
from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.router import HttpRequest, HttpResponse, Router, json_response
from tidegate.errors import TidegateError
from tidegate.identity.bridge_tokens import RENEW_S, BridgeTokens
from tidegate.siblings import Siblings

CHECK_S = 0.5
_MAX_CHALLENGE_CHARS = 128


class ServedEndpoint(NamedTuple):
    """What a server offers to bridges: MCP at `address`, on each of `paths`. `patience_s` is the
    longest time that a call may be silent. `settings` is the digest of the server's settings; empty
    without a file of them. Of `siblings`, who serve at the same address, each proves that the
    server wrote the file, whichever of them did."""

    address: ServerAddress
    paths: tuple[str, ...]
    patience_s: float
    settings: str = ""
    siblings: Siblings | None = None


class HandshakeWriter:
    """Writes the handshake of this process, which serves `endpoint`.

    It runs as long as its edge (`edges.edge.Companion`). `on_opened` is called once, when bridges
    can find the server, and only a bridge that started it gives one. `variables` returns the
    environment variables that sources name, and `status` what `tidegate status` shows.
    """

    def __init__(
        self,
        files: HandshakeFile,
        tokens: BridgeTokens,
        endpoint: ServedEndpoint,
        clock: Callable[[], float] = time.time,
        *,
        on_opened: Callable[[], None] | None = None,
        variables: Callable[[], Collection[str]] = tuple,
        status: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        siblings = endpoint.siblings or Siblings()
        self._variables = variables
        self._status = status
        self._on_opened = on_opened
        self._task: asyncio.Task[None] | None = None
        self._files = files
        self._tokens = tokens
        self._clock = clock
        self._lock: int | None = None
        self._names: Collection[str] | None = None
        self._handshake = Handshake(
            version=VERSION,
            instance=_derive(siblings, "instance")[:32],
            host=endpoint.address.host,
            port=endpoint.address.port,
            pid=siblings.server_pid,
            expires_at=0.0,
            token="",
            key=_derive(siblings, "key"),
            paths=endpoint.paths,
            patience_s=endpoint.patience_s,
            settings=endpoint.settings,
            release=__version__,
            started_at=clock(),
            by_bridge=on_opened is not None,
            tls=endpoint.address.tls,
        )

    async def start(self) -> None:
        """Write the file unless another server has, and keep it current from now on.

        Raises: TidegateError STATE_FAILED, BRIDGE_UNTRUSTED, AUDIT_UNAVAILABLE.
        """
        self.open()
        self._task = asyncio.ensure_future(self.maintain())

    async def stop(self) -> None:
        """Remove the file, so that no further bridges connect. Safe to call twice."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.close()

    def open(self) -> bool:
        """Write the file; return False if bridges use another server.

        Raises: TidegateError STATE_FAILED, BRIDGE_UNTRUSTED, AUDIT_UNAVAILABLE.
        """
        self._files.prepare()
        if self._lock is None:
            self._lock = self._files.lock("server", wait=False)
        if self._lock is None:
            return False
        fresh = self._handshake
        if self._clock() >= fresh.expires_at - RENEW_S:
            token, expires_at = self._tokens.renew()
            fresh = fresh._replace(token=token, expires_at=expires_at)
        names = self._variables()
        if names != self._names:
            self._names = names
            digests = {name: digest(fresh.key, name, os.environ.get(name)) for name in names}
            fresh = fresh._replace(variables=digests)
        if fresh is not self._handshake:
            self._files.write(fresh)
            self._handshake = fresh
        return True

    async def maintain(self, check_s: float = CHECK_S) -> None:
        """Take over when the lock is free, and renew the token in time, until cancelled. Repeats
        after a failure."""
        while True:
            try:
                held = self.open()
            except TidegateError:
                held = False
            if held and self._on_opened is not None:
                self._on_opened()
                self._on_opened = None
            await asyncio.sleep(check_s)

    def close(self) -> None:
        """Remove the file and release the lock. Safe to call twice."""
        if self._lock is not None:
            self._files.remove()
            os.close(self._lock)
            self._lock = None

    def routes(self) -> Router:
        """The route on which a bridge asks for the proof that this server wrote the file."""

        async def prove(request: HttpRequest) -> HttpResponse:
            challenge = request.headers.get(CHALLENGE.encode(), b"")
            if not 0 < len(challenge) <= _MAX_CHALLENGE_CHARS or not challenge.isalnum():
                raise HttpRefusal(400, f"Send {CHALLENGE}")
            return json_response(200, {"proof": self._handshake.proof(challenge.decode())})

        async def status(request: HttpRequest) -> HttpResponse:
            # A proof of the key: only an account that may read the handshake file can ask.
            given = request.headers.get(PROOF.encode(), b"")
            if not hmac.compare_digest(given, self._handshake.proof("status").encode()):
                raise HttpRefusal(403, f"Send {PROOF}")
            return json_response(200, self._status())

        router = Router()
        router.add("GET", PAGE, prove)
        router.add("GET", STATUS_PAGE, status)
        return router


def _derive(siblings: Siblings, purpose: str) -> str:
    """64 hexadecimal digits that all workers of the gate have, and no one else."""
    return hmac.digest(siblings.secret, f"handshake {purpose}".encode(), "sha256").hex()
