"""Obtains a person's consent for a call whose verdict is ask: by a grant that was given for exactly
this, or by a question with a dry run of what would change. Decides nothing itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import structs

from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.approvals.petition import Petition
from tidegate.calls import Call, EngineRequest, Explain, Query
from tidegate.connections import Connection, Connections
from tidegate.engines.api import Engine
from tidegate.errors import Code, GateError
from tidegate.pages import Limits
from tidegate.permits import Permit
from tidegate.policy.shields import shield_of
from tidegate.sources import Source
from tidegate.statements import Effect, Rehearsal, Statement
from tidegate.trail import Trail

MakePermit = Callable[[Call, Source, EngineRequest, Effect, Trail], Permit]
OpenTrail = Callable[[Call, str, str], Trail]

REHEARSAL = Limits(max_rows=20, max_bytes=16_384, timeout_s=2.0)
"""What a dry run may take: it shows a sample, and must not hold up others."""


class Consent:
    """Asks for one gateway, which makes the permits (`permit`) and the trails."""

    def __init__(
        self,
        approvals: Approvals | None,
        connections: Connections,
        permit: MakePermit,
        trail: OpenTrail,
    ) -> None:
        self._approvals = approvals
        self._connections = connections
        self._permit = permit
        self._trail = trail

    async def obtain(
        self,
        call: Call,
        request: Query | Explain,
        connection: Connection,
        trail: Trail,
        engine: Engine,
    ) -> None:
        """Return if a person approved exactly this, or nobody can be asked and need not be.

        Raises: ApprovalNeeded, GateError APPROVAL_NEEDED, APPROVAL_DECLINED, LIMIT_RATE.
        """
        judgement, verdict, source = trail.judgement, trail.verdict, connection.source
        assert judgement is not None and verdict is not None  # noqa: S101 - decided before
        if self._approvals is None:
            raise GateError(Code.APPROVAL_NEEDED, verdict.reason)
        statement = request.statement
        if isinstance(request, Explain):
            statement = Statement(f"EXPLAIN {statement.text}", statement.params)
        petition = Petition(
            call.actor, source, statement, judgement, verdict, request.database, request.schema,
            call.surface, call.tool, call.client,
        )  # fmt: skip

        async def rehearse() -> Rehearsal:
            return await self._rehearse(call, request, connection, trail, engine)

        try:
            trail.approval = await self._approvals.approve(petition, call, rehearse)
        except GateError as error:
            trail.approval = error.details.get("approval", "")
            raise
        if self._connections.find(call.source, call.actor).source != source:
            raise GateError(
                Code.POLICY_DENIED,
                "The source was changed while the call waited for a person",
                hint="Send the call again.",
            )

    async def _rehearse(
        self,
        call: Call,
        request: Query | Explain,
        connection: Connection,
        trail: Trail,
        engine: Engine,
    ) -> Rehearsal:
        """Try the change and roll it back, on record like any statement; or why not."""
        judgement = trail.judgement
        if (
            judgement is None
            or judgement.effect is not Effect.WRITE
            or isinstance(request, Explain)
        ):
            return Rehearsal(reason="only INSERT, UPDATE and DELETE are tried.")
        if shield_of(call.actor, connection.source) is not None:
            return Rehearsal(reason="some of the source is hidden from the caller.")
        if not engine.capabilities.rehearses:
            return Rehearsal(reason="this engine cannot try a change without harm.")
        tried = self._trail(call, f"{trail.call_id}-dry", "rehearse")
        tried.source, tried.judgement, tried.verdict = trail.source, judgement, trail.verdict
        shares, actor_id = connection.shares, call.actor.id
        try:
            await tried.permit()
            briefly = structs.replace(request, limits=REHEARSAL)
            permit = self._permit(call, connection.source, briefly, judgement.effect, tried)
            await shares.enter(actor_id, REHEARSAL.timeout_s, call.cancellation)
            try:
                rehearsal = await engine.rehearse(permit, call.cancellation)
            finally:
                shares.leave(actor_id)
            await tried.succeed(rows=rehearsal.affected)
        except GateError as error:
            tried.fail(error)
            return Rehearsal(reason=f"it failed: {error.message}")
        except asyncio.CancelledError:
            tried.fail(GateError(Code.CALL_CANCELLED, "The call was cancelled"))
            raise
        return rehearsal

    async def settle(self, needed: ApprovalNeeded, call: Call, allow: bool) -> None:
        """Take the answer of a person to whom the caller's own client showed the question.

        Raises: GateError APPROVAL_NEEDED if such an answer does not count for this source.
        """
        source = self._connections.find(call.source, call.actor).source
        question = needed.question
        if (
            self._approvals is None
            or not needed.askable
            or source.approval != "any"
            or source.id != question.subject.source_id
        ):
            raise GateError(Code.APPROVAL_NEEDED, "The answer must come from the inbox")
        by = f"the person at {call.client or 'the client'} of {call.actor.name}"
        await self._approvals.settle(question, call.actor.id, allow, by)
