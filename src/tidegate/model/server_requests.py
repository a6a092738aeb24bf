"""Requests about the database server itself: what it is busy with, and cancelling what one of its
sessions runs. Frozen.

Their statements are the dialect's own, so that no text of a caller runs as one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from tidegate.model.requests import EngineRequest, metadata
from tidegate.model.statements import Effect, Judgement, Statement

Panel = Literal["sessions", "blocking", "statements", "sizes", "memory", "rights"]
"""Sessions; who waits for whom; the slowest statements; sizes of tables; memory; and what the
source's account may see and do of these."""

TELLS_OF_DATA: frozenset[Panel] = frozenset({"blocking", "statements", "sizes", "memory"})
"""Panels that name tables, or tell how many rows they have: as the size of a whole file does, and
how much of it was read."""
READS_STATE = metadata("server", "reads the state of the server")
CANCELS = Judgement(
    Effect.WRITE, "request.cancel_session", "cancels what a session runs", verb="cancel_session"
)


class ServerRequest(EngineRequest, frozen=True, kw_only=True):
    """The base of requests about the server."""

    costs: ClassVar[bool] = False


class ReadServer(ServerRequest, frozen=True, kw_only=True):
    """Read one panel; the answer is a `Page` with its cells as text. `texts`: with the statements
    of all sessions, for an operator who is an admin of the source and from whom nothing is
    hidden."""

    kind: ClassVar[str] = "server"
    judgement: ClassVar[Judgement | None] = READS_STATE
    asks_person: ClassVar[bool] = False

    panel: Panel
    texts: bool = False

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        return {"panel": self.panel, "texts": self.texts}


class CancelSession(ServerRequest, frozen=True, kw_only=True):
    """Cancel what a session of the server runs; the session itself stays. It is the one that the
    panel of sessions showed as `session` with that `started`: numbers of sessions are used again. A
    person is always asked. The answer is a `Page`."""

    kind: ClassVar[str] = "cancel_session"
    judgement: ClassVar[Judgement | None] = CANCELS
    always_asks: ClassVar[bool] = True

    session: str
    started: str

    def recorded_text(self) -> str | None:
        return self._text

    def shown_statement(self) -> Statement:
        return Statement(self._text, (self.session, self.started))

    @property
    def _text(self) -> str:
        return f"CANCEL SESSION {self.session} STARTED {self.started}"
