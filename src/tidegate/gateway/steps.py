"""The steps of a call, in their order.

Each is a function of the `CallContext`; steps that do not apply to a call are skipped.
`STATEMENT_STEPS`, read from top to bottom, is what happens to a statement. The order protects: the
policy is checked before the database is contacted, masks and filters are applied before the
database inspects the statement, a person is asked after that inspection, and nothing runs before it
is on record.

A product may add steps (`Product.steps`): see `steps_of`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, lru_cache
from operator import attrgetter
from typing import NamedTuple

from tidegate.engines.registry import installed_product_of
from tidegate.errors import Code, TidegateError
from tidegate.gateway.approval import approve, save_outcome, save_start
from tidegate.gateway.budgets import check_budgets, pay, reserve, reserve_joined
from tidegate.gateway.context import CallContext
from tidegate.gateway.decision import confirm_by_person, decide, inspect
from tidegate.gateway.execution import run
from tidegate.gateway.handlers import answer, find_handler
from tidegate.gateway.joined_tables import find_joined, read_joined, rewrite_joined, tell_budgets
from tidegate.gateway.masking import hide_sessions, mask
from tidegate.gateway.recorder import add_to_history, record_intent, record_outcome
from tidegate.gateway.source_connections import connect
from tidegate.gateway.transactions import check_statement, enter_transaction, judge_commit
from tidegate.model.requests import EngineRequest, Explain, Prepare, Query, Request
from tidegate.model.server_requests import ServerRequest
from tidegate.model.statements import Effect
from tidegate.product import built_in, load
from tidegate.sql.session_texts import has_session_views, names_sessions

Action = Callable[[CallContext], Awaitable[None] | None]
"""What a step does. Raises: TidegateError, and then the call ends."""
Condition = Callable[[CallContext], object]
"""Whether the call concerns a step."""


class Step(NamedTuple):
    """One step: its name, what it does, and which calls it concerns (None: all)."""

    name: str
    action: Action
    concerns: Condition | None = None


def _step(action: Action, concerns: Condition | str | None = None) -> Step:
    """A step for calls of which the condition holds, or which have what is at `concerns`, a path in
    the context."""
    has = attrgetter(concerns) if isinstance(concerns, str) else concerns
    return Step(action.__name__, action, has)


def _later(place: str, concerns: Condition | None = None) -> Step:
    """The step at a place, whose module is imported when the first call needs it."""

    def action(ctx: CallContext) -> Awaitable[None] | None:
        found: Action = load(place)
        return found(ctx)

    return Step(place.partition(":")[2], action, concerns)


def _has_terms(ctx: CallContext) -> bool:
    """Whether it is a change where changes are kept or limited."""
    if ctx.judgement.effect is Effect.READ or ctx.call.request.names_change:
        return False
    source, actor = ctx.source, ctx.call.actor
    if isinstance(ctx.call.request, ServerRequest):
        return False  # it changes no row
    limited = source.max_rows_changed is not None or actor.max_rows_changed is not None
    return limited or source.undo != "off"


def _limits_plan(ctx: CallContext) -> bool:
    source = ctx.source
    if source.max_plan_rows is None and source.max_plan_cost is None:
        return False
    return ctx.call.request.costs and isinstance(ctx.call.request, Query)


def _may_change(ctx: CallContext) -> bool:
    return ctx.may_change


def _is_kept(ctx: CallContext) -> bool:
    if isinstance(ctx.call.request, ServerRequest):
        return False
    return ctx.judgement.effect > Effect.READ and ctx.source.undo != "off"


def _asks_always(ctx: CallContext) -> bool:
    return ctx.call.by_person or ctx.call.request.always_asks


def _is_about_server(ctx: CallContext) -> bool:
    return isinstance(ctx.call.request, ServerRequest)


def _needs_person(ctx: CallContext) -> bool:
    return ctx.verdict.kind == "ask" and type(ctx.call.request) is not Prepare


_SHORT = 2_048
_names_sessions = lru_cache(maxsize=512)(names_sessions)


def _may_show_sessions(ctx: CallContext) -> bool:
    """Whether the statement may name a view of the database's sessions."""
    dialect, request = ctx.source.dialect, ctx.rewritten
    if not has_session_views(dialect) or not isinstance(request, (Query, Explain, Prepare)):
        return False
    text = request.statement.text
    return (_names_sessions if len(text) <= _SHORT else names_sessions)(text, dialect)


def check_cancelled(ctx: CallContext) -> None:
    """Raises: TidegateError CALL_CANCELLED for a call that was cancelled before it runs."""
    if ctx.call.cancellation.reason is not None:
        raise TidegateError(Code.CALL_CANCELLED, "The call was cancelled")


def report_end(ctx: CallContext) -> None:
    """Tell a caller who wants to see progress that the call is done."""
    if ctx.call.progress is not None:
        ctx.call.progress(1.0, "Done")


STATEMENT_STEPS = (
    _step(enter_transaction, "call.transaction"),
    _step(decide),
    _step(confirm_by_person, _asks_always),
    _later("tidegate.gateway.server_state:check_server_request", _is_about_server),
    _step(connect),
    _step(find_joined, "engine.capabilities.joins"),
    _step(mask, "data_rules"),
    _step(hide_sessions, _may_show_sessions),
    _step(rewrite_joined, "joins"),
    _step(inspect),
    _step(check_statement, "transaction"),
    _later("tidegate.gateway.plan_limits:limit_plan", _limits_plan),
    _later("tidegate.gateway.undo:load_change", attrgetter("call.request.names_change")),
    _later("tidegate.gateway.changes:consider_change", _has_terms),
    _step(check_budgets, _needs_person),
    _step(approve, _needs_person),
    _later("tidegate.gateway.changes:begin_keeping", _is_kept),
    _step(judge_commit, "transaction"),
    _step(reserve),
    _step(check_cancelled),
    _step(record_intent),
    _step(read_joined, "joins"),
    _step(reserve_joined, "joins"),
    _step(save_start, "approval.grant"),
    _step(run),
    _step(pay, "spending"),
    _step(tell_budgets, "joins"),
    _step(record_outcome),
    _step(save_outcome, "approval.grant"),
    _step(add_to_history),
    _step(report_end, "call.progress"),
)
"""Of a request that an engine answers, after its source was found."""

ROW_STEPS = (
    _step(enter_transaction, "call.transaction"),
    _later("tidegate.gateway.row_changes:decide_rows"),
    _step(confirm_by_person, "call.by_person"),
    _step(connect),
    _later("tidegate.gateway.row_changes:mask_rows", attrgetter("data_rules")),
    _later("tidegate.gateway.row_changes:inspect_rows", _may_change),
    _later("tidegate.gateway.changes:consider_change", _has_terms),
    _step(check_budgets, _needs_person),
    _step(approve, _needs_person),
    _later("tidegate.gateway.changes:begin_keeping", _is_kept),
    _step(reserve),
    _step(check_cancelled),
    _step(record_intent),
    _step(save_start, "approval.grant"),
    _step(run),
    _step(pay, "spending"),
    _step(record_outcome),
    _step(save_outcome, "approval.grant"),
    _step(add_to_history),
    _step(report_end, "call.progress"),
)
"""Of a request about single rows of a table, which the gate itself writes as statements."""


def _is_recorded_first(ctx: CallContext) -> bool:
    return ctx.judgement.effect > Effect.READ or ctx.call.request.recorded_first


ANSWER_STEPS = (
    _step(enter_transaction, "call.transaction"),
    _step(decide),
    _step(confirm_by_person, "call.by_person"),
    _step(find_handler),
    _step(approve, _needs_person),
    _step(reserve),
    _step(check_cancelled, _is_recorded_first),
    _step(record_intent, _is_recorded_first),
    _step(answer),
    _step(pay, "spending"),
    _step(record_outcome),
)
"""Of a request that needs no engine, after its sources were found."""


@cache
def steps_of(request: type[Request], engine: str) -> tuple[Step, ...]:
    """The steps of calls with such requests on sources of an engine, those of products included.

    A product that is here may add steps for every source; one of another package adds them for the
    sources of its own engines alone, so that it is known whenever they are due.
    Raises: TidegateError CONFIG_INVALID for a step that is to come before one that is not there.
    """
    steps = STATEMENT_STEPS if issubclass(request, EngineRequest) else ANSWER_STEPS
    if request.about_rows:
        steps = ROW_STEPS
    if not request.costs:
        steps = tuple([step for step in steps if step.action not in COSTING])
    added: dict[str, list[Step]] = {}
    package = installed_product_of(engine)
    for product in built_in() if package is None else (*built_in(), package):
        for before, place in product.steps.items():
            if before not in _NAMES:
                raise TidegateError(
                    Code.CONFIG_INVALID,
                    f"The product `{product.name}` has a step before `{before}`, and there is no"
                    " such step.",
                    hint=f"The steps are {', '.join(sorted(_NAMES))}.",
                )
            added.setdefault(before, []).append(_later(place))
    return tuple([each for step in steps for each in (*added.get(step.name, ()), step)])


COSTING = frozenset({check_budgets, reserve, reserve_joined, pay})
"""The steps of requests that cost budgets, and of no others."""

_NAMES = frozenset([step.name for step in (*STATEMENT_STEPS, *ROW_STEPS, *ANSWER_STEPS)])
