"""Now: the calls under way, figures of the last hour and day, and the condition of the server.

An operator sees the calls and figures of the sources on which it has a role; what is about no
source, or about one that no role names, is for those with a role on all. It may end the calls on
sources where it may answer, and everywhere those of its own tokens. Calls are those of all
processes on this state; figures are those of the records of all gates that send theirs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from tidegate.approvals.approvals import Approvals
from tidegate.audit.activity import ActivityIndex
from tidegate.errors import Code, TidegateError
from tidegate.gateway.call_figures import OTHERS, CallFigures, Counted, Counting, Span, series
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.other_processes import OtherProcesses
from tidegate.gateway.running_calls import RunningCall
from tidegate.identity.operators import Note, SignedIn, holds
from tidegate.model.actors import Actor
from tidegate.model.sources import Source
from tidegate.policy.data_rules import hides_something
from tidegate.products.console.activity_counts import count_calls
from tidegate.products.console.cards import source_fields
from tidegate.products.console.gate_figures import GateFigures
from tidegate.products.console.gates import gate_rows, serving_elsewhere
from tidegate.products.console.sign_in import actor_of
from tidegate.store.calls import change_state, read_state
from tidegate.store.gates import GateStore
from tidegate.system.disks import free_bytes
from tidegate.webhook.sender import WebhookHealth

MOST_CALLS = 50
"""Calls that are shown; the others are counted."""
MOST_LISTED_SOURCES = 200
WATCHED_S = 30.0
"""So long after a page asked for Now its stream has the calls under way."""
_DAY_S, _HOUR_S = 86_400.0, 3_600.0
_CATCH_UP_S = 2.0
_AT_ONCE = 2_000
"""Counts that are added between two checks for other work."""


class SourceCondition(NamedTuple):
    """How a source is: whether it is open, what runs on it, and the last error of opening it."""

    name: str
    source: Source
    status: str
    error: str
    running: int
    connections: int | None
    last_active_at: float | None


class RecordCondition(NamedTuple):
    """How the record is: what fails of it, and when its last checkpoint was signed."""

    problems: dict[str, str]
    checkpoint_at: float | None
    directory: Path


class Conditions(NamedTuple):
    """How the server is at the moment of asking: its open `sources`, asked on the event loop; its
    `record`, asked on a thread; and how the messages of its `webhook` go."""

    sources: Callable[[], Sequence[SourceCondition]]
    record: Callable[[], RecordCondition]
    webhook: Callable[[], WebhookHealth]


class Others(NamedTuple):
    """The other `processes` on this state, whose calls are shown and ended, too; the `gates` of the
    state, its time `now`, and the id of this gate, `own`, empty where gates do not share it;
    otherwise the `figures` of other gates."""

    processes: OtherProcesses
    gates: GateStore
    now: Callable[[], float]
    own: str
    figures: GateFigures


class Now:
    """What an operator may see of the present."""

    def __init__(
        self,
        gateway: Gateway,
        figures: CallFigures,
        index: ActivityIndex,
        approvals: Approvals,
        conditions: Conditions,
        note_done: Note,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.others: Others | None = None
        self._gateway = gateway
        self._figures = figures
        self._index = index
        self._approvals = approvals
        self._conditions = conditions
        self._note_done = note_done
        self._clock = clock
        self._watched: dict[str, float] = {}
        self._read_to = 0
        self._pending: tuple[int, ...] = ()
        self._caught_up_at: float | None = None
        self._catching_up: asyncio.Task[None] | None = None

    async def show(self, query: dict[str, str], signed_in: SignedIn) -> dict[str, Any]:
        """All of it; from now on the session's stream has the calls under way.

        Raises: TidegateError ARGUMENT_INVALID, STATE_FAILED.
        """
        span = query.get("range", "hour")
        if span not in ("hour", "day"):
            raise TidegateError(Code.ARGUMENT_INVALID, "`range` is hour or day")
        self._watched = {each: at for each, at in self._watched.items() if at > self._clock()}
        self._watched[signed_in.session.id] = self._clock() + WATCHED_S
        self._catch_up()
        if self.others is not None:
            await self.others.processes.watch()
            if self.others.own:
                await self.others.figures.ask(span)
        seen = [each for each in self._conditions.sources() if signed_in.may("viewer", each.name)]
        record = await asyncio.to_thread(self._conditions.record)
        figures = await self._series(span, query.get("source", ""), signed_in)
        free = await asyncio.to_thread(_free_bytes, record.directory)
        return {
            **self.calls(signed_in),
            "figures": figures,
            "sources": [
                {**each._asdict(), "source": None, **source_fields(each.name, each.source)}
                for each in sorted(seen, key=_urgency)[:MOST_LISTED_SOURCES]
            ],
            "record": {
                "problems": _problems(record, signed_in),
                "checkpoint_at": record.checkpoint_at,
                "free_bytes": free,
            },
            "webhook": msgspec.to_builtins(self._conditions.webhook()),
            "gates": await self._gates(signed_in),
        }

    async def _gates(self, signed_in: SignedIn) -> list[dict[str, Any]]:
        """The gates on the state, for those who may see all sources: they name machines."""
        others = self.others
        if others is None or not others.own or not holds(signed_in.operator.roles, "viewer", None):
            return []
        found = await read_state(others.gates.list)
        return gate_rows(found, others.own, others.now(), others.processes.answering())

    # Calls under way

    def is_watched(self, signed_in: SignedIn) -> bool:
        """Whether a page of the session shows Now."""
        return self._watched.get(signed_in.session.id, 0.0) > self._clock()

    def calls(self, signed_in: SignedIn) -> dict[str, Any]:
        """The calls under way that the operator may see, the oldest first. On the event loop."""
        found, more = self._gateway.running.oldest(MOST_CALLS, partial(_may_see, signed_in))
        if self.others is not None:
            calls, besides = self.others.processes.calls()
            found += [each for each in calls if _may_see(signed_in, each.actor, each.source)]
            found.sort(key=lambda each: each.since)
            more += max(0, len(found) - MOST_CALLS)
            if holds(signed_in.operator.roles, "viewer", None):
                more += besides
        return {"calls": [_shown(each, signed_in) for each in found[:MOST_CALLS]], "more": more}

    async def cancel(self, id: str, signed_in: SignedIn, address: str) -> dict[str, Any]:
        """End a call, of whichever process. Works also when it cannot be put on record.

        Raises: TidegateError ARGUMENT_INVALID if there is none, POLICY_DENIED, STATE_FAILED if the
        process that runs it cannot be reached.
        """
        call = here = self._gateway.running.find(id)
        if here is None and self.others is not None:
            call = self.others.processes.find(id)
        if call is None or not _may_see(signed_in, call.actor, call.source):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "The call has ended.",
                hint="Activity shows what came of it.",
            )
        if not _may_cancel(call, signed_in):
            where = "" if call.source is None else f" on {call.source.name}"
            raise TidegateError(
                Code.POLICY_DENIED,
                f"You may see calls{where}, but not end them.",
                hint="Ask an admin for the role approver there.",
            )
        details = {
            "call": call.id,
            "source": "" if call.source is None else call.source.name,
            "caller": call.actor.id,
            "caller_name": call.actor.name,
            "address": address,
        }
        shown = {name: value for name, value in details.items() if value}
        if here is not None:
            self._gateway.running.cancel(id)
        elif self.others is not None:
            await self.others.processes.cancel(id)
        await change_state(self._note_done, "call.cancelled", signed_in.actor_id, shown)
        return {"id": id, "state": "cancelling"}

    # Figures

    async def _series(self, span: Span, source: str, signed_in: SignedIn) -> dict[str, Any]:
        everything = holds(signed_in.operator.roles, "viewer", None)
        if source and not signed_in.may("viewer", source):
            raise TidegateError(Code.ARGUMENT_INVALID, f"There is no source {source[:64]}")

        def is_visible(name: str) -> bool:
            if source:
                return name == source
            return everything or (name not in ("", OTHERS) and signed_in.may("viewer", name))

        complete = self._caught_up_at is not None
        first, steps = self._figures.steps(span)
        missing: list[str] = []
        if self.others is not None and self.others.own:
            answered, all_of_them = self.others.figures.add_to(span, first, steps)
            missing = await self._missing(self.others, answered)
            complete = complete and all_of_them
        found = await asyncio.to_thread(series, span, first, steps, is_visible)
        spans = await read_state(self._approvals.spans, float(found.since))
        waiting = [0] * len(found.calls)
        for name, begin, end in spans:
            if not is_visible(name):
                continue
            last = len(waiting) - 1 if end is None else int(end - found.since) // found.step_s
            for step in range(
                max(0, int(begin - found.since) // found.step_s), min(last, len(waiting) - 1) + 1
            ):
                waiting[step] += 1
        return {
            **msgspec.to_builtins(found),
            "waiting": waiting,
            "complete": complete,
            "missing": missing if everything else [],
        }

    async def _missing(self, others: Others, answered: frozenset[str]) -> list[str]:
        """The places of the gates that serve, and have not sent their figures. Raises:
        TidegateError STATE_FAILED."""
        gates = await read_state(others.gates.list)
        found = serving_elsewhere(gates, others.own, others.now())
        return [each.place for each in found if each.id not in answered]

    async def complete(self) -> bool:
        """Count what the index has, for at most `_CATCH_UP_S`; whether that is all by now."""
        self._catch_up()
        if self._catching_up is not None:
            await asyncio.wait([self._catching_up], timeout=_CATCH_UP_S)
        return self._caught_up_at is not None

    def _catch_up(self) -> None:
        """Begin to count what the index has of earlier runs and of other processes."""
        running = self._catching_up is not None and not self._catching_up.done()
        at = self._caught_up_at
        if running or (at is not None and 0 <= self._clock() - at < _CATCH_UP_S):
            return
        self._catching_up = asyncio.get_running_loop().create_task(self._count_others())

    async def _count_others(self) -> None:
        try:
            await asyncio.to_thread(self._index.update)
            counts = await asyncio.to_thread(
                partial(
                    count_calls,
                    self._index,
                    self._clock() - _DAY_S,
                    self._read_to,
                    self._pending,
                    own=self._gateway.run_id,
                    minutes_since=self._clock() - 2 * _HOUR_S,
                )
            )
        except TidegateError:
            return  # an index that cannot be read is read at the next look
        rows = [
            Counted(int(minute), str(source), cast("Counting", ending), int(place), int(calls))
            for minute, source, ending, place, calls in counts.rows
        ]
        for begin in range(0, len(rows), _AT_ONCE):
            self._figures.add(rows[begin : begin + _AT_ONCE])
            await asyncio.sleep(0)
        self._read_to, self._pending = counts.newest, counts.pending
        self._caught_up_at = self._clock()


def _problems(record: RecordCondition, signed_in: SignedIn) -> dict[str, str]:
    """What fails; why, which may name places of the machine, for those who may see all."""
    if holds(signed_in.operator.roles, "viewer", None):
        return record.problems
    return dict.fromkeys(record.problems, "see the log of the server")


def _free_bytes(directory: Path) -> int | None:
    try:
        return free_bytes(directory)
    except OSError:
        return None


def _urgency(condition: SourceCondition) -> tuple[int, str]:
    return {"error": 0, "connecting": 1, "connected": 2}.get(condition.status, 3), condition.name


def _may_see(signed_in: SignedIn, actor: Actor, source: Source | None) -> bool:
    """Whether the operator has a role on the source, or itself or a token of its makes the call."""
    if signed_in.actor_id == actor.id or signed_in.operator.name == actor.owner:
        return True
    return holds(signed_in.operator.roles, "viewer", None if source is None else source.name)


def _is_own(call: RunningCall, signed_in: SignedIn) -> bool:
    return signed_in.actor_id == call.actor.id or signed_in.operator.name == call.actor.owner


def _may_cancel(call: RunningCall, signed_in: SignedIn) -> bool:
    name = None if call.source is None else call.source.name
    return _is_own(call, signed_in) or holds(signed_in.operator.roles, "approver", name)


def _shown(call: RunningCall, signed_in: SignedIn) -> dict[str, Any]:
    source = call.source
    hides = _hides(source, signed_in) and call.actor.id != signed_in.actor_id
    return {
        "id": call.id,
        "actor_name": call.actor.name,
        "client": call.client,
        "address": call.address,
        "surface": call.surface,
        "tool": call.tool,
        "request": call.request,
        "source": None if source is None else source_fields(source.name, source),
        "statement": "" if hides else call.statement,
        "withheld": hides,
        "effect": call.effect,
        "state": call.state,
        "since": call.since,
        "rows": call.rows,
        "own": _is_own(call, signed_in),
        "may_cancel": _may_cancel(call, signed_in),
    }


def _hides(source: Source | None, signed_in: SignedIn) -> bool:
    """Whether statements on the source are for approvers alone."""
    if source is None or signed_in.may("approver", source.name):
        return False
    return hides_something(actor_of(signed_in), source)
