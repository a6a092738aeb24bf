"""One call of one tool: what the tool's code may know about the caller, and its way to the gateway.

A tool can only make a `Call`, and `ToolContext.handle` is the only way to send one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import msgspec

from tidegate.errors import OUTCOME_UNKNOWN, Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.replies import Reply, SourceEntry
from tidegate.model.requests import Basis, Call, ListSources, OpenTemporary, Request
from tidegate.model.results import Document, Page
from tidegate.protocol.model import Ask, Context, Info
from tidegate.protocol.session_state import SessionState

if TYPE_CHECKING:  # a name alone: what needs no approval does not pay for it
    from tidegate.approvals.approvals import ApprovalNeeded
    from tidegate.store.records import PendingApproval

PayloadT = TypeVar("PayloadT")


_ALL = ListSources()


REASON = "tidegate/reason"
"""The field of `_meta` for what a call is for."""


class Choices(Protocol):
    """What callers have chosen or opened, for their calls that come to other processes. `place`
    names this process, for people."""

    @property
    def place(self) -> str: ...
    async def find(self, owner: str, name: str) -> bytes | None:
        """What was kept under a name for an actor, by its id. Raises: TidegateError
        STATE_FAILED."""
        ...

    async def keep(self, owner: str, name: str, value: bytes, lifetime_s: float = ...) -> None:
        """Keep it in place of what was there. Raises: TidegateError STATE_FAILED."""
        ...

    async def forget(self, owner: str, name: str) -> None:
        """Remove it. Raises: TidegateError STATE_FAILED."""
        ...


class Gate(Protocol):
    """The only way to every source; `gateway.Gateway` in a running server."""

    async def handle(self, call: Call) -> Reply:
        """Judge, decide, record, run. Raises: TidegateError."""
        ...

    def end_session(self, session: str) -> None:
        """Close what a session has opened."""
        ...

    async def answer_approval(self, needed: ApprovalNeeded, call: Call, allow: bool) -> None:
        """Take a person's answer to the question that `handle` raised. Raises: TidegateError."""
        ...

    @property
    def choices(self) -> Choices | None:
        """What callers have chosen; None where no other process gets their calls."""
        ...


class ApprovalForm(msgspec.Struct, frozen=True):
    """How a surface asks the person at the client to approve a call.

    `message` writes the question. `schema` is the form's flat schema; one without properties asks
    for consent alone. `allows` reads the content of an accepted form.
    """

    message: Callable[[PendingApproval], str]
    schema: Mapping[str, Any]
    allows: Callable[[Mapping[str, Any]], bool]


class ApprovalTerms(msgspec.Struct, frozen=True):
    """What a call itself says for its approval. `confirmed`: the caller typed the phrase of
    confirmation. `by_person`: a person is to approve it, whatever the source asks for. `reason` is
    what the caller says that it is for; where the tool has no argument for that, it may be in the
    request's `_meta` as `tidegate/reason`."""

    confirmed: bool = False
    by_person: bool = False
    reason: str = ""


NO_TERMS = ApprovalTerms()
"""It is approved as its source asks for."""


class EndedWork(msgspec.Struct, frozen=True):
    """What is known of a call that has ended (`protocol.tasks.Work`)."""

    tool: str
    scope: Scope
    basis: tuple[Basis, ...]
    changed: bool
    outcome_unknown: bool
    may_pass_now: bool

    def ended(self) -> EndedWork:
        return self


class ToolContext(msgspec.Struct, eq=False):
    """One call of one tool (or one reading of a resource): what its code may know and do."""

    gate: Gate
    context: Context
    surface: str
    tool: str
    scope: Scope
    form: ApprovalForm | None = None
    refused_by_gate: bool = False
    """Whether the gate has refused a request of this call, and so has recorded that."""
    approved: bool = False
    """Whether a person has approved a request of this call."""
    changed: bool = False
    """Whether a request of this call, which succeeded, may have changed data."""
    basis: tuple[Basis, ...] = ()
    """What the replies of this call were read under."""
    failed_with: Code | None = None
    """The code of the error with which this call has ended."""
    budget: str = ""
    """What is left of budgets that are nearly used up, as the last reply that said so has it."""

    @property
    def actor(self) -> Actor:
        return self.context.actor

    @property
    def client(self) -> Info:
        return self.context.client

    @property
    def revision(self) -> str:
        return self.context.revision

    def new_state(self) -> SessionState:
        """State for later calls of the same client; see `protocol.model.Context.new_state`."""
        state = self.context.new_state()
        if not state.watched:
            state.watched = True
            state.on_close(partial(self.gate.end_session, state.id))
        return state

    def find_state(self, handle: str) -> SessionState | None:
        """The state under a handle that an earlier call minted, or None."""
        return self.context.find_state(handle)

    async def handle(
        self,
        request: Request,
        source: str | None,
        expected: type[PayloadT],
        *,
        terms: ApprovalTerms = NO_TERMS,
        reads_only: bool = False,
        quiet: bool = False,
        asks: bool = True,
    ) -> PayloadT:
        """Send `request` through the gate; the reply's payload must be `expected`.

        `source` is a source's name or id; None means the one source that the actor may see.
        Only some requests report progress (`Request.reports_progress`): a tool may read metadata
        several times, and progress must not go back. Nor does a `quiet` one, of a tool that sends
        several.
        `reads_only`: the tool is for statements that read, whatever the caller may do elsewhere.
        Without `asks` the client's user is asked nothing, and what needs an approval is refused.
        Raises: TidegateError, whatever the gate refuses or the database says.
        """
        if isinstance(request, OpenTemporary):
            self.new_state()  # so that the source ends with the session
        call = self._call(request, source, terms, reads_only, quiet, asks)
        try:
            reply = await self._send(call, asks=asks)
        except TidegateError as error:
            self.approved = self.approved or error.approved
            if error.under is not None:  # the words of a database can quote a row
                self.basis = (*self.basis, Basis(*error.under, call.session))
            raise
        self.approved = self.approved or reply.approved
        self.changed = self.changed or reply.changed
        if reply.source is not None:
            basis = Basis(reply.source, reply.identity, reply.data_rules, call.session)
            self.basis = (*self.basis, basis)
        payload = reply.payload
        if not isinstance(payload, expected):
            raise TidegateError(Code.INTERNAL, f"The gate answered {type(payload).__name__}")
        if isinstance(payload, (Page, Document)) and payload.budget:
            self.budget = payload.budget
        return payload

    async def _send(self, call: Call, *, asks: bool) -> Reply:
        try:
            return await self.gate.handle(call)
        except TidegateError as error:
            self.refused_by_gate = True
            if error.code is not Code.APPROVAL_NEEDED or not asks:
                raise
            from tidegate.surfaces.elicitation import ask

            return await ask(self.gate, self.context, call, error, self.form)

    @property
    def outcome_unknown(self) -> bool:
        """Whether it failed, and what it did before stands, or that is not known."""
        return self.changed or self.failed_with in OUTCOME_UNKNOWN

    @property
    def may_pass_now(self) -> bool:
        """Whether it failed for want of a person's answer, which may be there by now."""
        return self.failed_with is Code.APPROVAL_NEEDED and not self.changed

    def ended(self) -> EndedWork:
        """What is needed of it once the call has ended."""
        unknown, may_pass = self.outcome_unknown, self.may_pass_now
        return EndedWork(self.tool, self.scope, self.basis, self.changed, unknown, may_pass)

    @property
    def can_ask(self) -> bool:
        """Whether the client can show its user a form."""
        return _can_ask(self.context)

    @property
    def can_sample(self) -> bool:
        """Whether the client offers its model."""
        return self.context.can("sampling")

    async def ask(
        self, key: str, message: str, schema: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """Ask the client's user to fill a form (`elicitation/create`, flat `schema`).

        Returns the form's content, or None if the user declined or cancelled. `key` names the
        question within this call. Since 2026-07-28 the call runs again from its start when the
        answer is there, so code before this must change nothing. Raises: RpcError if the client
        cannot ask (see `can_ask`) or its answer does not fit the schema.
        """
        form = Ask("elicitation/create", {"message": message, "requestedSchema": schema})
        answer = await self.context.ask(key, form)
        if answer["action"] != "accept":
            return None
        content: Mapping[str, Any] = answer.get("content") or {}
        return content

    async def sample(
        self,
        key: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        max_tokens: int,
        system: str | None = None,
    ) -> Mapping[str, Any]:
        """Ask the client's model (`sampling/createMessage`); returns its `CreateMessageResult`.

        `messages` are in the protocol's shape. `key`, a second run of the call and what is raised
        are as for `ask` (see `can_sample`).
        """
        params: dict[str, Any] = {"messages": messages, "maxTokens": max_tokens}
        if system is not None:
            params["systemPrompt"] = system
        return await self.context.ask(key, Ask("sampling/createMessage", params))

    async def sources(self, wanted: ListSources = _ALL) -> tuple[SourceEntry, ...]:
        """The sources that the actor may see, with the state of their connections."""
        payload = (await self.gate.handle(self._call(wanted, None))).payload
        if not isinstance(payload, tuple):
            raise TidegateError(Code.INTERNAL, f"The gate answered {type(payload).__name__}")
        return cast("tuple[SourceEntry, ...]", payload)

    def _call(
        self,
        request: Request,
        source: str | None,
        terms: ApprovalTerms = NO_TERMS,
        reads_only: bool = False,
        quiet: bool = False,
        asks: bool = True,
    ) -> Call:
        context = self.context
        client = context.client
        reports = context.wants_progress and type(request).reports_progress and not quiet
        # A caller that confirms means to change something, whatever else the tool is for.
        changes = terms.confirmed and self.scope is Scope.READ_ONLY
        return Call(
            actor=context.actor,
            surface=self.surface,
            tool=self.tool,
            request=request,
            source=source,
            scope=Scope.READ_WRITE if changes else self.scope,
            client=f"{client.name}/{client.version}",
            cancellation=context.cancellation,
            progress=self._report if reports else None,
            confirmed=terms.confirmed,
            reads_only=reads_only,
            can_ask=asks and _can_ask(context),
            by_person=terms.by_person,
            session=context.state_id,
            address=context.address,
            reason=terms.reason or _reason_of(context),
            waiter=context,
        )

    def _report(self, share: float, stage: str) -> None:
        self.context.progress(share, 1.0, stage)


def _reason_of(context: Context) -> str:
    """What the request's `_meta` says that the call is for."""
    reason = context.meta.get(REASON)
    return reason if isinstance(reason, str) else ""


def _can_ask(context: Context) -> bool:
    """Whether the client shows forms: `elicitation` without a word has always meant them."""
    declared = context.client_capabilities.get("elicitation")
    if declared is None or context.revision < "2025-06-18":
        return False
    return not declared or "form" in declared
