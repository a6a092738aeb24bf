"""Tickets for downloads: a browser asks for a file without the page's header, so that the page gets
a ticket first, which its session uses once and soon."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from tidegate.edges.http.responses import HttpRefusal
from tidegate.identity.operators import SignedIn

MOST_TICKETS = 8
"""Downloads of one session that have been asked for and have not begun."""
TICKET_S = 60.0
"""How long after it was asked for a download may begin."""
WantedT = TypeVar("WantedT")


class _Ticket(NamedTuple, Generic[WantedT]):
    wanted: WantedT
    session: str
    expires_at: float


class Tickets(Generic[WantedT]):
    """The tickets of one kind of download. `drop` is called with what will not be downloaded."""

    def __init__(self, clock: Callable[[], float], drop: Callable[[WantedT], None]) -> None:
        self._clock = clock
        self._drop = drop
        self._waiting: dict[str, _Ticket[WantedT]] = {}

    def give(self, wanted: WantedT, signed_in: SignedIn) -> str:
        """The secret of a new ticket for what is wanted."""
        now, session = self._clock(), signed_in.session.id
        self.forget_old()
        own = [key for key, each in self._waiting.items() if each.session == session]
        for key in own[: max(0, len(own) - MOST_TICKETS + 1)]:
            self._forget(key)  # the oldest
        secret = secrets.token_urlsafe(24)
        self._waiting[secret] = _Ticket(wanted, session, now + TICKET_S)
        return secret

    @property
    def waiting(self) -> list[WantedT]:
        """All that waits to be downloaded."""
        return [each.wanted for each in self._waiting.values()]

    def forget_old(self) -> None:
        """Drop what was not downloaded in time."""
        now = self._clock()
        for key in [key for key, each in self._waiting.items() if each.expires_at <= now]:
            self._forget(key)

    def _forget(self, key: str) -> None:
        self._drop(self._waiting.pop(key).wanted)

    def take(self, secret: str, signed_in: SignedIn) -> WantedT:
        """What a ticket is for; it is used up. Raises: HttpRefusal 403."""
        self.forget_old()
        ticket = self._waiting.get(secret)
        if ticket is None:
            raise HttpRefusal(403, "The download was started before, or too late")
        if signed_in.session.id != ticket.session:
            self._forget(secret)
            raise HttpRefusal(403, "The download belongs to another session")
        return self._waiting.pop(secret).wanted
