"""The lists of seals in a state: read, compared with what was seen of them, and rewritten."""

from __future__ import annotations

import struct
from typing import Any

from tidegate.errors import Code
from tidegate.store.held_rows import Dialect
from tidegate.store.list_files import ListFiles
from tidegate.store.seal_faults import Fault, Faults, seals_refused
from tidegate.store.seal_lives import SealLives, count_all
from tidegate.store.seal_memory import SealMemory
from tidegate.store.sealed_lists import (
    PARTS,
    USED,
    ListArea,
    SealedArea,
    SealedList,
    SealKeys,
    part_of,
)
from tidegate.store.seen_lists import Place, SeenLists, doubt

_TRIES = 4
_LOCK = "lock/"


class KeptLists:
    """The lists of one state. Safe to use from any thread, each with its own connection."""

    def __init__(
        self,
        dialect: Dialect,
        lives: SealLives,
        memory: SealMemory,
        files: ListFiles,
        faults: Faults,
    ) -> None:
        self._dialect = dialect
        self._lives = lives
        self._memory = memory
        self._faults = faults
        self._seen = SeenLists()
        self._files = files
        lives.began = self._begin

    def _begin(self) -> None:
        self._seen.clear()
        self._seen.remember(self._files.read(self._lives.life))

    def last(self, area: SealedArea) -> dict[int, SealedList]:
        """The lists of an area as they were read last, by their parts."""
        return self._seen.last(area)

    def read_all(
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
                known = self._read(connection, area, part)
            if known is None:
                faults[f"list {part}"] = "list"
            else:
                lists[part] = known
        return lists, faults

    def _read(
        self, connection: Any, area: ListArea, part: int, lock: str = ""
    ) -> SealedList | None:
        table, mark = f"{self._dialect.prefix}seals", self._dialect.mark
        sql = f"SELECT number, body, mac FROM {table} WHERE area = {mark} AND part = {mark}{lock}"
        for _ in range(_TRIES):
            rows = self._dialect.run(connection, sql, (area, part))
            keys = self._lives.keys
            if not rows or keys is None:
                return None
            number, body, mac = rows[0]
            found = keys.read(area, part, number, (bytes(body), bytes(mac)))
            if found is None:
                if not self._lives.follow(connection):
                    return None
                continue
            # Another thread may have seen the next one since this one was read.
            if self._memory.see(area, part, number):
                if not lock and area != USED:
                    self._seen.read((area, part), found)
                    self._files.keep(self._lives.life, (area, part), found)
                return found
        return None

    def rewrite(
        self,
        connection: Any,
        keys: SealKeys,
        place: Place,
        changed: dict[str, bytes | None],
    ) -> None:
        """Within a transaction, put MACs into a list, or take them out of it. Raises: TidegateError
        STATE_FAILED for a list that no gate has left so."""
        had = self._hold(connection, *place)
        macs = {**had.macs, **changed}
        made = SealedList(
            had.number + 1, {name: mac for name, mac in macs.items() if mac is not None}
        )
        self._update(connection, keys, place, made)

    def use_once(self, connection: Any, name: str, until: float, now: float) -> bool:
        """Within a transaction, use up what counts once before that time; False if it was used.
        Raises: TidegateError STATE_FAILED, as `rewrite`."""
        keys, part = self._lives.keys, part_of(name)
        if keys is None:
            return True
        had = self._hold(connection, USED, part)
        if until_of(had.macs.get(name)) > now:
            return False
        self._use(connection, keys, had, (name, until), now)
        return True

    def lock(self, connection: Any, key: str, until: float, now: float) -> None:
        """Within a transaction, lock a key until then. Raises: as `use_once`."""
        keys, name = self._lives.keys, f"{_LOCK}{key}"
        if keys is not None:
            had = self._hold(connection, USED, part_of(name))
            self._use(connection, keys, had, (name, until), now)

    def locked_until(self, connection: Any, key: str, now: float) -> float | None:
        """Until when a key is locked, by its row or by its entry. Raises: as `use_once`."""
        run, prefix, mark = self._dialect.run, self._dialect.prefix, self._dialect.mark
        keys, name = self._lives.keys, f"{_LOCK}{key}"
        locks = f"FROM {prefix}locks WHERE key = {mark} AND until > {mark}"
        if keys is None:
            rows = run(connection, f"SELECT until {locks}", (key, now))
            return max((row[0] for row in rows), default=None)
        part = part_of(name)
        rows = run(
            connection,
            f"SELECT number, body, mac, NULL FROM {prefix}seals WHERE area = {mark}"
            f" AND part = {mark} UNION ALL SELECT NULL, NULL, NULL, until {locks}",
            (USED, part, key, now),
        )
        ends = [float(row[3]) for row in rows if row[3] is not None]
        found: SealedList | None = None
        for number, body, mac, _ in rows:
            if number is not None:
                found = keys.read(USED, part, number, (bytes(body), bytes(mac)))
        if found is None or not self._memory.see(USED, part, found.number):
            found = self._look(connection, USED, part)  # it has changed, or has a fault
        ends.append(until_of(found.macs.get(name)))
        return max((end for end in ends if end > now), default=None)

    def was_used(self, connection: Any, name: str, now: float) -> bool:
        """Whether what counts once was used up before it ended. Raises: as `use_once`."""
        if self._lives.keys is None:
            return False
        kept = self._look(connection, USED, part_of(name))
        return until_of(kept.macs.get(name)) > now

    def _use(
        self, connection: Any, keys: SealKeys, had: SealedList, entry: tuple[str, float], now: float
    ) -> None:
        """Write a list of what was used with one more entry, less those that have ended."""
        name, until = entry
        used = {each: kept for each, kept in had.macs.items() if until_of(kept) > now}
        made = SealedList(had.number + 1, {**used, name: struct.pack(">d", until)})
        self._write(connection, keys, USED, part_of(name), made)

    def _hold(self, connection: Any, area: ListArea, part: int) -> SealedList:
        """A list that counts, which no one else changes until the transaction ends."""
        return self._look(connection, area, part, self._dialect.lock)

    def _look(self, connection: Any, area: ListArea, part: int, lock: str = "") -> SealedList:
        """A list that counts. Raises: TidegateError STATE_FAILED for one that no gate has left."""
        found = self._read(connection, area, part, lock)
        if found is None:
            self._faults.note(area, {f"list {part}": "list"})
            raise seals_refused(
                f"The seals of `{area}` in the state were changed past the gates.",
                "See what the area holds, then run `tidegate state seal`.",
                Code.STATE_FAILED,
                area,
            )
        return found

    def _update(self, connection: Any, keys: SealKeys, place: Place, made: SealedList) -> None:
        self._write(connection, keys, *place, made)
        self._seen.write(place, made)
        self._files.keep(self._lives.life, place, made)

    def _write(
        self, connection: Any, keys: SealKeys, area: ListArea, part: int, made: SealedList
    ) -> None:
        table, mark = f"{self._dialect.prefix}seals", self._dialect.mark
        self._dialect.run(
            connection,
            f"UPDATE {table} SET number = {mark}, body = {mark}, mac = {mark}"
            f" WHERE area = {mark} AND part = {mark}",
            (made.number, *keys.write(area, part, made), area, part),
        )
        self._memory.write(connection, area, part, made.number)

    # Another server

    def forget_numbers(self) -> None:
        """The state is on another server, which may lack the last changes: lists may be older."""
        self._memory.forget_numbers()
        self._seen.leave()

    def doubt_lost(self, connection: Any) -> None:
        """Within a transaction on a new server, have rows count as absent that this process has
        seen changed or removed on the former one, and whose change is not here. After the COMMIT
        comes `forget_lost`. Raises: TidegateError STATE_FAILED."""
        keys, has_doubts = self._lives.keys, False
        if keys is None:
            return
        for place, seen in self._seen.left():
            found = self._read(connection, *place, self._dialect.lock)
            made = None if found is None else doubt(place[0], seen, found)
            if made is not None:
                self._update(connection, keys, place, made)
                has_doubts = True
        if has_doubts:
            count_all(self._dialect, connection)

    def forget_lost(self) -> None:
        """What `doubt_lost` has made is committed."""
        self._seen.forget_left()


def until_of(entry: bytes | None) -> float:
    """Until when what was used is remembered; before all times where it was not."""
    return float("-inf") if entry is None else struct.unpack(">d", entry)[0]
