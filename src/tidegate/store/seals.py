"""Seals the rows that give rights, and finds those that no gate has sealed.

Within the transaction that changes rows they are locked, compared with their seals, changed, and
sealed again, so that a gate never seals what it has not made. A row without its seal is as if it
were not there. Where rows narrow rights (budgets), one that is missing ends the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Literal

from tidegate.errors import Code, TidegateError
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.held_rows import Dialect, Held, Row, Touched
from tidegate.store.seal_faults import Fault, all_removed, describe, fault_in, mac_in
from tidegate.store.seal_memory import SealMemory
from tidegate.store.sealed_lists import (
    MEANING,
    PARTS,
    SealedArea,
    SealedList,
    SealKeys,
    name_of,
    part_of,
    same,
)
from tidegate.store.seen_lists import SeenLists, doubt

CLUSTER = "cluster"
"""The area of the row that says by which key, and in which life of the state, rows are sealed."""
_TRIES = 4
_MOST_FAULTS = 100
_NARROWING: frozenset[SealedArea] = frozenset({"budgets"})
_ORDER: dict[SealedArea, str] = {"approvals": "serial", "tokens": "serial"}
"""In which order rows are locked, where it is not that of their keys: all do it in the same one."""


class Seals:
    """The seals of one state. Without a key it seals nothing, and all rows count."""

    def __init__(self, dialect: Dialect, key: ClusterKey | None, memory: SealMemory) -> None:
        self._dialect = dialect
        self._key = key
        self._keys: SealKeys | None = None
        self._life = ""
        self._made: tuple[int, str] | None = None
        self._memory = memory
        self._seen = SeenLists()
        self._faults: dict[tuple[SealedArea, str], Fault] = {}
        self._lock = Lock()
        self.tell: Callable[[str], None] = lambda _: None
        """Is given, once, each row that is refused."""

    @property
    def has_key(self) -> bool:
        """Whether there is a key to seal with."""
        return self._key is not None

    @property
    def is_active(self) -> bool:
        """Whether rows are sealed."""
        return self._keys is not None

    def secret(self, name: str) -> bytes | None:
        """32 bytes of that name that all gates share in this life; None without a key."""
        return None if self._key is None else self._key.derive("shared", self._life, name)

    def concerns(self) -> tuple[str, ...]:
        """The rows that are refused, for people. From memory."""
        with self._lock:
            return tuple(describe(*place, fault) for place, fault in self._faults.items())

    def forget_numbers(self) -> None:
        """The state is on another server, which may lack the last changes: lists may be older."""
        self._memory.forget_numbers()
        self._seen.leave()

    def doubt_lost(self, connection: Any) -> None:
        """Within a transaction on a new server, have rows count as absent that this process has
        seen changed or removed on the former one, and whose change is not here. After the COMMIT
        comes `forget_lost`. Raises: TidegateError STATE_FAILED."""
        keys, has_doubts = self._keys, False
        if keys is None:
            return
        for (area, part), seen in self._seen.left():
            found = self._read_list(connection, area, part, self._dialect.lock)
            made = None if found is None else doubt(area, seen, found)
            if made is not None:
                self._update(connection, keys, (area, part), made)
                has_doubts = True
        if has_doubts:
            self.count(connection)

    def forget_lost(self) -> None:
        """What `doubt_lost` has made is committed."""
        self._seen.forget_left()

    def settle(self, connection: Any, *, is_kept: bool) -> None:
        """A transaction has ended in which rows may have been sealed."""
        self._memory.settle(connection, is_kept=is_kept)

    # The beginning

    def open(self, connection: Any) -> None:
        """Begin within a transaction: an empty state is sealed by the key, another one must have
        been. Raises: TidegateError CONFIG_INVALID for another key, for a state whose rows are not
        sealed, or were and there is no key; STATE_FAILED for one that was put back.
        """
        rows = self._cluster_rows(connection)
        if self._key is None:
            if rows:
                raise _refused(
                    "The rows of this state are sealed, and this gate has no key of it.",
                    "Name the key with the setting `state_key`, as at the other gates.",
                    Code.CONFIG_INVALID,
                )
            return
        if not rows:
            # One that this gate has seen sealed was emptied: also of budgets, which narrow rights.
            if self._memory.cluster or self._has_rows(connection):
                raise _refused(
                    "The rows of this state are not sealed by the key.",
                    "See that its tokens, sources, operators and budgets are yours, then run"
                    " `tidegate state seal`.",
                    Code.CONFIG_INVALID,
                )
            self.seal_all(connection)  # `begin_new_life` comes after the commit
            return
        life = self._life_of(*rows[0])
        if life is None:
            raise _refused(
                "The rows of this state are sealed by another key than that of this gate.",
                "Use the same `state_key` at all gates.",
                Code.CONFIG_INVALID,
            )
        self._begin(*life)

    def _life_of(self, number: int, body: bytes, mac: bytes) -> tuple[int, str] | None:
        """The number and the name of the life in the row that says so; None under another key."""
        if self._key is None:
            return None
        check = SealKeys(self._key, "").read(CLUSTER, 0, number, (bytes(body), bytes(mac)))
        return None if check is None else (number, check.macs["life"].hex())

    def _cluster_rows(self, connection: Any) -> list[Row]:
        table, mark = f"{self._dialect.prefix}seals", self._dialect.mark
        sql = f"SELECT number, body, mac FROM {table} WHERE area = {mark}"
        return self._dialect.run(connection, sql, (CLUSTER,))

    def seal_all(self, connection: Any) -> int:
        """Seal all rows as they are, and begin another life; how many rows. Within a transaction in
        which no one else changes them."""
        if self._key is None:
            raise _refused(
                "There is no key of this state.", "Name it with `state_key`.", Code.CONFIG_INVALID
            )
        run, prefix, mark = self._dialect.run, self._dialect.prefix, self._dialect.mark
        had = run(
            connection, f"SELECT max(number) FROM {prefix}seals WHERE area = {mark}", (CLUSTER,)
        )
        number = max(had[0][0] or 0, self._memory.cluster) + 1
        # Higher than those of before, so that gates which run read all lists again.
        highest = run(connection, f"SELECT max(number) FROM {prefix}seals", ())
        first = max(highest[0][0] or 0, self._memory.highest) + 1
        life = self._memory.new_life()
        run(connection, f"DELETE FROM {prefix}seals", ())
        made = SealedList(number, {"life": bytes.fromhex(life)})
        self._insert(connection, SealKeys(self._key, ""), CLUSTER, 0, made)
        keys = SealKeys(self._key, life)
        sealed = 0
        for area, columns in MEANING.items():
            macs: list[dict[str, bytes]] = [{} for _ in range(PARTS)]
            for row in run(connection, f"SELECT {', '.join(columns)} FROM {prefix}{area}", ()):
                name = name_of(row[0])
                macs[part_of(name)][name] = keys.row(area, row)
                sealed += 1
            for part, each in enumerate(macs):
                self._insert(connection, keys, area, part, SealedList(first, each))
        self.count(connection)
        self._made = number, life
        return sealed

    def count(self, connection: Any) -> None:
        """Within a transaction, have all gates read again what each topic (`store/versions.py`)
        holds."""
        run, table = self._dialect.run, f"{self._dialect.prefix}generations"
        # In the order in which transactions count, so that no two wait for each other.
        run(connection, f"SELECT area FROM {table} ORDER BY area{self._dialect.lock}", ())
        run(connection, f"UPDATE {table} SET value = value + 1", ())

    def begin_new_life(self) -> None:
        """What `seal_all` has made is committed: rows are sealed from now on."""
        if self._made is not None:
            self._begin(*self._made)
            self._made = None

    def _begin(self, number: int, life: str) -> None:
        if not self._memory.begin(number, life):
            raise _refused(
                "The state was put back to before its rows were sealed again.",
                "Restore the newer one, or run `tidegate state seal`.",
                Code.STATE_FAILED,
            )
        if self._key is not None:
            self._life, self._keys = life, SealKeys(self._key, life)
            self._seen.clear()

    def _has_rows(self, connection: Any) -> bool:
        prefix = self._dialect.prefix
        return any(
            self._dialect.run(connection, f"SELECT 1 FROM {prefix}{area} LIMIT 1", ())
            for area in MEANING
        )

    def _insert(
        self, connection: Any, keys: SealKeys, area: str, part: int, made: SealedList
    ) -> None:
        marks = ", ".join([self._dialect.mark] * 5)
        self._dialect.run(
            connection,
            f"INSERT INTO {self._dialect.prefix}seals (area, part, number, body, mac)"
            f" VALUES ({marks})",
            (area, part, made.number, *keys.write(area, part, made)),
        )

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
        keys, run, table = self._keys, self._dialect.run, f"{self._dialect.prefix}{area}"
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
            lists, faults = self._read_lists(connection, area)
            keys = self._keys or keys  # another life may have begun
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
            if not self._has_news(area, faults):
                break
        self._note(area, faults, names, is_whole=is_whole)
        if faults and area in _NARROWING:
            raise _refused(
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
        if self._keys is None or not names:
            return frozenset()
        lists = {**self._seen.last(area), **self._read_lists(connection, area)[0]}
        return frozenset(name for name in names if mac_in(lists, name) is not None)

    def _read_lists(
        self, connection: Any, area: SealedArea
    ) -> tuple[dict[int, SealedList], dict[str, Fault]]:
        """The lists of an area as they are now, and those that do not count."""
        run, table, mark = self._dialect.run, f"{self._dialect.prefix}seals", self._dialect.mark
        numbers = dict(
            run(connection, f"SELECT part, number FROM {table} WHERE area = {mark}", (area,))
        )
        lists: dict[int, SealedList] = {}
        faults: dict[str, Fault] = {}
        for part in range(PARTS):
            known = self._seen.get((area, part))
            number = numbers.get(part, -1)
            if known is None or known.number != number or not self._memory.see(area, part, number):
                known = self._read_list(connection, area, part)
            if known is None:
                faults[f"list {part}"] = "list"
            else:
                lists[part] = known
        return lists, faults

    def _read_list(
        self, connection: Any, area: SealedArea, part: int, lock: str = ""
    ) -> SealedList | None:
        table, mark = f"{self._dialect.prefix}seals", self._dialect.mark
        sql = f"SELECT number, body, mac FROM {table} WHERE area = {mark} AND part = {mark}{lock}"
        for _ in range(_TRIES):
            rows = self._dialect.run(connection, sql, (area, part))
            if not rows or self._keys is None:
                return None
            number, body, mac = rows[0]
            found = self._keys.read(area, part, number, (bytes(body), bytes(mac)))
            if found is None:
                if not self._follow_life(connection):
                    return None
                continue
            # Another thread may have seen the next one since this one was read.
            if self._memory.see(area, part, number):
                if not lock:
                    self._seen.read((area, part), found)
                return found
        return None

    def _follow_life(self, connection: Any) -> bool:
        """Whether the state was sealed again by a holder of the key while this process ran."""
        rows = self._cluster_rows(connection)
        life = self._life_of(*rows[0]) if rows else None
        if life is None or life[0] <= self._memory.cluster:
            return False
        self._begin(*life)
        return True

    # Changing

    @contextmanager
    def changing(self, connection: Any, *touched: Touched) -> Generator[Held, None, None]:
        """Within a transaction, change rows: those of which a condition holds are locked, and
        sealed again at the end if they were sealed. Raises: TidegateError STATE_FAILED."""
        held = Held(is_active=self._keys is not None)
        if self._keys is None:
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
            lists, faults = self._read_lists(connection, area) if rows else ({}, {})
            for row in rows:
                name, mac = name_of(row[0]), self._keys.row(area, row)
                if mac_in(lists, name) == mac:
                    held.keep(each, row, mac)
                else:
                    faults[name] = fault_in(lists, name)
            self._note(area, faults)
        yield held
        for area in MEANING:  # in one order
            self._renew(connection, area, held)

    def _renew(self, connection: Any, area: SealedArea, held: Held) -> None:
        """Seal rows as the transaction has left them. Raises: TidegateError STATE_FAILED if they
        are not what the gate wrote."""
        keys = self._keys
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
            self._rewrite(connection, keys, area, part, changed[part])

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

    def _rewrite(
        self,
        connection: Any,
        keys: SealKeys,
        area: SealedArea,
        part: int,
        changed: dict[str, bytes | None],
    ) -> None:
        had = self._read_list(connection, area, part, self._dialect.lock)
        if had is None:
            self._note(area, {f"list {part}": "list"})
            raise _refused(
                f"The seals of `{area}` in the state were changed past the gates.",
                "See what the area holds, then run `tidegate state seal`.",
                Code.STATE_FAILED,
            )
        macs = {**had.macs, **changed}
        made = SealedList(
            had.number + 1, {name: mac for name, mac in macs.items() if mac is not None}
        )
        self._update(connection, keys, (area, part), made)

    def _update(
        self, connection: Any, keys: SealKeys, place: tuple[SealedArea, int], made: SealedList
    ) -> None:
        table, mark = f"{self._dialect.prefix}seals", self._dialect.mark
        self._dialect.run(
            connection,
            f"UPDATE {table} SET number = {mark}, body = {mark}, mac = {mark}"
            f" WHERE area = {mark} AND part = {mark}",
            (made.number, *keys.write(*place, made), *place),
        )
        self._seen.write(place, made)
        self._memory.write(connection, *place, made.number)

    # Faults

    def _has_news(self, area: SealedArea, faults: dict[str, Fault]) -> bool:
        return any(self._faults.get((area, name)) != fault for name, fault in faults.items())

    def _note(
        self,
        area: SealedArea,
        faults: dict[str, Fault],
        good: Collection[str] = (),
        *,
        is_whole: bool = False,
    ) -> None:
        """Keep what is refused, and forget it of the `good` rows; a check of the whole area
        replaces what was known of it."""
        with self._lock:
            news: list[tuple[str, Fault]] = [
                (name, fault)
                for name, fault in faults.items()
                if (area, name) not in self._faults and len(self._faults) < _MOST_FAULTS
            ]
            for place in [each for each in self._faults if each[0] == area]:
                if place[1] in good or (is_whole and place[1] not in faults):
                    del self._faults[place]
            for name, fault in news:
                self._faults[area, name] = fault
        for name, fault in news:
            self.tell(describe(area, name, fault))


def foreign_values(area: SealedArea) -> TidegateError:
    """The refusal of what the database makes of a statement of a gate."""
    return _refused(
        f"The state's database keeps other values in `{area}` than were written.",
        "Search its tables for triggers and rules that are not Tidegate's.",
        Code.STATE_FAILED,
    )


def _refused(
    message: str, hint: str, code: Literal[Code.STATE_FAILED, Code.CONFIG_INVALID]
) -> TidegateError:
    return TidegateError(code, message, hint=hint)
