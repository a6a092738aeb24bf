"""Sealed request state: what a 2026-07-28 client carries between the rounds of one call.

A state is encrypted and authenticated (AES-256-GCM), bound to the actor, the method, the name and
the arguments, expires, and opens once: the specification leaves single use to the server
(`basic/patterns/mrtr`).
"""

from __future__ import annotations

import hashlib
import os
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from tidegate.protocol.model import INVALID_PARAMS, RpcError
from tidegate.typed_values import msgpack_decoder


class State(msgspec.Struct, frozen=True):
    """What is sealed: which questions are open, and the answers had so far."""

    nonce: str
    expires_at: float
    binding: bytes
    asked: tuple[str, ...]
    answers: dict[str, Any]


UseOnce = Callable[[str, float, float], Awaitable[bool]]
"""Uses up a nonce, which is remembered until a time, now; False if it was used before. Both times
are in Unix seconds."""


async def _own_key() -> bytes:
    return os.urandom(32)


class RequestState:
    """Seals and opens states. Keep one for a server; states of another are refused, unless both get
    the same `key` (32 bytes, asked for once) and the same `use_once`."""

    def __init__(
        self,
        key: Callable[[], Awaitable[bytes]] | None = None,
        use_once: UseOnce | None = None,
        *,
        lifetime_s: float = 600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._make_key = key or _own_key
        self._key: bytes | None = None
        self._use_once = use_once or self._use_once_here
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._used: dict[str, float] = {}
        self._decoder = msgpack_decoder(State)

    async def seal(self, binding: bytes, asked: tuple[str, ...], answers: Mapping[str, Any]) -> str:
        """A fresh state for the questions in `asked`."""
        state = State(
            nonce=os.urandom(12).hex(),
            expires_at=self._clock() + self._lifetime_s,
            binding=binding,
            asked=asked,
            answers=dict(answers),
        )
        iv = os.urandom(12)
        cipher = await self._cipher()
        return urlsafe_b64encode(
            iv + cipher.encrypt(iv, msgspec.msgpack.encode(state), None)
        ).decode()

    async def open(self, text: str, binding: bytes) -> State:
        """Open a state, once. Raises: RpcError INVALID_PARAMS if it is not ours, for another
        call or caller, expired, or opened before."""
        cipher = await self._cipher()
        try:
            sealed = b64decode(text, b"-_", validate=True)
            state = self._decoder.decode(cipher.decrypt(sealed[:12], sealed[12:], None))
        except Exception:  # noqa: BLE001  any failure to open means one thing: not ours
            raise RpcError(INVALID_PARAMS, "requestState is not valid") from None
        now = self._clock()
        if state.binding != binding:
            raise RpcError(INVALID_PARAMS, "requestState belongs to another call")
        if now >= state.expires_at:
            raise RpcError(INVALID_PARAMS, "requestState has expired; send the call again")
        if not await self._use_once(state.nonce, state.expires_at, now):
            raise RpcError(INVALID_PARAMS, "requestState was used before; send the call again")
        return state

    async def _use_once_here(self, nonce: str, expires_at: float, now: float) -> bool:
        if nonce in self._used:
            return False
        self._used = {nonce: at for nonce, at in self._used.items() if at > now}
        self._used[nonce] = expires_at
        return True

    async def _cipher(self) -> Any:
        # Imported here: 37 ms that a server which never asks does not pay.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if self._key is None:
            self._key = await self._make_key()
        return AESGCM(self._key)


def bind(actor_id: str, method: str, name: str, arguments: Any) -> bytes:
    """The digest that ties a state to one caller and one call."""
    canonical = msgspec.json.encode([actor_id, method, name, arguments], order="deterministic")
    return hashlib.sha256(canonical).digest()
