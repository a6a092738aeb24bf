"""Keeps the rows of changes, encrypted, until they are put back or too old.

Each change has a random key of its own, and that is encrypted with the secret of the state
directory, which is in a file beside the database: a copy of the database alone shows no row. When a
change is forgotten its key goes with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import structs

from tidegate.config.model import UndoSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import ChangeEntry, ChangeImage, ChangeList, ListChanges
from tidegate.model.requests import Call
from tidegate.model.sources import Source
from tidegate.store.calls import read_state
from tidegate.store.encryption import decrypt, encrypt
from tidegate.store.supervision import ChangeStore
from tidegate.typed_values import decode_msgpack

SETTLE_S = 60.0
"""A change that another process has prepared is taken to be under way for so long."""
_DAY_S = 86_400.0
_SWEEP_S = 60.0
_LEAST_ID = 4
_LIST = "`tidegate changes` lists those that are kept."


class UndoLog:
    """The changes in `store`. `secret` gives 64 hexadecimal digits that encrypt their keys, and
    `former` those that did so before, if there are any."""

    def __init__(
        self,
        store: ChangeStore,
        settings: UndoSettings,
        secret: Callable[[], str],
        *,
        former: Callable[[], str | None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self.settings = settings
        self._secret = secret
        self._former = former
        self._clock = clock
        self._swept_at = 0.0
        self._under_way: set[str] = set()

    def keeper(
        self,
        entry: ChangeEntry,
        *,
        required: str,
        place: str,
    ) -> UndoEntry:
        """A keeper for a change that begins. `required` says why it must be rolled back where its
        rows cannot be kept; empty: it goes on. `place` tells its database from another."""
        now = self._clock()
        made = structs.replace(
            entry,
            id=os.urandom(6).hex(),
            made_at=now,
            expires_at=now + self.settings.keep_days * _DAY_S,
        )
        return UndoEntry(self, made, required, place)

    def save(self, entry: ChangeEntry, image: ChangeImage, place: str) -> ChangeEntry:
        """Keep the rows of a change durably, as `prepared`. Raises: TidegateError STATE_FAILED,
        LIMIT_BYTES for more than is kept of one change."""
        plain = msgspec.msgpack.encode((place, image))
        if len(plain) > self.settings.max_bytes:
            raise TidegateError(
                Code.LIMIT_BYTES,
                f"the rows take {len(plain):,} bytes, and `undo.max_bytes` is"
                f" {self.settings.max_bytes:,}",
            )
        self.forget_old()
        names = tuple([f"{each.schema}.{each.table}".lstrip(".") for each in image.tables])
        kept = structs.replace(entry, tables=names, rows=image.row_count, size=len(plain))
        key, bound = os.urandom(32), entry.id.encode()
        sealed = encrypt(key, plain, bound)
        wrapped = encrypt(bytes.fromhex(self._secret()), key, bound)
        self._under_way.add(entry.id)
        try:
            self._store.prepare(kept, wrapped, sealed, self.settings.total_bytes)
        except BaseException:
            self._under_way.discard(entry.id)
            raise
        return kept

    def end(self, entry: ChangeEntry, how: Literal["kept", "discarded", "unknown"]) -> None:
        """Say what became of a change that was saved. Raises: TidegateError STATE_FAILED; then it
        stays `prepared`, and is settled by its rows."""
        try:
            if how == "kept":
                self._store.confirm(entry)
            elif how == "discarded":
                self._store.discard(entry)
        finally:
            self._under_way.discard(entry.id)

    def is_under_way(self, entry: ChangeEntry) -> bool:
        """Whether a `prepared` change may be committed yet."""
        recent = self._clock() - entry.made_at < SETTLE_S
        return entry.state == "prepared" and (entry.id in self._under_way or recent)

    def find(self, start: str, source: Source) -> ChangeEntry:
        """The change of the source whose id is this, or alone starts so. Raises: TidegateError
        UNDO_UNAVAILABLE."""
        self.forget_old()
        exact = self._store.find(start)
        found = (exact,) if exact else ()
        if not exact and len(start) >= _LEAST_ID:
            found = self._store.starting(start)
        here = [
            each
            for each in found
            if each.source_id == source.id and each.expires_at > self._clock()
        ]
        one = here[0] if len(found) == len(here) == 1 else None
        current = None if one is None else self._store.current(one)
        if current is not None:
            return current
        if self._store.has_foreign(start):
            raise _foreign_change(start)
        raise no_change(start)

    def image(self, entry: ChangeEntry, place: str) -> ChangeImage:
        """The rows of a change. Raises: TidegateError UNDO_UNAVAILABLE if they are no longer kept,
        or the source is another database than then."""
        found = self._store.image(entry.id)
        if found is None:
            raise no_change(entry.id)
        bound = entry.id.encode()
        key = decrypt(bytes.fromhex(self._secret()), found[0], bound)
        former = self._former() if key is None else None
        if former is not None:
            key = decrypt(bytes.fromhex(former), found[0], bound)
        plain = None if key is None else decrypt(key, found[1], bound)
        if plain is None:
            raise TidegateError(
                Code.UNDO_UNAVAILABLE,
                f"The rows of the change {entry.id} cannot be decrypted: the state's `undo.key` is"
                " another one, or they were tampered with.",
                hint="Put back the `undo.key` that belongs to this state.",
            )
        then, image = decode_msgpack(plain, tuple[str, ChangeImage])
        if then != place:
            raise TidegateError(
                Code.UNDO_UNAVAILABLE,
                f"The source points to another database than when the change {entry.id} was made.",
                hint="Give the source the URL that it had then.",
            )
        return image

    def settle(self, entry: ChangeEntry, committed: bool) -> None:
        """Note whether a change was committed that was `prepared` when a process ended."""
        if committed:
            self._store.confirm(entry)
        else:
            self._store.discard(entry)

    def mark_undone(self, entry: ChangeEntry, by: str) -> None:
        """The rows of the change were put back. Raises: TidegateError STATE_FAILED."""
        self._store.mark_undone(entry, by)

    def list(
        self,
        sources: tuple[Source, ...],
        wanted: ListChanges,
        actor: str | None = None,
    ) -> tuple[ChangeEntry, ...]:
        """Changes of these sources, newest first; of `actor` (an id) alone if one is given."""
        self.forget_old()
        found = self._store.list(
            [source.id for source in sources],
            limit=max(0, wanted.limit),
            actor=actor,
            approval=wanted.approval or None,
            before=wanted.before,
        )
        now = self._clock()
        return tuple([each for each in found if each.expires_at > now])

    async def answer(self, call: Call, sources: tuple[Source, ...]) -> ChangeList:
        """Answer the call's `ListChanges` within `sources`: people see all changes there, agents
        their own."""
        request = call.request
        if not isinstance(request, ListChanges):
            raise TypeError(type(request).__name__)
        own = None if call.actor.kind == "human" else call.actor.id
        return ChangeList(await read_state(self.list, sources, request, own))

    def forget_old(self) -> None:
        """Remove what has expired, now and then. Raises: TidegateError STATE_FAILED."""
        now = self._clock()
        if not 0 <= now - self._swept_at < _SWEEP_S:
            self._store.forget(now)
            self._swept_at = now


class UndoEntry:
    """`model.changes.ChangeKeeper` of one change, or of one statement of a transaction. `entry` is
    None until its rows are kept; `reason` says why they are not, and `required` why they must be.
    """

    def __init__(self, kept: UndoLog, made: ChangeEntry, required: str, place: str) -> None:
        self._kept = kept
        self._made = made
        self.required = required
        self._place = place
        self.max_bytes = kept.settings.max_bytes
        self.entry: ChangeEntry | None = None
        self.reason = ""

    def prepare(self, image: ChangeImage) -> None:
        if not image.row_count:
            return  # it has changed nothing
        try:
            self.entry = self._kept.save(self._made, image, self._place)
        except TidegateError as error:
            reason = error.message
            if error.code is not Code.LIMIT_BYTES:
                reason = f"its rows could not be kept: {error.message.rstrip('.')}"
            self.give_up(reason)

    def give_up(self, reason: str) -> None:
        if self.required:
            raise not_kept(reason, self.required)
        self.reason = reason

    def end(self, how: Literal["kept", "discarded", "unknown"]) -> None:
        """Say what became of the change. Raises: TidegateError STATE_FAILED."""
        if self.entry is not None:
            self._kept.end(self.entry, how)


def no_change(id: str) -> TidegateError:
    """The refusal of a change that is not kept, was made elsewhere, or is not the caller's."""
    return TidegateError(
        Code.UNDO_UNAVAILABLE, f"There is no change {id[:40]!r} here that is kept.", hint=_LIST
    )


def _foreign_change(id: str) -> TidegateError:
    return TidegateError(
        Code.UNDO_UNAVAILABLE,
        f"The change {id[:40]!r} was written into the state past the gates, or by a version of"
        " Tidegate that leaves no stamp. Nothing of it is put back.",
        hint="See in the record what the call changed, and correct the rows by statements.",
    )


def not_kept(reason: str, required: str) -> TidegateError:
    """The refusal of a change of which the rows cannot be kept, though they must be."""
    return TidegateError(
        Code.UNDO_UNAVAILABLE,
        f"The change could not be taken back, because {reason}. {required} Nothing was changed.",
        hint="Ask the operator to set `undo` of the source to `keep`, or change other rows.",
    )
