"""The lives of a sealed state: by which key its rows are sealed, since when, and what may begin it.

One row of the table of seals says so, under a MAC of the key. A person begins another life by
sealing all rows again; keys of seals hang on it, so those of a former life count no more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.held_rows import Dialect, Row
from tidegate.store.seal_faults import seals_refused
from tidegate.store.seal_memory import SealMemory
from tidegate.store.sealed_lists import (
    MEANING,
    PARTS,
    USED,
    SealedList,
    SealKeys,
    StampedArea,
    name_of,
    part_of,
)

CLUSTER = "cluster"
"""The area of the row that says by which key, and in which life of the state, rows are sealed."""
_STAMPED = "stamps"
"""The entry there that says that this life has stamps (`stamps.py`) and lists of what was used."""
_LATER: Mapping[str, StampedArea] = {"stamps of changes": "changes"}
"""Entries of what got stamps later."""
_ALL = (_STAMPED, *_LATER)

OpenConnection = Callable[[], AbstractContextManager[Any]]


class SealLives:
    """The life of one state, as this process knows it. Without a key there is none."""

    def __init__(self, dialect: Dialect, key: ClusterKey | None, memory: SealMemory) -> None:
        self._dialect = dialect
        self._key = key
        self._memory = memory
        self._made: tuple[int, str] | None = None
        self.life = ""
        """The name of this life; empty as long as rows are not sealed."""
        self.keys: SealKeys | None = None
        """Those of this life; None as long as rows are not sealed."""
        self.began: Callable[[], None] = lambda: None
        """Is called when another life has begun."""
        self.stamp_all: Callable[[Any, SealKeys, Sequence[StampedArea] | None], None]
        self.stamp_all = lambda _, __, ___: None
        """Stamps all rows as they are, of all areas or of some."""

    def secret(self, name: str) -> bytes | None:
        """32 bytes of that name that all gates share in this life; None without a key."""
        return None if self._key is None else self._key.derive("shared", self.life, name)

    def open(self, reading: OpenConnection, sealing: OpenConnection) -> None:
        """Begin: an empty state is sealed by the key, another one must have been. `sealing` gives a
        transaction in which no one else changes rows. Raises: TidegateError CONFIG_INVALID for
        another key, for a state whose rows are not sealed, or were and there is no key;
        STATE_FAILED for one that was put back.
        """
        with reading() as connection:
            rows = self._cluster_rows(connection)
        if rows and self._key is not None:
            if not self._join(rows):
                with sealing() as connection:
                    self._complete(connection)
                self.begin_new()
        elif rows:
            raise _has_no_key()
        elif self._key is not None:
            self._begin_first(sealing)

    def check(self, connection: Any, tables: Collection[str]) -> None:
        """Whether `open` could begin in a state that has these tables, of this version or an older
        one. Nothing is written there. Raises: as `open`."""
        rows = self._cluster_rows(connection) if "seals" in tables else []
        if rows and self._key is not None:
            self._join(rows)
        elif rows:
            raise _has_no_key()
        elif self._key is not None:
            self._check_unsealed(connection, tables)

    def _begin_first(self, sealing: OpenConnection) -> None:
        with sealing() as connection:
            rows = self._cluster_rows(connection)  # another gate may have been first
            if not rows:
                self._check_unsealed(connection, MEANING)
                self.seal_all(connection)
        if rows:
            self._join(rows)
        self.begin_new()

    def _join(self, rows: list[Row]) -> bool:
        """Begin in the life that the row says; whether it has stamps."""
        check = self._check(*rows[0])
        life = self._life_of(*rows[0])
        if life is None:
            raise seals_refused(
                "The rows of this state are sealed by another key than that of this gate.",
                "Use the same `state_key` at all gates.",
                Code.CONFIG_INVALID,
            )
        self._begin(*life)
        return check is not None and all(each in check.macs for each in _ALL)

    def _complete(self, connection: Any) -> None:
        """Within a transaction as for `seal_all`, add to a life from before there were stamps what
        it lacks. Its number rises, so the row of before does not come back."""
        rows = self._cluster_rows(connection)
        check, keys = self._check(*rows[0]) if rows else None, self.keys
        if self._key is None or keys is None or check is None:
            return
        lacks = [each for each in _ALL if each not in check.macs]
        if not lacks:
            return  # another gate was first
        prefix, mark = self._dialect.prefix, self._dialect.mark
        for area in (CLUSTER, USED) if _STAMPED in lacks else (CLUSTER,):
            sql = f"DELETE FROM {prefix}seals WHERE area = {mark}"
            self._dialect.run(connection, sql, (area,))
        made = SealedList(check.number + 1, {**check.macs, **dict.fromkeys(_ALL, b"")})
        self._insert(connection, SealKeys(self._key, ""), CLUSTER, 0, made)
        if _STAMPED in lacks:
            for part in range(PARTS):
                self._insert(connection, keys, USED, part, SealedList(1, {}))
        areas: list[StampedArea] | None = None
        if _STAMPED not in lacks:
            areas = [_LATER[each] for each in lacks]
        self.stamp_all(connection, keys, areas)
        self._made = made.number, self.life

    def _check(self, number: int, body: bytes, mac: bytes) -> SealedList | None:
        if self._key is None:
            return None
        return SealKeys(self._key, "").read(CLUSTER, 0, number, (bytes(body), bytes(mac)))

    def _life_of(self, number: int, body: bytes, mac: bytes) -> tuple[int, str] | None:
        """The number and the name of the life in the row that says so; None under another key."""
        check = self._check(number, body, mac)
        return None if check is None else (number, check.macs["life"].hex())

    def _cluster_rows(self, connection: Any) -> list[Row]:
        table, mark = f"{self._dialect.prefix}seals", self._dialect.mark
        sql = f"SELECT number, body, mac FROM {table} WHERE area = {mark}"
        return self._dialect.run(connection, sql, (CLUSTER,))

    def follow(self, connection: Any) -> bool:
        """Whether the state was sealed again by a holder of the key while this process ran."""
        rows = self._cluster_rows(connection)
        life = self._life_of(*rows[0]) if rows else None
        if life is None or life[0] <= self._memory.cluster:
            return False
        self._begin(*life)
        return True

    def seal_all(self, connection: Any) -> int:
        """Seal all rows as they are, and begin another life; how many rows. Within a transaction in
        which no one else changes them; `begin_new` comes after its COMMIT."""
        if self._key is None:
            raise seals_refused(
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
        made = SealedList(number, {"life": bytes.fromhex(life), **dict.fromkeys(_ALL, b"")})
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
        for part in range(PARTS):  # requests that were sealed in a former life count no more
            self._insert(connection, keys, USED, part, SealedList(first, {}))
        self.stamp_all(connection, keys, None)
        count_all(self._dialect, connection)
        self._made = number, life
        return sealed

    def begin_new(self) -> None:
        """What `seal_all` has made is committed: rows are sealed from now on."""
        if self._made is not None:
            self._begin(*self._made)
            self._made = None

    def _begin(self, number: int, life: str) -> None:
        if not self._memory.begin(number, life):
            raise seals_refused(
                "The state was put back to before its rows were sealed again.",
                "Restore the newer one, or run `tidegate state seal`.",
                Code.STATE_FAILED,
            )
        if self._key is not None:
            self.life, self.keys = life, SealKeys(self._key, life)
            self.began()

    def _check_unsealed(self, connection: Any, tables: Collection[str]) -> None:
        """Raises: TidegateError CONFIG_INVALID unless an unsealed state is empty."""
        prefix = self._dialect.prefix
        # One that this gate has seen sealed was emptied: also of budgets.
        if self._memory.cluster or any(
            self._dialect.run(connection, f"SELECT 1 FROM {prefix}{area} LIMIT 1", ())
            for area in MEANING
            if area in tables
        ):
            raise seals_refused(
                "The rows of this state are not sealed by the key.",
                "See that its tokens, sources, operators and budgets are yours, then run"
                " `tidegate state seal`.",
                Code.CONFIG_INVALID,
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


def _has_no_key() -> TidegateError:
    return seals_refused(
        "The rows of this state are sealed, and this gate has no key of it.",
        "Name the key with the setting `state_key`, as at the other gates.",
        Code.CONFIG_INVALID,
    )


def count_all(dialect: Dialect, connection: Any) -> None:
    """Within a transaction, have all gates read again what each topic (`store/versions.py`)
    holds."""
    run, table = dialect.run, f"{dialect.prefix}generations"
    # In the order in which transactions count, so that no two wait for each other.
    run(connection, f"SELECT area FROM {table} ORDER BY area{dialect.lock}", ())
    run(connection, f"UPDATE {table} SET value = value + 1", ())
