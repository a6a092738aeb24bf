"""Opens a source that an admin typed, through a gate of its own, and leaves nothing of it.

A person could scan ports by it. So each try is on record before it is made, with its place; there
are few in a minute; and a port that is closed, one that is filtered and one where something else
answers are said to be the same.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from msgspec import structs

from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.source_connections import SourceConnections
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import Actor
from tidegate.model.requests import Call, Query, ReadRows, Request
from tidegate.model.sources import Source
from tidegate.products.console.admins import Consent
from tidegate.products.console.sign_in import actor_of
from tidegate.secrets.references import HeldSecret
from tidegate.secrets.url_logins import with_password, without_password
from tidegate.sources.report import has_answered, may_pass, place_of, test_source
from tidegate.sources.typed_urls import check_address
from tidegate.sources.unfit_rules import unfit_rules

MOST_TRIES = 10
"""Tries of one operator in a minute."""
PERIOD_S = 60.0
PATIENCE_S = 15.0
"""How long a try may take, with all that is asked."""
PayloadT = TypeVar("PayloadT")

GateBefore = Callable[[Source], tuple[Gateway, SourceConnections]]
"""A gate before one source alone (`App.gate_before`)."""


class Tried(NamedTuple):
    """What was found: a report, or why the source was not reached."""

    report: dict[str, Any] | None
    failure: TidegateError | None

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        failure = self.failure
        return {
            "report": self.report,
            "message": "" if failure is None else failure.message,
            "hint": "" if failure is None else failure.hint or "",
            "may_pass": failure is not None and may_pass(failure),
        }


class SourceTries:
    """The tries of one server."""

    def __init__(
        self,
        gate_before: GateBefore,
        consent: Consent,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gate_before = gate_before
        self._consent = consent
        self._clock = clock
        self._made: dict[str, deque[float]] = {}

    async def open(
        self,
        settings: SourceSettings,
        password: str | None,
        rules: Source,
        signed_in: SignedIn,
        address: str,
    ) -> Tried:
        """What is found at a source with these settings, as the operator alone sees it: what it
        admits, and to whom, is another question. `rules` has the masks and filters that are
        checked against its tables.

        Raises: TidegateError LIMIT_RATE, AUDIT_UNAVAILABLE, POLICY_DENIED.
        """
        place = place_of(settings.url)
        records = self._consent.records(signed_in, address)
        details = {"source": settings.name, "place": place}
        await asyncio.to_thread(records.before, "source.tried", details)
        await check_address(settings.url)
        self._count(signed_in.operator.name)
        held = HeldSecret(password) if password else None
        url = settings.url
        if held is not None:
            url = with_password(without_password(url), held.reference)
        try:
            source = source_from_settings(
                SourceSettings(settings.name, url, options=settings.options)
            )
            async with self._gate(source, signed_in, address) as caller:
                report = await asyncio.wait_for(self._report(caller, source, rules), PATIENCE_S)
        except TimeoutError:
            return Tried(None, _not_reached(place))
        except TidegateError as error:
            return Tried(None, _shown(error, place))
        finally:
            if held is not None:
                held.release()
        return Tried(report, None)

    async def unfit(self, saved: Source, signed_in: SignedIn, address: str) -> list[str]:
        """What is wrong with the rules of a source that was saved; nothing if that cannot be found
        out now."""
        plain = structs.replace(saved, masks=(), filters=(), access="read", agents="allow")
        found: list[str] = []
        with suppress(TidegateError, TimeoutError):
            async with self._gate(plain, signed_in, address) as caller:
                found = await asyncio.wait_for(unfit_rules(caller, saved), PATIENCE_S)
        return found

    async def _report(
        self, caller: _TryingOperator, source: Source, rules: Source
    ) -> dict[str, Any]:
        report = await test_source(caller, source)
        await check_address(source.url)  # a name that leads elsewhere by now
        unfit = await unfit_rules(caller, rules)
        return {**report, "unfit": unfit}

    @asynccontextmanager
    async def _gate(
        self, source: Source, signed_in: SignedIn, address: str
    ) -> AsyncGenerator[_TryingOperator]:
        gateway, connections = self._gate_before(source)
        try:
            yield _TryingOperator(gateway, actor_of(signed_in, source.name), address)
        finally:
            await connections.close()

    def _count(self, operator: str) -> None:
        now = self._clock()
        made = self._made.setdefault(operator, deque())
        while made and made[0] <= now - PERIOD_S:
            made.popleft()
        if len(made) >= MOST_TRIES:
            raise TidegateError(
                Code.LIMIT_RATE,
                f"You have tried {MOST_TRIES} sources within a minute",
                hint="Wait before the next one.",
                retry_after_s=made[0] + PERIOD_S - now,
            )
        made.append(now)


class _TryingOperator:
    """The operator as a `model.gate_client.GateClient` of such a gate. Its reads are on record, and
    in no history."""

    def __init__(self, gateway: Gateway, actor: Actor, address: str) -> None:
        self._gateway = gateway
        self._address = address
        self.actor = actor

    async def handle(
        self,
        request: Request,
        source: str | None,
        expected: type[PayloadT],
        *,
        reads_only: bool = True,
        quiet: bool = True,
        asks: bool = False,
    ) -> PayloadT:
        if isinstance(request, Query):
            request = ReadRows(request.statement, limits=request.limits)
        call = Call(
            *(self.actor, "console", "try source", request, source),
            client="console",
            reads_only=isinstance(request, Query),
            address=self._address,
            waits=False,
        )
        payload = (await self._gateway.handle(call)).payload
        if not isinstance(payload, expected):
            raise TidegateError(Code.INTERNAL, f"The gate answered {type(payload).__name__}")
        return payload


def _shown(error: TidegateError, place: str) -> TidegateError:
    """The failure of a try, as far as it says nothing of what else is at the place."""
    unreached = error.code in (Code.SOURCE_UNREACHABLE, Code.SOURCE_BUSY, Code.LIMIT_TIME)
    if not unreached or "path" in error.details or has_answered(error):
        return error
    return _not_reached(place)


def _not_reached(place: str) -> TidegateError:
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        f"No database answers at {place}.",
        hint="Check the host, the port and the options of the URL. `tidegate source test` on the"
        " server's machine says more.",
    )
