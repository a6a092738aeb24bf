"""One call's trail through the records: an intent, then an outcome or a refusal, and history.

What could change data is on record before it runs. A read is on record before its reply leaves:
if it cannot be, the reply does not leave. Where the operator tolerates less (`audit.failure_mode`)
the call goes on, and the log counts what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.calls import Call, Explain, Query
from tidegate.errors import GateError
from tidegate.history import History
from tidegate.pages import Page
from tidegate.permits import Verdict
from tidegate.sources import Source
from tidegate.statements import Effect, Judgement
from tidegate.store.api import HistoryEntry

_KINDS = {
    "Query": "query",
    "Explain": "explain",
    "Browse": "browse",
    "More": "more",
    "ListSources": "list",
    "Connect": "connect",
    "Disconnect": "disconnect",
    "Switch": "switch",
    "SearchHistory": "history",
    "OpenWindow": "desk",
    "OpenTable": "desk",
    "FocusTab": "desk",
    "ListTabs": "desk",
}


class Trail:
    """What is known of a call so far, and the events that tell it.

    Exactly one of `succeed` and `fail` ends a trail.
    """

    __slots__ = (
        "_audit",
        "_began",
        "_call",
        "_history",
        "_kind",
        "_permitted",
        "approval",
        "call_id",
        "database",
        "judgement",
        "source",
        "started_at",
        "verdict",
    )

    def __init__(
        self,
        audit: AuditLog,
        history: History,
        clock: Callable[[], float],
        call: Call,
        call_id: str,
        *,
        kind: str = "",
    ) -> None:
        """`kind` names what is done where that is not what the request says."""
        self._audit = audit
        self._history = history
        self._call = call
        self._kind = kind
        self._began = time.perf_counter()
        self._permitted = False
        self.call_id = call_id
        self.database = ""
        self.approval = ""
        self.source: Source | None = None
        self.judgement: Judgement | None = None
        self.verdict: Verdict | None = None
        self.started_at = clock()

    @property
    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._began) * 1000

    @property
    def changes(self) -> bool:
        """Whether the call could change data, as far as is known yet."""
        return self.judgement is not None and self.judgement.effect > Effect.READ

    async def permit(self) -> None:
        """Note that the call may run; durably first, if it could change data.

        While the log fails, a read needs an intent as well: it would run for nobody.
        Raises: GateError AUDIT_UNAVAILABLE, and then it must not run.
        """
        if self.changes:
            try:
                await self._audit.durable(self._append("intent"))
            except GateError as error:
                self._tolerate(error, changes=True)
        elif self._audit.failing and not self._audit.tolerates(changes=False):
            self._append("intent")
        self._permitted = True

    async def succeed(self, page: Page | None = None, *, rows: int | None = None) -> None:
        """Record the outcome; durably, if data may have changed.

        Raises: GateError AUDIT_UNAVAILABLE, and then the reply must not leave.
        """
        sequence = None
        try:
            if page is not None:
                sequence = self._append(
                    "outcome",
                    rows=page.row_count or page.affected,
                    size=len(page.rows),
                    elapsed_ms=page.elapsed_ms,
                )
            else:
                sequence = self._append("outcome", rows=rows, elapsed_ms=self.elapsed_ms)
        except GateError as error:
            self._tolerate(error, changes=self.changes)
        if page is not None:
            self._remember(page.row_count or page.affected, page.elapsed_ms, "")
        if sequence is not None and self.changes:
            try:
                await self._audit.durable(sequence)
            except GateError as error:
                self._tolerate(error, changes=True)

    def fail(self, error: GateError) -> None:
        """Record a refusal or, if the call was permitted, how it failed.

        Raises: GateError AUDIT_UNAVAILABLE, and then that is the answer.
        """
        phase = "outcome" if self._permitted else "refusal"
        try:
            self._append(
                phase, code=error.code.value, error=error.message, elapsed_ms=self.elapsed_ms
            )
        except GateError as fault:
            # What was refused has changed nothing.
            self._tolerate(fault, changes=self._permitted and self.changes)
        if self._permitted:
            self._remember(0, self.elapsed_ms, error.message)

    def _tolerate(self, error: GateError, *, changes: bool) -> None:
        """Count an event that could not be written, or raise what the log said about it."""
        if not self._audit.tolerates(changes=changes):
            raise error
        self._audit.miss()

    def _append(
        self,
        phase: Literal["intent", "outcome", "refusal"],
        *,
        rows: int | None = None,
        size: int | None = None,
        elapsed_ms: float | None = None,
        code: str = "",
        error: str = "",
    ) -> int:
        call, source, judgement, verdict = self._call, self.source, self.judgement, self.verdict
        request = call.request
        return self._audit.append(
            Event(
                call_id=self.call_id,
                phase=phase,
                actor=call.actor.id,
                actor_name=call.actor.name,
                client=call.client,
                surface=call.surface,
                tool=call.tool,
                source=source.name if source is not None else call.source or "",
                request=self._kind or _KINDS[type(request).__name__],
                effect=judgement.effect.label if judgement is not None else "",
                verdict=verdict.kind if verdict is not None else "",
                rule=verdict.rule if verdict is not None else "",
                code=code,
                statement=(
                    request.statement.text if isinstance(request, (Query, Explain)) else None
                ),
                dialect=source.dialect if source is not None else "",
                rows=rows,
                bytes=size,
                elapsed_ms=elapsed_ms,
                error=error,
                approval=self.approval,
            )
        )

    def _remember(self, rows: int, elapsed_ms: float, error: str) -> None:
        request, source = self._call.request, self.source
        if source is None or self._kind or not isinstance(request, Query):
            return
        self._history.add(
            HistoryEntry(
                text=request.statement.text,
                source=source.name,
                at=self.started_at,
                actor=self._call.actor.id,
                surface=self._call.surface,
                tool=self._call.tool,
                database=request.database or self.database,
                dialect=source.dialect,
                elapsed_ms=elapsed_ms,
                row_count=rows,
                success=not error,
                error=error,
            )
        )
