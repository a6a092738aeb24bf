"""One call of one tool: what the tool's code may know of the caller, and its way to the gate.

All that a tool can make is a `Call`, and `Turn.handle` is the only way from a tool to the gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from tidegate.actors import Actor, Scope
from tidegate.calls import Call, ListSources, Progress, Query, Request
from tidegate.errors import Code, GateError
from tidegate.protocol.model import Context, Info
from tidegate.replies import Payload, Reply, SourceEntry

if TYPE_CHECKING:  # a name alone: what needs no approval does not pay for it
    from tidegate.approvals.approvals import ApprovalNeeded

PayloadT = TypeVar("PayloadT", bound=Payload)


class Gate(Protocol):
    """The one door to every source; `gateway.Gateway` in a running server."""

    async def handle(self, call: Call) -> Reply:
        """Judge, decide, record, run. Raises: GateError."""
        ...

    async def settle(self, needed: ApprovalNeeded, call: Call, allow: bool) -> None:
        """Take a person's answer to the question that `handle` raised. Raises: GateError."""
        ...


class Turn:
    """One call of one tool (or one reading of a resource): what its code may know and do."""

    __slots__ = ("_context", "_gate", "_progress", "_surface", "scope", "tool")

    def __init__(self, gate: Gate, context: Context, surface: str, tool: str, scope: Scope) -> None:
        self._gate = gate
        self._context = context
        self._surface = surface
        self.scope = scope
        self._progress: Progress | None = self._report if context.wants_progress else None
        self.tool = tool

    @property
    def actor(self) -> Actor:
        return self._context.actor

    @property
    def client(self) -> Info:
        return self._context.client

    @property
    def revision(self) -> str:
        return self._context.revision

    async def handle(
        self,
        request: Request,
        source: str | None,
        expected: type[PayloadT],
        *,
        confirmed: bool = False,
        reads_only: bool = False,
        quiet: bool = False,
    ) -> PayloadT:
        """Send `request` through the gate; the reply's payload must be `expected`.

        `source` is a source's name or id; None stands for the one source that the actor may see.
        Only a `Query` reports progress: a tool may read metadata several times, and progress
        must not go back. Nor does a `quiet` one, of a tool that sends several. `confirmed`: the
        caller typed the phrase of confirmation; `reads_only`: the tool is for statements that
        read, whatever the caller may do elsewhere.
        Raises: GateError, whatever the gate refuses or the database says.
        """
        call = self._call(request, source, confirmed, reads_only, quiet)
        try:
            reply = await self._gate.handle(call)
        except GateError as error:
            if error.code is not Code.APPROVAL_NEEDED:
                raise
            from tidegate.surfaces.asking import ask

            reply = await ask(self._gate, self._context, call, error)
        payload = reply.payload
        if not isinstance(payload, expected):
            raise GateError(Code.INTERNAL, f"The gate answered {type(payload).__name__}")
        return payload

    async def sources(self) -> tuple[SourceEntry, ...]:
        """The sources that the actor may see, with where their connections stand."""
        payload = (await self._gate.handle(self._call(ListSources(), None))).payload
        if not isinstance(payload, tuple):
            raise GateError(Code.INTERNAL, f"The gate answered {type(payload).__name__}")
        return payload

    def _call(
        self,
        request: Request,
        source: str | None,
        confirmed: bool = False,
        reads_only: bool = False,
        quiet: bool = False,
    ) -> Call:
        context = self._context
        client = context.client
        # Who confirms means to change something, whatever else the tool is for.
        changes = confirmed and self.scope is Scope.READ_ONLY
        return Call(
            actor=context.actor,
            surface=self._surface,
            tool=self.tool,
            request=request,
            source=source,
            scope=Scope.READ_WRITE if changes else self.scope,
            client=f"{client.name}/{client.version}",
            cancellation=context.cancellation,
            progress=self._progress if isinstance(request, Query) and not quiet else None,
            confirmed=confirmed,
            reads_only=reads_only,
            can_ask=_can_ask(context),
        )

    def _report(self, share: float, stage: str) -> None:
        self._context.progress(share, 1.0, stage)


def _can_ask(context: Context) -> bool:
    """Whether the client shows forms: `elicitation` without a word has always meant them."""
    declared = context.client_capabilities.get("elicitation")
    if declared is None or context.revision < "2025-06-18":
        return False
    return not declared or "form" in declared
