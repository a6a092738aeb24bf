"""The vigil: a token that is revoked or runs out ends what it holds open, here and everywhere.

Another process may have revoked it, so the state is looked at all the time; a look costs
microseconds while nothing has changed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from tidegate.actors import Actor
from tidegate.errors import GateError
from tidegate.identity.tokens import Tokens

LOOK_S = 0.25


class Ward(Protocol):
    """What holds sessions, streams and running calls open (`edges.http.HttpEdge`)."""

    def actors(self) -> Iterable[Actor]:
        """Whose they are; one may come more than once."""
        ...

    def end_actors(self, ids: Collection[str], reason: str) -> None:
        """End all that belongs to these actors."""
        ...

    def end_expired(self, now: float, reason: str) -> None:
        """End the calls and streams whose actor's token has run out."""
        ...


class Vigil:
    """Watches over `ward` with the eyes of `tokens`."""

    def __init__(self, tokens: Tokens, ward: Ward, clock: Callable[[], float] = time.time) -> None:
        self._tokens = tokens
        self._ward = ward
        self._clock = clock
        self._generation = -1

    async def keep(self, look_s: float = LOOK_S) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(look_s)
            self.look()

    def look(self) -> None:
        """End what no longer holds. A store that cannot be read is looked at again later: until
        then it refuses every new call by itself."""
        try:
            generation = self._tokens.generation()
            if generation != self._generation:
                ids = {actor.id for actor in self._ward.actors()}
                revoked = self._tokens.revoked(ids)
                if revoked:
                    self._ward.end_actors(revoked, "the token was revoked")
                self._generation = generation
        except GateError:
            pass
        self._ward.end_expired(self._clock(), "the token has expired")
