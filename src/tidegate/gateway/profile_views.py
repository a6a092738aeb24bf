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

from tidegate.errors import TidegateError
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

SampleTable = Callable[[Table], Awaitable[TableProfile]]


class _Wanted(NamedTuple):
    """A table that waits to be sampled, and who waits for it. `joined`: `sample` compares values
    for joins."""

    table: Table
    done: asyncio.Future[None]
    sample: SampleTable
    joined: bool


class _Known(NamedTuple):
    """What was learned of a table."""

    columns: Columns
    learned_at: float
    profile: TableProfile
    joined: bool


class ProfileView:
    """What callers know who see the same: one queue of tables, sampled one after another."""

    def __init__(self) -> None:
        self._known: dict[Place, _Known] = {}
        self._waiting: OrderedDict[Place, _Wanted] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        self._refused_until = 0.0
        self._pause_s = RETRY_S
        self._settled: tuple[Sequence[Table], bool] | None = None
        self._settled_until = 0.0

    def known(self, tables: Iterable[Table]) -> dict[Place, TableProfile]:
        """The profiles of those of the tables that were sampled."""
        found: dict[Place, TableProfile] = {}
        for table in tables:
            place = table.schema, table.name
            entry = self._known.get(place)
            if entry is not None and entry.columns == table.columns:
                found[place] = entry.profile
        return found

    def want(
        self,
        tables: Iterable[Table],
        awaited: int,
        sample: SampleTable,
        *,
        joined: bool = False,
        others: Sequence[Table] = (),
    ) -> list[asyncio.Future[None]]:
        """Queue the tables that are not known or no longer fresh, the first `awaited` in front and
        `others` behind. `joined`: `sample` compares values for likely joins, so that what was
        learned without is not enough.

        Returns what to wait for: one future for each of the awaited.
        """
        now = time.monotonic()
        if now < self._refused_until:
            return []
        front: list[Place] = []
        oldest = now
        all_fresh = True
        if self._are_settled(others, joined, now):
            # Of a thousand tables that are known, a search looks at those that it shows.
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
                and (entry.joined or not joined)
            ):
                oldest = min(oldest, entry.learned_at)
                continue
            all_fresh = False
            waiting = self._waiting.get(place)
            if waiting is None:
                if len(self._waiting) >= MOST_TABLES:
                    break
                future = asyncio.get_running_loop().create_future()
                self._waiting[place] = _Wanted(table, future, sample, joined)
            elif joined and not waiting.joined:
                self._waiting[place] = waiting._replace(sample=sample, joined=True)
            if number < awaited:
                front.append(place)
        if others and all_fresh:
            self._settled, self._settled_until = (others, joined), oldest + FRESH_S
        for place in reversed(front):
            self._waiting.move_to_end(place, last=False)
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._fill())
        return [self._waiting[place].done for place in front]

    def _are_settled(self, tables: Sequence[Table], joined: bool, now: float) -> bool:
        """Whether these very tables were all found fresh, and nothing has changed since."""
        settled = self._settled
        return (
            settled is not None
            and settled[0] is tables
            and (settled[1] or not joined)
            and now < self._settled_until
        )

    async def _fill(self) -> None:
        try:
            while self._waiting:
                place, wanted = next(iter(self._waiting.items()))
                table = wanted.table
                try:
                    profile = await wanted.sample(table)
                except TidegateError as error:
                    if error.code.value.partition(".")[0] not in ("sql", "limit"):
                        # The caller may not, or the source is gone: it is the same for the others.
                        self._refused_until = time.monotonic() + self.pause_after(error)
                        return
                    profile = TableProfile()
                self._pause_s = RETRY_S
                self._settled = None
                if len(self._known) >= MOST_TABLES:
                    del self._known[next(iter(self._known))]
                self._known.pop(place, None)
                self._known[place] = _Known(table.columns, time.monotonic(), profile, wanted.joined)
                if self._waiting.get(place) == wanted:
                    del self._waiting[place]
                if not wanted.done.done():
                    wanted.done.set_result(None)
        finally:
            for wanted in self._waiting.values():
                wanted.done.cancel()
            self._waiting.clear()

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
