"""A state on another server than before: a standby that was promoted, or a copy that was restored.

It may lack what was written last. What was used up there may be unused here, and what was taken
away may be back. So a new epoch begins, once, by the gate that finds it first: grants that were not
used, codes and links that wait end, and sealed requests of before count no more. Each gate writes
the revocations of tokens again that it has seen; of other changes of rights that it has seen and
that are not there it says that the rows are in doubt (`store/seen_lists.py`). The first thread that
comes to the new server does that, before anything is read there: else a token would be let in that
was revoked.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from threading import Lock, local
from typing import NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.store.held_rows import UNSAID, Touched
from tidegate.store.postgres.connection import StateConnection
from tidegate.store.postgres.database import Database, connect_once
from tidegate.store.postgres.schema import KEPT, SYSTEM, TIMELINE
from tidegate.system.private_files import replace_file

NONCE_LIFE_S = 600.0
"""For how long a sealed request is valid (`protocol.request_state`)."""
_ENDS = (
    "UPDATE tidegate.approvals SET state = 'expired',"
    " ended_at = extract(epoch FROM clock_timestamp()) WHERE state = 'allowed'",
    "UPDATE tidegate.pairings SET state = 'burnt' WHERE state = 'approved'",
    "DELETE FROM tidegate.operator_links",
)
_BEYOND = 1_000_000
"""Far more changes than a standby lacks."""


class Place(NamedTuple):
    """On which server the state is, in which life of it, and which it was on before."""

    system_id: str
    timeline: int
    kept_system: str
    kept_timeline: int
    state_id: str = ""
    epoch_at: float | None = None
    mac: bytes | None = None
    """The stamp (`store/stamps.py`) of what is kept."""

    @property
    def is_new(self) -> bool:
        """Whether the state says that it has not been here before."""
        return (self.system_id, self.timeline) != (self.kept_system, self.kept_timeline)


class Epochs:
    """The servers of the state as this process has seen them. Safe to use from any thread."""

    def __init__(self, database: Database, path: Path) -> None:
        """`path` is a file of this gate, which keeps the last of them over a restart."""
        self._database = database
        self._path = path
        self._lock = Lock()
        self._last = self._remembered()
        self._revoked: dict[str, float] = {}
        self._has_met_another = False
        self._thread = local()
        self._has_begun = False
        database.inspect = self.inspect
        database.admit = self.admit

    def begin(self) -> None:
        """Follow from now on. What a gate had seen is known once its seals have begun."""
        self._has_begun = True

    def see_revoked(self, id: str, at: float) -> None:
        """Keep in memory that a token is revoked."""
        self._revoked[id] = at

    def follow(self, place: Place) -> None:
        """Take note of where the state is now. Raises: TidegateError STATE_FAILED for a server that
        was left: its state is an older one."""
        with self._lock:
            self._thread.follows = True
            try:
                self._follow(place)
            finally:
                self._thread.follows = False

    def _follow(self, place: Place) -> None:
        last = self._last
        self._check(place.system_id, place.timeline)
        if last is not None and last[:2] != place[:2]:
            self._database.seals.forget_numbers()
            self._narrow_again()
        if place.is_new or not self._is_stamped(place):
            self._begin(place)
        self._database.epoch_at = place.epoch_at
        if last is None or last[:2] != place[:2]:
            self._remember(place)
        self._last = place
        self._has_met_another = False

    def admit(self) -> None:
        """Follow the state first, if one of our connections leads to another server than before.
        Raises: TidegateError STATE_FAILED, psycopg.Error."""
        if not (self._has_begun and self._has_met_another) or getattr(
            self._thread, "follows", False
        ):
            return
        with connect_once(self._database.url) as connection:
            place = find_place(connection)
        self.follow(place)

    def inspect(self, connection: StateConnection) -> None:
        """Refuse a new connection to a server that was replaced, and note one to a server that the
        state was not on. Raises: TidegateError STATE_FAILED, psycopg.Error."""
        last = self._last
        if last is None:
            return
        row = connection.row(
            f"SELECT {SYSTEM}, CASE WHEN NOT pg_is_in_recovery() THEN {TIMELINE} END"
        )
        if row is not None and row[1] is not None:
            self._check(*row)
            self._has_met_another |= (row[0], row[1]) != last[:2]

    def _check(self, system_id: str, timeline: int) -> None:
        last = self._last
        if last is not None and last.system_id == system_id and timeline < last.timeline:
            raise TidegateError(
                Code.STATE_FAILED,
                f"The state's database is in its life {timeline}, and was in {last.timeline}:"
                " this is a server that was replaced.",
                hint="Name the server that was promoted, and end this one.",
                retry_after_s=1.0,
            )

    def _remembered(self) -> Place | None:
        """What the file keeps, if it is about this state."""
        try:
            state_id, *place = msgspec.json.decode(
                self._path.read_bytes(), type=tuple[str, str, int]
            )
        except (OSError, msgspec.MsgspecError):
            return None
        system_id, timeline = place
        if state_id != self._database.identity:
            return None
        return Place(str(system_id), int(timeline), "", 0)

    def _remember(self, place: Place) -> None:
        kept = (self._database.identity, place.system_id, place.timeline)
        with suppress(OSError):  # it is in memory all the same
            replace_file(self._path, msgspec.json.encode(kept))

    def _begin(self, place: Place) -> None:
        with (
            self._database.changing("rights", "approvals", "pairings", "operators") as connection,
            self._database.seals.changing(
                connection,
                Touched(
                    "approvals", "state = 'allowed'", (), {"state": "expired", "ended_at": UNSAID}
                ),
                Touched("pairings", "state = 'approved'", (), {"state": "burnt"}),
                Touched("operator_links", "true"),
            ) as held,
        ):
            now = find_place(connection)
            if not now.is_new and self._is_stamped(now):
                return  # another gate was first
            for statement in _ENDS:
                connection.ask(statement)
            held.expect_all("approvals")
            held.expect_all("pairings")
            held.expect_gone("operator_links")
            connection.ask(
                "UPDATE tidegate.about SET system_id = %s, timeline = %s,"
                " epoch_at = extract(epoch FROM clock_timestamp())",
                (place.system_id, place.timeline),
            )
            self._database.seals.stamps.stamp(connection, "about")
            # Beyond what any gate has seen on the former server, so that all read all again.
            connection.ask("SELECT area FROM tidegate.generations ORDER BY area FOR UPDATE")
            connection.ask("UPDATE tidegate.generations SET value = value + %s", (_BEYOND,))

    def _is_stamped(self, place: Place) -> bool:
        """Whether a gate has left what is kept there. Who writes that the state was on this server
        before would have grants count again that were used up on the former one."""
        values = (place.state_id, place.kept_system, place.kept_timeline, place.epoch_at)
        return self._database.seals.stamps.has_mac("about", values, place.mac)

    def _narrow_again(self) -> None:
        seen, seals = dict(self._revoked), self._database.seals
        again = Touched("tokens", "revoked_at IS NULL AND id = ANY(%s)", (list(seen),))
        with self._database.changing("rights", "operators") as connection:
            with seals.changing(connection, again) as held:
                connection.ask(
                    "UPDATE tidegate.tokens SET revoked_at = seen.at"
                    " FROM unnest(%s::text[], %s::float8[]) AS seen (id, at)"
                    " WHERE tokens.id = seen.id AND revoked_at IS NULL",
                    (list(seen), list(seen.values())),
                )
                for id in held.keys("tokens") or ():
                    held.expect("tokens", id, revoked_at=seen[id])
            seals.doubt_lost(connection)
        seals.forget_lost()


def find_place(connection: StateConnection) -> Place:
    """Where the state is now. Raises: psycopg.Error."""
    row = connection.row(f"SELECT {SYSTEM}, {TIMELINE}, {KEPT} FROM tidegate.about")
    if row is None:
        raise TidegateError(Code.STATE_FAILED, "The state's database holds no version of it.")
    return Place(*row)
