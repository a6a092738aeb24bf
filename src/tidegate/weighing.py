"""How a call is weighed before it runs: by its text, by the database's opinion, by the rules.

The gateway weighs a call to act on it; a `Preview` tells what it would find, and acts on nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.calls import Call, EngineRequest, Explain, Query
from tidegate.connections import Connection, Connections
from tidegate.curtain import Curtain
from tidegate.engines.api import Engine
from tidegate.errors import GateError
from tidegate.permits import Permit, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.explain import Explanation, explain, under_shield
from tidegate.policy.requests import JUDGEMENTS
from tidegate.policy.shields import shield_of, verdict_of
from tidegate.sources import Source
from tidegate.sql.judge import judge
from tidegate.statements import Judgement

PermitNames = Callable[[Call, Source, EngineRequest, str], Permit]
"""Permits a call, under its id, to read the catalog that its shield is drawn by."""


def judged(call: Call, source: Source) -> Judgement:
    """What the request would do, as far as its text tells."""
    request = call.request
    if isinstance(request, Query):
        return judge(request.statement.text, source.dialect)
    if isinstance(request, Explain):
        # Judged as what will run: what follows could turn an EXPLAIN into an execution.
        return judge(f"EXPLAIN {request.statement.text}", source.dialect)
    return JUDGEMENTS[type(request)]


async def inspected(engine: Engine, request: Query, judgement: Judgement) -> Judgement:
    """The judgement, or the database's own if that is the graver."""
    opinion = await engine.inspect(request.statement)
    return judgement if opinion is None or opinion.effect <= judgement.effect else opinion


def weighed(call: Call, source: Source, judgement: Judgement) -> Verdict:
    """The verdict of the rules."""
    return decide(
        call.actor,
        source,
        call.scope,
        judgement,
        confirmed=call.confirmed,
        reads_only=call.reads_only,
    )


def explained(call: Call, source: Source, judgement: Judgement) -> Explanation:
    """The same verdict, with every rule that was looked at."""
    return explain(
        call.actor,
        source,
        call.scope,
        judgement,
        confirmed=call.confirmed,
        reads_only=call.reads_only,
    )


class Preview:
    """Weighs calls for whoever asks why. `names` permits the catalog, which a gateway alone can."""

    def __init__(self, connections: Connections, curtain: Curtain, names: PermitNames) -> None:
        self._connections = connections
        self._curtain = curtain
        self._names = names

    async def of(self, call: Call) -> tuple[Judgement, Explanation]:
        """What the gate would say to a call and every rule it looks at, with the database's
        opinion of a query that is not refused before. Runs nothing and records nothing.

        Raises: GateError SOURCE_UNKNOWN, and what opening the source raises.
        """
        connection = self._connections.find(call.source, call.actor)
        source = connection.source
        judgement = judged(call, source)
        explanation = explained(call, source, judgement)
        if explanation.verdict.kind != "deny" and isinstance(call.request, Query):
            engine = await self._connections.engine(connection)
            judgement = await inspected(engine, call.request, judgement)
            explanation = explained(call, source, judgement)
            explanation = await self._behind_shield(call, call.request, connection, explanation)
        return judgement, explanation

    async def _behind_shield(
        self, call: Call, request: Query, connection: Connection, explanation: Explanation
    ) -> Explanation:
        """The explanation with what the shield says, if the caller is under one."""
        shield = shield_of(call.actor, connection.source)
        if shield is None or explanation.verdict.kind == "deny":
            return explanation
        engine = await self._connections.engine(connection)
        names = self._names(call, connection.source, request, "explain")
        try:
            await self._curtain.drawn(call, request, shield, names, engine, connection)
        except GateError as refusal:
            return under_shield(explanation, verdict_of(refusal))
        return under_shield(explanation, None)
