"""Decides how fresh the engine's knowledge of the catalogue's hazards is, and joins it with the
judge's reading of a text. A text that was looked at costs a look-up."""

from __future__ import annotations

from time import monotonic

from tidegate.engines.postgres import queries
from tidegate.engines.postgres.hazards import NONE, opinion, survey
from tidegate.engines.postgres.session import Session
from tidegate.sql.judge import judge
from tidegate.statements import Effect, Judgement

FRESH_S = 2.0
"""How long the catalogue is trusted. What we write ourselves is noticed at once."""

MAX_TEXTS = 1_024
LONG_TEXT = 16_384


class Watch:
    """What is known of hazards, and the judgements of texts by it."""

    def __init__(self) -> None:
        self._hazards = NONE
        self._moment: str | None = None
        self._state: str | None = None
        self._until = 0.0
        self._judgements: dict[str, Judgement] = {}

    @property
    def is_due(self) -> bool:
        """Whether the catalogue must be looked at again before anything is judged."""
        return monotonic() >= self._until

    def wake(self) -> None:
        """Something was written: look again."""
        self._until = 0.0

    async def look(self, session: Session, timeout_ms: int) -> None:
        """See whether the catalogue has changed, and survey it if it has. Raises: GateError."""
        until = monotonic() + FRESH_S
        ((moment,),) = await session.own(queries.SNAPSHOT)
        if moment != self._moment:
            ((state,),) = (await session.ask(queries.RULES_STATE, timeout_ms=timeout_ms))[0]
            if state != self._state:
                self._hazards = await survey(session, timeout_ms)
                self._judgements.clear()
                self._state = state
            self._moment = moment
        self._until = until

    def judgement(self, text: str) -> Judgement:
        """The highest of the judge's and the catalogue's opinions."""
        known = self._judgements.get(text)
        if known is None:
            known = judge(text, "postgres")
            changes = known.effect > Effect.READ
            against = opinion(text, self._hazards, changes=changes)
            if against is not None and against.effect > known.effect:
                known = against
            if len(text) <= LONG_TEXT:
                if len(self._judgements) >= MAX_TEXTS:
                    self._judgements.clear()
                self._judgements[text] = known
        return known
