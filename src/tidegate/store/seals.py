"""Seals the rows that give rights, and finds those that no gate has sealed.

Within the transaction that changes rows they are locked, compared with their seals, changed, and
sealed again, so that a gate never seals what it has not made. A row without its seal is as if it
were not there. Where rows narrow rights (budgets), one that is missing ends the answer.

What a seal is: `sealed_lists.py`. The lists in the state: `kept_lists.py`. The key, and who may
begin: `seal_lives.py`. What this gate has seen: `seal_memory.py`, `seen_lists.py`.
Rows that give no right have a stamp (`stamps.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from tidegate.errors import Code
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.held_rows import Dialect, Held, Row, Touched
from tidegate.store.kept_lists import KeptLists
from tidegate.store.list_files import ListFiles
from tidegate.store.seal_faults import (
    Fault,
    Faults,
    all_removed,
    fault_in,
    foreign_values,
    mac_in,
    seals_refused,
)
from tidegate.store.seal_lives import OpenConnection, SealLives, count_all
from tidegate.store.seal_memory import SealMemory
from tidegate.store.sealed_lists import MEANING, SealedArea, name_of, part_of, same
from tidegate.store.stamps import Stamps

_TRIES = 4
_NARROWING: frozenset[SealedArea] = frozenset({"budgets"})
_ORDER: dict[SealedArea, str] = {"approvals": "serial", "tokens": "serial"}
"""In which order rows are locked, where it is not that of their keys: all do it in the same one."""


class Seals:
    """The seals of one state. Without a key it seals nothing, and all rows count."""

    def __init__(
        self,
        dialect: Dialect,
        key: ClusterKey | None,
        memory: SealMemory,
        files: ListFiles | None = None,
    ) -> None:
        self._dialect = dialect
        self._memory = memory
        self._faults = Faults()
        self._lives = SealLives(dialect, key, memory)
        self._lists = KeptLists(
            dialect, self._lives, memory, files or ListFiles(None), self._faults
        )
        self.stamps = Stamps(dialect, self._lives)
        """Of rows that give no right."""
        self._lives.stamp_all = self.stamps.stamp_all

    @property
    def is_active(self) -> bool:
        """Whether rows are sealed."""
        return self._lives.keys is not None

    def tell_by(self, tell: Callable[[str], None]) -> None:
        """Have `tell` given each row that is refused, once."""
        self._faults.tell = tell

    def concerns(self) -> tuple[str, ...]:
        """The rows that are refused, for people. From memory."""
        return self._faults.sentences()

    # The life of the state

    def open(self, reading: OpenConnection, sealing: OpenConnection) -> None:
        """As `SealLives.open`."""
        self._lives.open(reading, sealing)

    def check(self, connection: Any, tables: Collection[str]) -> None:
        """As `SealLives.check`."""
        self._lives.check(connection, tables)

    def secret(self, name: str) -> bytes | None:
        """32 bytes of that name that all gates share in this life; None without a key."""
        return self._lives.secret(name)

    def seal_all(self, connection: Any) -> int:
        """As `SealLives.seal_all`; after its COMMIT comes `begin_new_life`."""
        return self._lives.seal_all(connection)

    def begin_new_life(self) -> None:
        """What `seal_all` has made is committed: rows are sealed from now on."""
        self._lives.begin_new()

    def count(self, connection: Any) -> None:
        """Within a transaction, have all gates read all again."""
        count_all(self._dialect, connection)

    def use_once(self, connection: Any, name: str, until: float, now: float) -> bool:
        """As `KeptLists.use_once`; True without a key."""
        return self._lists.use_once(connection, name, until, now)

    def lock(self, connection: Any, key: str, until: float, now: float) -> None:
        """As `KeptLists.lock`; nothing without a key."""
        self._lists.lock(connection, key, until, now)

    def locked_until(self, connection: Any, key: str, now: float) -> float | None:
        """As `KeptLists.locked_until`."""
        return self._lists.locked_until(connection, key, now)

    def was_used(self, connection: Any, name: str, now: float) -> bool:
        """As `KeptLists.was_used`; False without a key."""
        return self._lists.was_used(connection, name, now)

    def sums(self) -> dict[str, int]:
        """As `SealMemory.sums`; none without a key."""
        return self._memory.sums() if self.is_active else {}

    def settle(self, connection: Any, *, is_kept: bool) -> None:
        """A transaction has ended in which rows may have been sealed."""
        self._memory.settle(connection, is_kept=is_kept)

    # Another server

    def forget_numbers(self) -> None:
        """As `KeptLists.forget_numbers`."""
        self._lists.forget_numbers()

    def doubt_lost(self, connection: Any) -> None:
        """As `KeptLists.doubt_lost`."""
        self._lists.doubt_lost(connection)

    def forget_lost(self) -> None:
        """What `doubt_lost` has made is committed."""
        self._lists.forget_lost()

    # Reading

    def select(
        self,
        connection: Any,
        area: SealedArea,
        columns: str,
        rest: str,
        values: Sequence[Any] = (),
        *,
        is_whole: bool = False,
    ) -> list[Row]:
        """The `columns` of sealed rows of an area; `is_whole`: `rest` keeps none away.

        Raises: TidegateError STATE_FAILED where a row that narrows rights is missing.
        """
        keys, run, table = self._lives.keys, self._dialect.run, f"{self._dialect.prefix}{area}"
        if keys is None:
            return run(connection, f"SELECT {columns} FROM {table} {rest}", values)
        meaning = MEANING[area]
        # Each column once: a view may give another value for it than the one that is checked.
        asked = list(dict.fromkeys((*meaning, *(wanted := columns.split(", ")))))
        places = [asked.index(each) for each in wanted]
        sql = f"SELECT {', '.join(asked)} FROM {table} {rest}"
        good: list[Row] = []
        names: set[str] = set()
        faults: dict[str, Fault] = {}
        for _ in range(_TRIES):
            rows = run(connection, sql, values)
            if not rows and not is_whole:
                return []
            # A change in between makes a difference, which is read again.
            lists, faults = self._lists.read_all(connection, area)
            keys = self._lives.keys or keys  # another life may have begun
            good, names = [], set[str]()
            for row in rows:
                name = name_of(row[0])
                if mac_in(lists, name) == keys.row(area, row[: len(meaning)]):
                    good.append(tuple([row[place] for place in places]))
                    names.add(name)
                else:
                    faults[name] = fault_in(lists, name)
            if is_whole:
                found = {name_of(row[0]) for row in rows}
                for each in lists.values():
                    faults.update(all_removed(each, found))
            if not self._faults.has_news(area, faults):
                break
        self._faults.note(area, faults, names, is_whole=is_whole)
        if faults and area in _NARROWING:
            raise seals_refused(
                f"Rows of `{area}` in the state were changed or removed past the gates, or were"
                " lost with a server.",
                "See what is there, put them right, then run `tidegate state seal`.",
                Code.STATE_FAILED,
            )
        return good

    def find(
        self, connection: Any, area: SealedArea, columns: str, name: str, value: Any
    ) -> list[Row]:
        """The `columns` of sealed rows with that value of a column under the MAC, whatever else the
        database takes for equal."""
        rest = f"WHERE {name} = {self._dialect.mark}"
        rows = self.select(connection, area, f"{columns}, {name}", rest, (value,))
        return [row[:-1] for row in rows if same(row[-1], value)]

    def listed(self, connection: Any, area: SealedArea, names: Collection[str]) -> frozenset[str]:
        """Those of the names that have an entry, or had where a list does not count now, whatever
        became of their rows; none without seals."""
        if not self.is_active or not names:
            return frozenset()
        lists = {**self._lists.last(area), **self._lists.read_all(connection, area)[0]}
        return frozenset(name for name in names if mac_in(lists, name) is not None)

    # Changing

    @contextmanager
    def changing(self, connection: Any, *touched: Touched) -> Generator[Held, None, None]:
        """Within a transaction, change rows: those of which a condition holds are locked, and
        sealed again at the end if they were sealed. Raises: TidegateError STATE_FAILED."""
        keys = self._lives.keys
        held = Held(is_active=keys is not None)
        if keys is None:
            yield held
            return
        run, prefix = self._dialect.run, self._dialect.prefix
        for each in touched:
            area, where, values, _ = each
            columns = MEANING[area]
            rows = run(
                connection,
                f"SELECT {', '.join(columns)} FROM {prefix}{area} WHERE {where}"
                f" ORDER BY {_ORDER.get(area, columns[0])}{self._dialect.lock}",
                values,
            )
            lists, faults = self._lists.read_all(connection, area) if rows else ({}, {})
            for row in rows:
                name, mac = name_of(row[0]), (self._lives.keys or keys).row(area, row)
                if mac_in(lists, name) == mac:
                    held.keep(each, row, mac)
                else:
                    faults[name] = fault_in(lists, name)
            self._faults.note(area, faults)
        yield held
        for area in MEANING:  # in one order
            self._renew(connection, area, held)

    def _renew(self, connection: Any, area: SealedArea, held: Held) -> None:
        """Seal rows as the transaction has left them. Raises: TidegateError STATE_FAILED if they
        are not what the gate wrote."""
        keys = self._lives.keys
        before, added = held.before.get(area, {}), held.added.get(area, [])
        wanted = [*before, *(key for key in added if key not in before)]
        if keys is None or not wanted:
            return
        after: dict[str, bytes] = {}
        for row in self._rows(connection, area, wanted):
            if self._dialect.is_foreign and not held.is_as_wanted(area, row):
                raise foreign_values(area)
            after[name_of(row[0])] = keys.row(area, row)
        was = {name_of(key): mac for key, mac in before.items()}
        changed: dict[int, dict[str, bytes | None]] = {}
        for name in map(name_of, wanted):
            if was.get(name) != after.get(name):
                changed.setdefault(part_of(name), {})[name] = after.get(name)
        # In one order, so that no two transactions wait for each other.
        for part in sorted(changed):
            self._lists.rewrite(connection, keys, (area, part), changed[part])

    def _rows(self, connection: Any, area: SealedArea, wanted: list[Any]) -> list[Row]:
        columns, mark = MEANING[area], self._dialect.mark
        found: list[Row] = []
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            found += self._dialect.run(
                connection,
                f"SELECT {', '.join(columns)} FROM {self._dialect.prefix}{area}"
                f" WHERE {columns[0]} IN ({', '.join([mark] * len(some))})",
                some,
            )
        return found
