"""Files for a person's browser: made first, then downloaded by a ticket.

A file is made without a name in a folder, so that what fails is an answer and no half of a
download, and the page says of a file what it lacks before it is saved. It waits a minute for its
download; what leaves is on record before it does.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.router import HttpRequest, HttpStream, Sender
from tidegate.edges.http.sse import HeaderList
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Note, SignedIn
from tidegate.model.actors import RoleGrant
from tidegate.model.cancellation import Cancellation
from tidegate.model.sources import Source
from tidegate.products.console.result_quota import unwritable
from tidegate.products.console.sign_in import actor_of, place_of
from tidegate.products.console.tickets import TICKET_S, Tickets

MOST_BYTES = 536_870_912
"""Bytes of one file."""
MOST_WAITING = 1_073_741_824
"""Bytes of the files that were made and are not downloaded yet, from which on none is made."""
_PART = 262_144
_MOST_BACKLOG = 1_048_576
_WAIT_S = 0.02
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "sql": "application/sql",
}


class DraftFile:
    """A file while it is made. Raises: TidegateError STATE_FAILED where it cannot be written."""

    def __init__(self, directory: Path, most: int = MOST_BYTES) -> None:
        self._directory = directory
        self._most = most
        self.size = 0
        try:
            self.file: IO[bytes] = TemporaryFile(dir=directory)  # noqa: SIM115 - `close` closes it
        except OSError as error:
            raise unwritable(directory, error) from error

    def put(self, part: bytes) -> None:
        """Write what comes next. Raises: TidegateError LIMIT_BYTES."""
        self.size += len(part)
        if self.size > self._most:
            raise TidegateError(
                Code.LIMIT_BYTES,
                f"The export has over {self._most:,} bytes",
                hint="Filter the rows, or choose fewer columns.",
            )
        try:
            self.file.write(part)
        except OSError as error:
            raise unwritable(self._directory, error) from error

    def finish(self) -> None:
        """Have all of it in the file, to be read from its beginning."""
        try:
            self.file.seek(0)
        except OSError as error:
            raise unwritable(self._directory, error) from error

    def close(self) -> None:
        """Let it go."""
        with suppress(OSError):  # of what could not be written
            self.file.close()


class MadeFile:
    """A file that was made. `cut` says where it ends though there was more, empty if it is whole;
    `notes` are that and what else it is not, `details` go on record, `is_whole` to its reader."""

    def __init__(
        self,
        draft: DraftFile,
        name: str,
        form: str,
        rows: int,
        *,
        cut: str = "",
        notes: Sequence[str] = (),
        details: dict[str, str],
    ) -> None:
        self._draft = draft
        self._form = form
        safe = _UNSAFE.sub("_", name).strip("._")[:80] or "export"
        part = f".first-{rows}-rows" if cut else ""
        self.name = f"{safe}{part}.{form}"
        self.rows = rows
        self.notes = [cut, *notes] if cut else list(notes)
        self.cut = cut
        self.is_whole = not cut
        self.details = details

    @property
    def size(self) -> int:
        return self._draft.size

    @property
    def headers(self) -> HeaderList:
        """What its response says. `x-tidegate-complete` is for a reader that is no browser."""
        whole = b"yes" if self.is_whole else b"no"
        headers = [
            (b"content-type", _TYPES[self._form].encode()),
            (b"content-disposition", f'attachment; filename="{self.name}"'.encode()),
            (b"x-tidegate-rows", str(self.rows).encode()),
            (b"x-tidegate-complete", whole),
        ]
        notes = one_line("; ".join(self.notes)).encode("ascii", "backslashreplace")
        return [*headers, (b"x-tidegate-notes", notes[:4_096])] if notes else headers

    async def send(self, sender: Sender, cancellation: Cancellation) -> None:
        """Send the file as its reader takes it."""
        try:
            while part := await asyncio.to_thread(self._draft.file.read, _PART):
                if not await _has_room(sender, cancellation):
                    return
                sender.push(part)
        finally:
            self.close()

    def close(self) -> None:
        self._draft.close()


async def _has_room(sender: Sender, cancellation: Cancellation) -> bool:
    """Wait until the reader has taken most of what was sent; False once it has left."""
    while True:
        if cancellation.reason is not None:
            return False
        if sender.backlog <= _MOST_BACKLOG:
            return True
        await asyncio.sleep(_WAIT_S)


def one_line(text: str) -> str:
    """A text without control characters, for a header or a comment."""
    return "".join([each if each.isprintable() else " " for each in text])


class Standing(NamedTuple):
    """What an operator may read: a file that was made under another one does not leave."""

    roles: tuple[RoleGrant, ...]
    sources: tuple[Source, ...]


class Downloads:
    """The files of one kind that wait. `note` puts on record what leaves, `sources` gives all."""

    def __init__(
        self, note: Note, sources: Callable[[], Sequence[Source]], clock: Callable[[], float]
    ) -> None:
        self._note = note
        self._sources = sources
        self._tickets: Tickets[tuple[MadeFile, Standing]] = Tickets(clock, _drop)

    def standing(self, signed_in: SignedIn) -> Standing:
        """What the operator may read now, to be asked before a file is made. Raises: TidegateError
        LIMIT_RATE while what waits takes too much room."""
        if sum([made.size for made, _ in self._tickets.waiting]) >= MOST_WAITING:
            raise TidegateError(
                Code.LIMIT_RATE,
                "Files that were made and not downloaded take too much room",
                hint="Wait a minute, and export it again.",
            )
        return self._standing(signed_in)

    def _standing(self, signed_in: SignedIn) -> Standing:
        sources = [each for each in self._sources() if signed_in.may("viewer", each.name)]
        return Standing(signed_in.operator.roles, tuple(sources))

    def offer(self, made: MadeFile, signed_in: SignedIn, standing: Standing) -> dict[str, Any]:
        """A ticket for a file that was made under that standing, and what the page says of it."""
        ticket = self._tickets.give((made, standing), signed_in)
        asyncio.get_running_loop().call_later(TICKET_S + 1, self._tickets.forget_old)
        return {
            "ticket": ticket,
            "name": made.name,
            "rows": made.rows,
            "bytes": made.size,
            "complete": made.is_whole,
            "notes": made.notes,
        }

    async def take(
        self, request: HttpRequest, signed_in: SignedIn, headers: HeaderList
    ) -> HttpStream:
        """The download of a request's ticket, on record. Raises: HttpRefusal 403; TidegateError if
        it cannot be put on record, and then nothing leaves."""
        made, standing = self._tickets.take(request.query.get("ticket", ""), signed_in)
        if standing != self._standing(signed_in):  # other rights or masks bind by now
            made.close()
            raise HttpRefusal(403, "Roles or sources were changed since the file was made")
        details = {**made.details, **place_of(signed_in, request.address)}
        try:
            await asyncio.to_thread(self._note, "console.exported", signed_in.actor_id, details)
        except BaseException:
            made.close()
            raise
        return HttpStream(actor_of(signed_in), made.send, [*made.headers, *headers])


def _drop(waiting: tuple[MadeFile, Standing]) -> None:
    waiting[0].close()
