"""Ends what runs for tokens that were revoked, have expired or have fewer rights than it began
with, and on sources whose rules have changed.

Another process may have changed a token: that is known from memory (`store/versions.py`), and
checked four times a second; a check takes microseconds while nothing has changed. A state that
cannot be seen may hold a revocation: no new call is let through after `STALE_S`, and those that run
are ended after a grace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import NamedTuple, Protocol

from tidegate.errors import TidegateError
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Actor
from tidegate.store.calls import read_state

LOOK_S = 0.25


class SessionOwner(Protocol):
    """The sessions, streams and running calls of an edge (`edges.edge.Edge.sessions`)."""

    def actors(self) -> Iterable[Actor]:
        """Their actors; one may come more than once."""
        ...

    def end_actors(self, ids: Collection[str], reason: str) -> None:
        """End all that belongs to these actors."""
        ...

    def end_expired(self, now: float, reason: str) -> None:
        """End the calls and streams whose actor's token has expired."""
        ...


class Blindness(NamedTuple):
    """What happens when the state is not seen for more than `grace_s`, which is `age_s` now."""

    age_s: Callable[[], float]
    grace_s: float
    end_calls: Callable[[], None]


class RevocationWatcher:
    """Closes the sessions in `owners` whose token was revoked or has expired."""

    def __init__(
        self,
        tokens: Tokens,
        owners: Collection[SessionOwner],
        clock: Callable[[], float] = time.time,
        follow_sources: Callable[[], object] = lambda: None,
        blindness: Blindness | None = None,
    ) -> None:
        """`follow_sources` ends what runs on sources whose rules or settings have changed."""
        self._follow_sources = follow_sources
        self._tokens = tokens
        self._owners = owners
        self._clock = clock
        self._generation = -1
        self._blindness = blindness

    async def run(self, look_s: float = LOOK_S) -> None:
        """Check until cancelled."""
        while True:
            await asyncio.sleep(look_s)
            await self.check()

    async def check(self) -> None:
        """End the sessions of tokens that are no longer valid. A store that cannot be read is
        checked again later; until then it refuses every new call by itself."""
        with suppress(TidegateError):
            generation = self._tokens.generation()
            if generation != self._generation:
                actors = [actor for owner in self._owners for actor in owner.actors()]
                revoked, narrowed = await read_state(self._ended, actors)
                for owner in self._owners:
                    if revoked:
                        owner.end_actors(revoked, "the token was revoked")
                    if narrowed:
                        owner.end_actors(narrowed, "the token has fewer rights now")
                self._generation = generation
        with suppress(TidegateError):
            self._follow_sources()
        for owner in self._owners:
            owner.end_expired(self._clock(), "the token has expired")
        blind = self._blindness
        if blind is not None and blind.age_s() > blind.grace_s:
            blind.end_calls()

    def _ended(self, actors: Collection[Actor]) -> tuple[frozenset[str], frozenset[str]]:
        """Of these actors, those whose token was revoked, and those who hold more than theirs."""
        revoked = self._tokens.revoked({actor.id for actor in actors})
        return revoked, self._tokens.exceeding(actors) - revoked
