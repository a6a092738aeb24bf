"""What the sessions of the wire protocol use of the gate."""

from __future__ import annotations

from typing import Protocol

from tidegate.model.replies import Reply
from tidegate.model.requests import Call
from tidegate.model.sources import Source
from tidegate.model.statements import Judgement
from tidegate.policy.explanation import Explanation


class WireGate(Protocol):
    """The gate (`gateway.gateway.Gateway`), or one that also keeps records of its own."""

    async def handle(self, call: Call) -> Reply:
        """Answer one call. Raises: TidegateError."""
        ...

    async def explain(self, call: Call) -> tuple[Judgement, Explanation]:
        """What the gate would say to a call. Raises: TidegateError."""
        ...

    def source_of(self, call: Call) -> Source:
        """The source that a call is about, with its rules of this moment. Raises: TidegateError."""
        ...

    def touch_transaction(self, transaction: str) -> None:
        """Note that the owner of a transaction reads on in a result of it."""
        ...

    async def abandon_transaction(self, transaction: str, reason: str) -> None:
        """End a transaction whose client has gone."""
        ...
