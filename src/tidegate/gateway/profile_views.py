"""What was learned of the columns of one source's tables, kept by what its callers may see.

No one learns from a sample of rows that it may not see: callers share a view only if the database
takes them for the same account, the same rules bind them, and both are agents or both persons.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.profiles import Place, TableProfile
from tidegate.model.schema import ColumnInfo, Table

RETRY_S = 2.0
"""How long no table is sampled after a passing fault; each further fault doubles it."""
FRESH_S = 900.0
"""How long a profile is used. Rows change; what they look like seldom does."""
MOST_TABLES = 1_000
"""Tables of one view that are kept."""
MOST_VIEWS = 32
"""Views of one source that are kept."""

Columns = tuple[ColumnInfo, ...]
"""What a profile is of: another table of the same name has another profile."""

_REFUSALS = ("policy.", "approval.", "operator.", "auth.")
"""Codes of what stays as it is until someone changes the rules."""

_SAMPLED_KINDS = ("table", "materialized view")

_OF_TABLE = (Code.POLICY_MASKED, Code.POLICY_TABLE)
"""Refusals that can be of one table alone: a row filter fits one of two tables of the same name."""
_MOST_REFUSED = 10
"""Tables refused in turn after which the others are taken for refused as well."""

SampleTable = Callable[[Table], Awaitable[TableProfile]]
CompareJoins = Callable[[Table, TableProfile], Awaitable[TableProfile]]
"""Adds to what a sample says of the table's columns which likely joins its values confirm."""


class _Wanted(NamedTuple):
    """A table that waits to be sampled, or for its joins to be compared, and the callers that wait
    for it."""

    table: Table
    done: asyncio.Future[None]
    sample: SampleTable
    compare: CompareJoins | None


class _Known(NamedTuple):
    """What was learned of a table."""

    columns: Columns
    learned_at: float
    profile: TableProfile
    joined: bool


class ProfileView:
    """What callers know who see the same. Its tables are sampled one after another, those first for
    which a caller waits; the joins of tables are compared when the values of all are known."""

    def __init__(self) -> None:
        self._known: dict[Place, _Known] = {}
        self._waiting: OrderedDict[Place, _Wanted] = OrderedDict()
        self._uncompared: OrderedDict[Place, _Wanted] = OrderedDict()
        self._urgent: set[Place] = set()
        self._task: asyncio.Task[None] | None = None
        self._refused_until = 0.0
        self._pause_s = RETRY_S
        self._settled: tuple[Sequence[Table], bool] | None = None
        self._settled_until = 0.0
        self._refused_in_turn = 0

    def known(self, tables: Iterable[Table]) -> dict[Place, TableProfile]:
        """The profiles of those of the tables that were sampled."""
        found: dict[Place, TableProfile] = {}
        for table in tables:
            place = table.schema, table.name
            entry = self._known.get(place)
            if entry is not None and entry.columns == table.columns:
                found[place] = entry.profile
        return found

    def is_waiting(self, table: Table) -> bool:
        """Whether the table is about to be sampled."""
        return (table.schema, table.name) in self._waiting

    def want(
        self,
        tables: Iterable[Table],
        awaited: int,
        sample: SampleTable,
        compare: CompareJoins | None = None,
        *,
        others: Sequence[Table] = (),
    ) -> list[asyncio.Future[None]]:
        """Queue the tables that are not known or no longer fresh, the first `awaited` in front and
        `others` after them. With `compare`, what was learned without is not enough.

        Returns what to wait for: one future for each of the awaited.
        """
        now = time.monotonic()
        if now < self._refused_until:
            return []
        front: list[asyncio.Future[None]] = []
        places: list[Place] = []
        oldest = now
        all_fresh = True
        joined = compare is not None
        if self._are_settled(others, joined, now):
            # Of a thousand tables that are known, a search reads those that it shows.
            others = ()
        for number, table in enumerate(chain(tables, others)):
            if table.kind not in _SAMPLED_KINDS:
                continue
            place = table.schema, table.name
            entry = self._known.get(place)
            if (
                entry is not None
                and now - entry.learned_at < FRESH_S
                and entry.columns == table.columns
            ):
                if entry.joined or not joined:
                    oldest = min(oldest, entry.learned_at)
                    continue
                queue = self._uncompared
            else:
                queue = self._waiting
            all_fresh = False
            waiting = queue.get(place)
            if waiting is None:
                if len(self._waiting) + len(self._uncompared) >= MOST_TABLES:
                    break
                future = asyncio.get_running_loop().create_future()
                waiting = queue[place] = _Wanted(table, future, sample, compare)
            elif joined and waiting.compare is None:
                waiting = queue[place] = waiting._replace(compare=compare)
            if number < awaited:
                front.append(waiting.done)
                places.append(place)
        for place in reversed(places):
            self._urgent.add(place)
            for queue in (self._waiting, self._uncompared):
                if place in queue:
                    queue.move_to_end(place, last=False)
        if others and all_fresh:
            self._settled, self._settled_until = (others, joined), oldest + FRESH_S
        if not all_fresh and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._fill())
        return front

    def _are_settled(self, tables: Sequence[Table], joined: bool, now: float) -> bool:
        """Whether these very tables were all found fresh, and nothing has changed since."""
        settled = self._settled
        return (
            settled is not None
            and settled[0] is tables
            and (settled[1] or not joined)
            and now < self._settled_until
        )

    def _next(self) -> tuple[OrderedDict[Place, _Wanted], Place] | None:
        """What comes next: a table for which a caller waits, values before joins."""
        queues = [queue for queue in (self._waiting, self._uncompared) if queue]
        firsts = [(queue, next(iter(queue))) for queue in queues]
        urgent = [(queue, place) for queue, place in firsts if place in self._urgent]
        return next(iter(urgent or firsts), None)

    async def _fill(self) -> None:
        try:
            while (found := self._next()) is not None:
                queue, place = found
                wanted = queue[place]
                try:
                    await self._learn(place, wanted, sampled=queue is self._uncompared)
                except TidegateError as error:
                    # The caller may not, or the source is gone: it is the same for the others.
                    self._refused_until = time.monotonic() + self.pause_after(error)
                    return
                self._pause_s = RETRY_S
        finally:
            for wanted in (*self._waiting.values(), *self._uncompared.values()):
                wanted.done.cancel()
            self._waiting.clear()
            self._uncompared.clear()
            self._urgent.clear()

    async def _learn(self, place: Place, wanted: _Wanted, *, sampled: bool) -> None:
        """Sample the table, or compare its joins if it was `sampled`. Raises: TidegateError for
        what is the same for every table."""
        table, known = wanted.table, self._known.get(place)
        learned_at, profile = time.monotonic(), TableProfile()
        if sampled and known is not None:
            learned_at, profile = known.learned_at, known.profile
        try:
            if not sampled:
                profile = await wanted.sample(table)
            elif wanted.compare is not None:
                profile = await wanted.compare(table, profile)
        except TidegateError as error:
            if not self._is_of_table(error):
                raise
        else:
            self._refused_in_turn = 0
        self._settled = None
        if len(self._known) >= MOST_TABLES:
            del self._known[next(iter(self._known))]
        self._known.pop(place, None)
        self._known[place] = _Known(table.columns, learned_at, profile, joined=sampled)
        latest = (self._uncompared if sampled else self._waiting).pop(place, wanted)
        if not sampled and latest.compare is not None:
            self._uncompared[place] = latest
            self._uncompared.move_to_end(place, last=place not in self._urgent)
            return
        self._urgent.discard(place)
        if not latest.done.done():
            latest.done.set_result(None)

    def _is_of_table(self, error: TidegateError) -> bool:
        """Whether other tables may be read although this one failed."""
        if error.code in _OF_TABLE:
            self._refused_in_turn += 1
            return self._refused_in_turn < _MOST_REFUSED
        return error.code.value.partition(".")[0] in ("sql", "limit")

    def pause_after(self, error: TidegateError) -> float:
        """Seconds without samples: long after a refusal, growing while a fault lasts."""
        if error.code.value.startswith(_REFUSALS):
            return FRESH_S
        pause, self._pause_s = self._pause_s, min(FRESH_S, self._pause_s * 2)
        return pause

    async def settle(self) -> None:
        """Wait until everything that is queued was sampled."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def stop(self) -> None:
        """End the sampling."""
        if self._task is not None:
            self._task.cancel()


ViewKey = tuple[str, Any, DataRules | None, Any]
"""Whether the caller is a person, who it is to the database, what is hidden from it, and where its
statements run."""


class ProfileViews:
    """The views of one source."""

    def __init__(self) -> None:
        self._views: OrderedDict[ViewKey, ProfileView] = OrderedDict()

    def of(self, key: ViewKey) -> ProfileView:
        """The view of callers with this key."""
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = ProfileView()
            if len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)[1].stop()
        else:
            self._views.move_to_end(key)
        return view

    async def settle(self) -> None:
        """Wait until everything that is queued was sampled."""
        for view in list(self._views.values()):
            await view.settle()

    def stop(self) -> None:
        """End all sampling and forget what was learned."""
        for view in self._views.values():
            view.stop()
        self._views.clear()
