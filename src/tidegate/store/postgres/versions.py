"""The counters of what has changed, the time of the database, and whether the state is still here:
what each reading of the state gives.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from weakref import WeakSet

from tidegate.errors import Code, TidegateError
from tidegate.store.postgres.connection import standby
from tidegate.store.postgres.database import Database
from tidegate.store.postgres.epochs import Epochs, Place
from tidegate.store.postgres.health import concerns_of
from tidegate.store.postgres.schema import KEPT, NEWEST, SYSTEM, TIMELINE, newer
from tidegate.store.versions import StateMoved, Topic, Versions

_LOOK = (
    "SELECT (SELECT json_object_agg(area, value) FROM tidegate.generations),"
    " moved_to, version, oldest_reader, extract(epoch FROM clock_timestamp())::float8,"
    " pg_is_in_recovery(), (SELECT json_object_agg(area, numbers) FROM"
    " (SELECT area, sum(number) AS numbers FROM tidegate.seals GROUP BY area) AS lists),"
    f" {SYSTEM}, CASE WHEN NOT pg_is_in_recovery() THEN {TIMELINE} END,"
    f" {KEPT} FROM tidegate.about"
)
_TOPICS: dict[str, Topic] = {
    "approvals": "approvals", "budgets": "budgets", "operators": "operators",
    "operator_sessions": "operators", "pairings": "pairings", "sources": "sources",
    "tokens": "tokens",
}  # fmt: skip
"""The topic that counts each change of a sealed area."""
_LOOK_BOUND_S = 2.0
_CONCERN_S = 10.0
_OPEN: WeakSet[PostgresVersions] = WeakSet()
"""Those of this process. What it changes itself counts at once, through whichever it changes it."""


class PostgresVersions:
    """The counters in a database, and what this process knows of them."""

    def __init__(self, database: Database, place: Path) -> None:
        """`place` is a file of this gate about the server of the state."""
        self._database = database
        self.known = Versions(self.read)
        self.epochs = Epochs(database, place)
        self._ahead_s: float | None = None
        self._took_s = float("inf")
        self.concerns: tuple[str, ...] = ()
        """What may lose changes that were kept, as of the last check of the standbys."""
        self._concerned_at = float("-inf")
        self._counted: tuple[Mapping[Topic, int], Mapping[str, int]] = {}, {}
        self._lower: Mapping[str, int] = {}
        self._hidden: dict[Topic, int] = {}
        database.learn = self.learn
        _OPEN.add(self)

    def now(self) -> float:
        """The time of the database in Unix seconds, which gates compare; their own clocks may
        differ. Asks the database once, and knows it from then on by each reading. Raises:
        TidegateError STATE_FAILED."""
        if self._ahead_s is None:
            self.read()
        return time.time() + (self._ahead_s or 0.0)

    def read(self) -> Mapping[Topic, int]:
        """The counters as they are now. Raises: TidegateError STATE_FAILED."""
        began, began_wall, seen = monotonic(), time.time(), self._database.seals.sums()
        with self._database.reading(_LOOK_BOUND_S) as connection:
            row = connection.row(_LOOK)
            if began - self._concerned_at > _CONCERN_S:
                self._concerned_at, self.concerns = began, concerns_of(connection)
        took_s = monotonic() - began
        if row is None:
            raise TidegateError(Code.STATE_FAILED, "The state's database holds no version of it.")
        counters, moved_to, version, oldest, their_time, is_standby, lists, *place = row
        if moved_to:
            raise StateMoved(str(moved_to))
        if oldest > NEWEST:
            raise newer(version, oldest)
        if is_standby:
            raise standby()
        self.epochs.follow(Place(*place))
        self._compare_clocks(their_time - (began_wall + took_s / 2), took_s)
        still = self._database.seals.sums()  # none of a server that was left
        sums: dict[str, int] = lists or {}
        lower = {
            area: sums.get(area, 0)
            for area, number in seen.items()
            if sums.get(area, 0) < min(number, still.get(area, 0))
        }
        self._compare_counters(counters, sums, lower)
        return self._with_hidden(counters)

    def _compare_counters(
        self,
        counters: Mapping[Topic, int],
        lists: Mapping[str, int],
        lower: Mapping[str, int],
    ) -> None:
        """Have all be read again where the seals of an area have changed and its counter has not:
        it was put back past the gates, to hide a change. The same where they are `lower` than this
        gate has seen: it names those that were put back. Raises: TidegateError STATE_FAILED."""
        (counted, seen), self._counted = self._counted, (counters, lists)
        was_lower, self._lower = self._lower, lower
        hidden: set[Topic] = set()
        for area, topic in _TOPICS.items():
            is_changed = area in seen and seen[area] != lists.get(area)
            is_hidden = is_changed and counted[topic] == counters[topic]
            if is_hidden or (area in lower and lower[area] != was_lower.get(area)):
                hidden.add(topic)
        if hidden:
            # Here it counts also where a trigger keeps the counter as it is.
            for topic in hidden:
                self._hidden[topic] = self._hidden.get(topic, 0) + 1
            with self._database.changing() as connection:
                self._database.seals.count(connection)

    def _with_hidden(self, found: Mapping[Topic, int]) -> Mapping[Topic, int]:
        hidden = self._hidden
        return {topic: number + hidden.get(topic, 0) for topic, number in found.items()}

    def learn(self, found: Mapping[Topic, int]) -> None:
        """Tell all of this process who have the same state open what it has changed."""
        for each in list(_OPEN):
            if each._database.is_same(self._database):
                each.known.learn(each._with_hidden(found))

    def close(self) -> None:
        """Read no more. Safe to call twice."""
        self.known.close()

    def _compare_clocks(self, ahead_s: float, took_s: float) -> None:
        """Keep by how much the database's clock is ahead. An answer that was quick says it best,
        and one that differs by more than it took says that a clock was set."""
        known = self._ahead_s
        if known is None or took_s <= self._took_s or abs(ahead_s - known) > took_s:
            self._ahead_s, self._took_s = ahead_s, took_s
        else:
            self._took_s *= 1.05  # so that a later answer counts, too: clocks drift
