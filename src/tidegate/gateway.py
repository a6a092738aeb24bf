"""The pipeline: one door through which every request passes, from whatever edge and tool.

Read `Gateway.handle` from top to bottom. A request is looked up, judged, decided on, put on record,
run, shaped, put on record again. A `Permit` is made here and nowhere else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.audit.log import AuditLog
from tidegate.calls import (
    Browse,
    Call,
    Connect,
    Disconnect,
    EngineRequest,
    Explain,
    ListSources,
    More,
    Query,
    Request,
    Switch,
)
from tidegate.connections import Connection, Connections
from tidegate.consent import Consent
from tidegate.curtain import Curtain
from tidegate.engines.api import Engine
from tidegate.errors import Code, GateError
from tidegate.history import History
from tidegate.pages import Limits
from tidegate.permits import Permit, Verdict
from tidegate.policy.explain import Explanation
from tidegate.policy.identities import identity_of
from tidegate.policy.requests import JUDGEMENTS, METADATA
from tidegate.policy.shields import shield_of, verdict_of
from tidegate.replies import HistoryFound, Payload, Reply, Tabs
from tidegate.runs import Runs, report
from tidegate.sources import Source
from tidegate.sql.shield.model import Shield
from tidegate.statements import Effect, Judgement
from tidegate.trail import Trail
from tidegate.weighing import Preview, inspected, judged, weighed

Keeper = Callable[[Call, tuple[Source, ...]], Awaitable[Payload]]
"""Answers a request about state of our own, within the sources it is given."""

_METADATA_LIMITS = Limits()


class Gateway:
    """The gate. `keepers` answer, by kind of request, what no engine is needed for; `key` gives
    the key of masks that hash, which should outlive the process."""

    def __init__(
        self,
        connections: Connections,
        audit: AuditLog,
        history: History,
        *,
        approvals: Approvals | None = None,
        keepers: Mapping[type[Request], Keeper] | None = None,
        key: Callable[[], str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connections = connections
        self._audit = audit
        self._history = history
        self._consent = Consent(approvals, connections, _permit, self._trail)
        self._keepers = keepers or {}
        self._runs = Runs()
        self._curtain = Curtain(self._runs, key)
        self._preview = Preview(connections, self._curtain, _names)
        self._clock = clock
        self._calls = 0
        self._run_id = f"{int(clock()):x}"

    async def handle(self, call: Call) -> Reply:
        """Answer one call. Raises: GateError, whatever is refused or fails."""
        self._calls += 1
        trail = self._trail(call, f"{self._run_id}-{self._calls:x}")
        try:
            payload = await self._answer(call, trail)
        except GateError as error:
            trail.fail(error)
            if call.actor.kind == "agent":
                raise error.discreet() from None
            raise
        except asyncio.CancelledError:
            trail.fail(GateError(Code.CALL_CANCELLED, "The call was cancelled"))
            raise
        except BaseException as fault:
            trail.fail(GateError(Code.INTERNAL, f"A fault: {type(fault).__name__}"))
            raise
        return Reply(payload, trail.call_id)

    async def _answer(self, call: Call, trail: Trail) -> Payload:
        request = call.request
        if isinstance(request, ListSources):
            entries = self._connections.entries(call.actor)
            trail.judgement = METADATA
            await trail.succeed(rows=len(entries))
            return entries
        if call.source is None and type(request) in self._keepers:
            trail.judgement = JUDGEMENTS[type(request)]
            entries = self._connections.entries(call.actor)
            return await self._keep(call, tuple(entry.source for entry in entries), trail)
        connection = self._connections.find(call.source, call.actor)
        trail.source = source = connection.source
        judgement = judged(call, source)
        verdict = self._decide(call, source, judgement, trail)
        if not isinstance(request, (Query, Explain, Browse)):
            return await self._serve(call, connection, trail)
        if isinstance(request, Browse) and request.aspect == "status":
            await trail.succeed()
            return connection.state(call.actor)
        return await self._use(call, request, connection, trail, verdict)

    def _decide(self, call: Call, source: Source, judgement: Judgement, trail: Trail) -> Verdict:
        """The verdict, if it is allow or ask.

        Raises: GateError with the code and the rule of any other.
        """
        verdict = weighed(call, source, judgement)
        trail.judgement, trail.verdict = judgement, verdict
        if verdict.kind in ("deny", "confirm"):
            code = Code(verdict.code) if verdict.code else Code.POLICY_DENIED
            raise GateError(
                code,
                verdict.reason,
                hint=verdict.hint,
                details={"rule": verdict.rule, "effect": judgement.effect.label},
            )
        return verdict

    async def _use(
        self,
        call: Call,
        request: EngineRequest,
        connection: Connection,
        trail: Trail,
        verdict: Verdict,
    ) -> Payload:
        """Answer what an engine is needed for: hear the database, a person if one is to be asked,
        then run under a permit."""
        source, judgement = connection.source, trail.judgement
        assert judgement is not None  # noqa: S101 - the verdict came of it
        report(call, 0.0, "Connecting")
        engine = connection.engine or await self._connections.engine(connection)
        if connection.places:
            request = connection.place(call.actor).applied(request)
        trail.database = request.database or engine.status.database
        shield = shield_of(call.actor, source)
        wanted = request
        if shield is not None and not isinstance(request, Browse):
            # Before the database has a say: it could tell of what is hidden.
            request = await self._conceal(call, request, shield, connection, trail, engine)
        if isinstance(wanted, Query):
            opinion = await inspected(engine, wanted, judgement)
            if opinion is not judgement:
                judgement = opinion
                verdict = self._decide(call, source, judgement, trail)
        if verdict.kind == "ask" and not isinstance(wanted, Browse):
            await self._consent.obtain(call, wanted, connection, trail, engine)
        if call.cancellation.cancelled:
            raise GateError(Code.CALL_CANCELLED, "The call was cancelled")
        permit = _permit(call, source, request, judgement.effect, trail)
        await trail.permit()
        return await self._perform(call, permit, shield, connection, trail, engine)

    async def _conceal(
        self,
        call: Call,
        request: Query | Explain,
        shield: Shield,
        connection: Connection,
        trail: Trail,
        engine: Engine,
    ) -> Query | Explain:
        """The request as it may run under the shield. Raises: GateError POLICY_MASKED, ..."""
        names = _names(call, connection.source, request, trail.call_id)
        try:
            return await self._curtain.drawn(call, request, shield, names, engine, connection)
        except GateError as refusal:
            trail.verdict = verdict_of(refusal)
            raise

    async def _perform(
        self,
        call: Call,
        permit: Permit,
        shield: Shield | None,
        connection: Connection,
        trail: Trail,
        engine: Engine,
    ) -> Payload:
        """Run what is permitted, in the caller's share of the source, and record the outcome."""
        request, shares, actor_id = permit.request, connection.shares, call.actor.id
        connection.last_active_at = trail.started_at
        if not shares.enter_now(actor_id):
            await shares.enter(actor_id, permit.limits.timeout_s, call.cancellation)
        try:
            if isinstance(request, Browse):
                names = permit
                if shield is not None:
                    names = _names(call, connection.source, request, trail.call_id)
                payload = await self._curtain.described(
                    call, permit, shield, names, engine, connection
                )
                await trail.succeed()
            else:
                report(call, 0.2, "Executing")
                payload = await self._runs.page(call, request, permit, engine)
                await trail.succeed(payload)
        except GateError as error:
            if shield is None:
                raise
            raise self._curtain.veiled(error) from None
        finally:
            shares.leave(actor_id)
        report(call, 1.0, "Done")
        return payload

    async def _serve(self, call: Call, connection: Connection, trail: Trail) -> Payload:
        """Answer what is about a source and is no statement."""
        request = call.request
        if isinstance(request, More):
            page = self._runs.more(call, request, connection.source)
            await trail.succeed(page)
            return page
        if type(request) in self._keepers:
            return await self._keep(call, (connection.source,), trail)
        if isinstance(request, Connect):
            await self._connections.engine(connection)
        elif isinstance(request, Disconnect):
            await self._connections.disconnect(connection)
        elif isinstance(request, Switch):
            connection.switch(call.actor, request)
        else:
            raise GateError(Code.UNSUPPORTED, f"Nobody here answers {type(request).__name__}")
        await trail.succeed()
        return connection.state(call.actor)

    async def _keep(self, call: Call, sources: tuple[Source, ...], trail: Trail) -> Payload:
        """Let the keeper of our own state answer, within the sources that the caller may see."""
        payload = await self._keepers[type(call.request)](call, sources)
        await trail.succeed(rows=_size(payload))
        return payload

    async def settle(self, needed: ApprovalNeeded, call: Call, allow: bool) -> None:
        """Take the answer of a person to whom the caller's own client showed the question.

        Raises: GateError APPROVAL_NEEDED if such an answer does not count for this source.
        """
        await self._consent.settle(needed, call, allow)

    async def consider(self, call: Call) -> tuple[Judgement, Explanation]:
        """What the gate would say to a call, and why. Runs nothing and records nothing.

        Raises: GateError SOURCE_UNKNOWN, and what opening the source raises.
        """
        return await self._preview.of(call)

    def _trail(self, call: Call, call_id: str, kind: str = "") -> Trail:
        return Trail(self._audit, self._history, self._clock, call, call_id, kind=kind)


def _permit(
    call: Call, source: Source, request: EngineRequest, effect: Effect, trail: Trail
) -> Permit:
    limits = _METADATA_LIMITS if isinstance(request, Browse) else request.limits
    identity = identity_of(call.actor, source)
    return Permit(trail.call_id, call.actor, source, request, effect, limits, identity)


def _names(call: Call, source: Source, request: EngineRequest, call_id: str) -> Permit:
    """Permits to read the catalog that a shield is drawn by."""
    browse = Browse("catalog", database=request.database)
    identity = identity_of(call.actor, source)
    return Permit(call_id, call.actor, source, browse, Effect.READ, _METADATA_LIMITS, identity)


def _size(payload: Payload) -> int | None:
    if isinstance(payload, HistoryFound):
        return len(payload.entries)
    return len(payload.tabs) if isinstance(payload, Tabs) else None
