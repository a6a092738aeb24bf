"""The login of a source, read again where it is refused: a password that its URL refers to may have
been changed since the source was opened.

A server locks accounts after a few failures. So the reference is read once for each refusal, and
another login is tried only where it gives something else than what was refused.

A secret that is kept elsewhere (`secrets.readers`) is read again for a connection that is opened
later than `FRESH_S` after. An account on lease is used for all connections of the source; when half
of the lease is over, another one takes its place, and connections of the old one with it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from tidegate.engines.api import Lease
from tidegate.engines.common.errors import ACCOUNT, LOGIN
from tidegate.engines.common.login_refusals import check_refusal, forget_refusal, note_refusal
from tidegate.engines.registry import secrets_of, texts_of
from tidegate.errors import TidegateError
from tidegate.model.sources import Source
from tidegate.secrets.readers import Reading, give_back
from tidegate.secrets.references import readings_at_hand

TargetT = TypeVar("TargetT")
OpenedT = TypeVar("OpenedT")

FRESH_S = 30.0
"""How long a secret that was read elsewhere opens connections without being read again."""
RETIRED_AFTER = 0.5
"""The part of a lease after which another one is taken; well before the two thirds at which the
connections of the old one must be gone, as the place may be down for a while."""
_RETRY_S = 5.0

logger = logging.getLogger("tidegate.engines")


class Term(NamedTuple):
    """For how long what was read elsewhere is good, on `time.monotonic`: until `fresh_until` it is
    used as it is, until `usable_until` also if it cannot be read again; at `retire_at` connections
    get another account. `ends_at` is the end of the lease."""

    fresh_until: float
    usable_until: float
    retire_at: float | None
    ends_at: float | None

    @classmethod
    def of(cls, readings: Iterable[Reading]) -> Term | None:
        """None if nothing was read elsewhere."""
        terms = [_term(each) for each in readings]
        if not terms:
            return None
        return cls(
            min(each.fresh_until for each in terms),
            min(each.usable_until for each in terms),
            min((each.retire_at for each in terms if each.retire_at is not None), default=None),
            min((each.ends_at for each in terms if each.ends_at is not None), default=None),
        )


def _term(reading: Reading) -> Term:
    began, ends = reading.read_at, reading.session_until
    if ends is not None:
        half = began + (ends - began) * RETIRED_AFTER
        return Term(half, ends, half, ends)
    if reading.login_until is not None:
        part = began + (reading.login_until - began) * RETIRED_AFTER
        return Term(part, reading.login_until, None, None)
    return Term(began + FRESH_S, began, None, None)


class RenewedLogin(Generic[TargetT]):
    """What a source connects to. `target` holds the secrets as they were read last."""

    def __init__(self, source: Source, read: Callable[[Source], TargetT]) -> None:
        """Reads the references of the source, whose secrets are at hand. Raises: as `read`."""
        self._source = source
        self._read = read
        self.target = read(source)
        self._lent: list[Reading] = []
        """Of accounts on lease that may not be over."""
        self._term = self._take_term()
        self._is_new = True
        """No login was tried yet, so what was read is as new as it can be."""
        self._failure: tuple[float, TidegateError] | None = None
        """The last reading that failed, and when."""
        self._one_login = asyncio.Lock()
        self._renewed: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._renewal: asyncio.Task[None] | None = None

    async def open(
        self, connect: Callable[[TargetT], Awaitable[OpenedT]], *, in_turn: bool = True
    ) -> OpenedT:
        """What `connect` gives for the target, or for what the references say now if the server
        refuses the login. With a secret that is read elsewhere one login is made at a time, so that
        a wrong one counts once, unless `connect` does more than log in (`in_turn`).

        Raises: as `connect`; SECRET_UNAVAILABLE.
        """
        if self._term is None:
            return await self._open(connect)
        asked_at = time.monotonic()
        async with self._one_login:
            await self._be_fresh(asked_at)
            if in_turn:
                return await self._open_counted(connect)
        return await self._open_counted(connect)

    def watch_lease(self, renewed: Callable[[], None]) -> None:
        """Have `renewed` called when another account has taken the place of one on lease: its
        connections are to be replaced."""
        self._renewed = renewed
        self._set_timer()

    def close(self) -> None:
        """Take no more leases. Safe to call twice."""
        self._renewed = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._renewal is not None:
            self._renewal.cancel()

    async def give_back(self) -> None:
        """Have the accounts that are on lease removed, when no connection needs them any more. It
        takes seconds at most, and never raises."""
        lent, self._lent = self._lent, []
        await give_back(lent)

    def _take_term(self) -> Term | None:
        readings, now = readings_at_hand(texts_of(self._source)), time.monotonic()
        self._lent = [
            each
            for each in (*self._lent, *readings)
            if each.give_back is not None
            and (each.session_until is None or each.session_until > now)
        ]
        return Term.of(readings)

    async def _open(self, connect: Callable[[TargetT], Awaitable[OpenedT]]) -> OpenedT:
        tried = self.target
        try:
            return await connect(tried)
        except TidegateError as error:
            if not _is_refused(error) or not await self._renew(tried):
                raise
        return await connect(self.target)

    async def _open_counted(self, connect: Callable[[TargetT], Awaitable[OpenedT]]) -> OpenedT:
        """As `_open`; a refused login is not sent again for a while."""
        place = self._source.id
        is_new, self._is_new = self._is_new, False
        try:
            check_refusal(place, self.target)
        except TidegateError:
            if self.is_leased or is_new or not await self._renew(self.target):
                raise
        try:
            opened = await self._open(connect)
        except TidegateError as error:
            if _is_refused(error):
                note_refusal(place, None if self.is_leased else self.target, error)
            raise
        forget_refusal(place)
        return opened

    @property
    def is_leased(self) -> bool:
        """Whether the account is removed at some time."""
        return self._term is not None and self._term.ends_at is not None

    @property
    def lease(self) -> Lease | None:
        """For how long the account is there; None if it is not on lease."""
        term = self._term
        if term is None or term.ends_at is None or term.retire_at is None:
            return None
        offset = time.time() - time.monotonic()
        return Lease(term.retire_at + offset, term.ends_at + offset)

    async def _renew(self, tried: TargetT) -> bool:
        """Whether there is another target than the one that was tried. Raises: TidegateError
        SECRET_UNAVAILABLE for a place that does not answer."""
        if self.target == tried:  # else another connection has read it meanwhile
            try:
                await self._read_again()
            except TidegateError:
                if self._term is not None:
                    raise
                return False  # the refusal says more than that a file is gone
        return self.target != tried

    async def _be_fresh(self, asked_at: float) -> None:
        """Read again what was read too long ago. Who asked while a reading failed gets its error,
        so that many who wait for a place that does not answer wait once.

        Raises: TidegateError.
        """
        term = self._term
        if term is None or time.monotonic() < term.fresh_until:
            return
        if self._renewed is not None and term.ends_at is not None and not _is_over(term):
            return  # another account is being asked for already
        if self._failure is not None and self._failure[0] >= asked_at and _is_over(term):
            raise self._failure[1]
        try:
            await self._read_again()
        except TidegateError as error:
            self._failure = time.monotonic(), error
            if _is_over(term):
                raise

    async def _read_again(self) -> None:
        """Raises: TidegateError."""
        async with secrets_of(self._source):
            self._adopt()

    def _adopt(self) -> None:
        """Take what is at hand. Raises: TidegateError."""
        was_leased = self.is_leased
        self.target = self._read(self._source)
        self._term = self._take_term()
        if was_leased and self._renewed is not None:
            self._renewed()
            self._set_timer()

    def _set_timer(self, least_s: float = 0.0) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._term is None or self._term.retire_at is None or self._renewed is None:
            return
        wait_s = max(least_s, self._term.retire_at - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._begin_renewal)

    def _begin_renewal(self) -> None:
        self._timer = None
        self._renewal = asyncio.get_running_loop().create_task(self._take_lease())

    async def _take_lease(self) -> None:
        """Take another lease in the place of one that is half over; until that can be had, the old
        one opens connections, and those that are open go on."""
        term = self._term
        try:
            # A login that is under way ends first: its connection is one of those to be replaced.
            async with secrets_of(self._source), self._one_login:
                if term is self._term:
                    self._adopt()
        except TidegateError as error:
            logger.warning(
                "No new account could be had for the source %s: %s",
                self._source.name,
                error.without_secrets().message,
            )
            self._set_timer(_retry_s(term))


def _retry_s(term: Term | None) -> float:
    """How long to wait before a lease is asked for again."""
    left_s = 0.0 if term is None or term.ends_at is None else term.ends_at - time.monotonic()
    return min(_RETRY_S, left_s / 8) if left_s > 0 else _RETRY_S


def _is_over(term: Term) -> bool:
    """Whether what was read cannot be used any more without reading it again."""
    return time.monotonic() >= term.usable_until


def _is_refused(error: TidegateError) -> bool:
    return error.details.get("cause") in (ACCOUNT, LOGIN)
