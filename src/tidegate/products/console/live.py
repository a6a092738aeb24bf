"""The live stream of the console: what changes, to every page that is open, within a second.

The state is the source, since other processes change it, too: while a page listens it is read when
something has changed, which is known from memory (`store/versions.py`) and checked four times a
second. Each page gets what its operator may see. A page that comes back after a gap is asked to
load everything again. A stream ends soon after its session does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from tidegate.approvals.approvals import COOL_OFF_S, Approvals
from tidegate.edges.http.router import Sender
from tidegate.edges.http.sse import MOST_BACKLOG
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Operators, SignedIn
from tidegate.model.cancellation import Cancellation
from tidegate.products.console.activity import Activity
from tidegate.products.console.cards import is_settled
from tidegate.products.console.inbox import Inbox
from tidegate.products.console.now import Now
from tidegate.products.console.pairing_requests import PairingRequests
from tidegate.store.calls import read_state
from tidegate.store.records import OperatorEntry, Pairing, PendingApproval
from tidegate.store.versions import Topic

LOOK_S = 0.25
CHECK_S = 1.0
"""How often the state, and whether a session goes on, are checked."""
MOST_STREAMS = 16
"""Open streams of one session."""
MOST_UNREAD = 32 * 1024 * 1024
"""Bytes that wait for slow pages, all together. The slowest are cut off: they come back and load
everything again."""
QUIET_S = 10.0
"""After so long without an event the page gets a sign that the stream works."""
NOW_S = 0.5
"""How often a page that shows the calls under way gets them, if they have changed."""
MOST_WAITING = 65_536
"""Bytes that a page has not read above which it gets no calls: a later list has them all."""
SURE_S = 5.0
"""After so long the state is read although nothing is known to have changed: time passes, too."""
FOLLOWED_S = 600.0
"""How long what becomes of an answered question is followed."""


Look = Callable[[Sequence[SignedIn]], Awaitable[None]]
"""Looks for what else has changed, for those who read; it publishes what it finds."""


class ChangedTopic:
    """Whether a topic of the state may have changed since it was read. Where the server follows its
    state (`store/versions.py`) that costs no read."""

    def __init__(self, approvals: Approvals, topic: Topic) -> None:
        """`approvals` knows the versions of the state."""
        self._approvals = approvals
        self._topic: Topic = topic
        self._read: int | None = None
        self._looked: int | None = None
        self._read_at = 0.0

    def may_differ(self) -> bool:
        """Whether it has to be read. Raises: TidegateError STATE_FAILED."""
        versions = self._approvals.versions
        if versions is None or not versions.followed:
            return True
        self._looked = versions.of(self._topic)  # before the read: what comes later is read again
        return self._looked != self._read or time.monotonic() - self._read_at >= SURE_S

    def note_read(self) -> None:
        """It was read, after the last look."""
        self._read, self._read_at = self._looked, time.monotonic()


class _Reader:
    """One open page."""

    def __init__(self, sender: Sender, signed_in: SignedIn) -> None:
        self.sender = sender
        self.signed_in = signed_in
        self.ended = asyncio.Event()
        self.sent_at = time.monotonic()
        self.calls = b""

    def send_calls(self, body: bytes, id: int) -> None:
        """Send the calls under way, unless the page has them, or has much to read before."""
        if body != self.calls and self.sender.backlog <= MOST_WAITING:
            self.calls = body
            self.send("now", body, id)

    def send(self, event: str, data: Any, id: int) -> None:
        """Send an event; `data` is JSON already, or a value."""
        if self.ended.is_set():
            return
        if self.sender.backlog > MOST_BACKLOG:
            self.cut_off()
            return
        self.sent_at = time.monotonic()
        body = data if isinstance(data, bytes) else msgspec.json.encode(data)
        self.sender.push(b"id: %d\nevent: %s\ndata: %s\n\n" % (id, event.encode(), body))

    def cut_off(self) -> None:
        """End the stream of a page that does not read."""
        self.ended.set()
        self.sender.abort()


def _view_of(signed_in: SignedIn) -> tuple[OperatorEntry, bool]:
    """All that the cards of a session depend on."""
    return signed_in.operator, signed_in.session.confirmed_at is None


class LiveFeed:
    """The streams of one process. `build` gives the digest of the page's files. `activity` knows
    the lines of the log, which is that of `gate`, and `now` the calls under way."""

    def __init__(
        self,
        approvals: Approvals,
        operators: Operators,
        inbox: Inbox,
        build: Callable[[], str],
        activity: Activity | None = None,
        pairings: PairingRequests | None = None,
        now: Now | None = None,
    ) -> None:
        self._approvals = approvals
        self.gate = ""
        """Its id, where gates share the state."""
        self._pairings = pairings
        self._waiting: tuple[Pairing, ...] = ()
        self._operators = operators
        self._inbox = inbox
        self._build = build
        self._activity = activity
        self._now = now
        self._readers: set[_Reader] = set()
        self._opening: set[_Reader] = set()
        """Those whose stream has begun and who are sent nothing yet."""
        self._beginning = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._questions: dict[str, PendingApproval] = {}
        self._lines = 0
        self._counting: asyncio.Task[int] | None = None
        self._looks: list[Look] = []
        self._asked = ChangedTopic(approvals, "approvals")
        self._paired = ChangedTopic(approvals, "pairings")
        self.tabs = ChangedTopic(approvals, "tabs")
        """Whether there may be events of tabs that were not read."""
        self._number = int(time.time() * 1000)

    @property
    def sequence(self) -> int:
        """The number of the last event."""
        return self._number

    def _count(self) -> None:
        """Number the next event. Numbers are times in milliseconds, so that those of the next
        process are higher, and that no page learns from them how many events other pages get."""
        self._number = max(self._number + 1, int(time.time() * 1000))

    def follow(self, look: Look) -> None:
        """Have `look` called whenever the state is read, also when the last page has left."""
        self._looks.append(look)

    def publish(self, event: str, data_of: Callable[[SignedIn], Any]) -> None:
        """Send an event to the pages whose operator may see it: those for whom there is data."""
        self._count()
        for reader in list(self._readers):
            data = data_of(reader.signed_in)
            if data is not None:
                reader.send(event, data, self.sequence)

    def tell_of_edits(self, owner: str, tab: str, version: int) -> None:
        """Tell the pages of an operator that what is staged in a tab is of another version now."""
        data = {"tab": tab, "version": version}
        self.publish("edits", lambda signed_in: data if signed_in.operator.name == owner else None)

    def check_room(self, signed_in: SignedIn) -> None:
        """Raises: TidegateError LIMIT_RATE if the session has too many open streams. The tabs of a
        browser share one."""
        session = signed_in.session.id
        open = self._readers | self._opening
        if sum(each.signed_in.session.id == session for each in open) >= MOST_STREAMS:
            raise TidegateError(
                Code.LIMIT_RATE,
                f"This session has {MOST_STREAMS} live streams.",
                hint="Close other windows of the console.",
            )

    async def serve(
        self, sender: Sender, cancellation: Cancellation, signed_in: SignedIn, after: str
    ) -> None:
        """Send events until the page leaves, its session ends or the server stops."""
        reader = _Reader(sender, signed_in)
        cancellation.listen(reader.ended.set)
        self._opening.add(reader)  # before anything is waited for: it counts from now on
        try:
            await self._begin_to_follow(signed_in)
        finally:
            self._opening.discard(reader)
        self._readers.add(reader)
        now = {"seq": self.sequence, "build": self._build(), "now": time.time()}
        reader.send("hello", now, self.sequence)
        if after and after != str(self.sequence):
            reader.send("reload", {}, self.sequence)
        self._send_count(reader)
        self._send_pairings(reader)
        try:
            await reader.ended.wait()
        finally:
            self._readers.discard(reader)

    async def _begin_to_follow(self, signed_in: SignedIn) -> None:
        """See to it that the state is followed, by one task however many pages come at once."""
        async with self._beginning:
            if self._task is None or self._task.done():
                await self._look()
                await self._look_further([signed_in])
                self._task = asyncio.get_running_loop().create_task(self._follow())

    async def _follow(self) -> None:
        try:
            await self._follow_state()
        except Exception:
            # A page whose stream ends comes back, and begins this again.
            for reader in list(self._readers):
                reader.cut_off()
            raise

    async def _follow_state(self) -> None:
        checked_at = sent_at = time.monotonic()
        while True:
            if not self._readers:
                await self._look_further([])
                if not self._readers:
                    return
            await asyncio.sleep(LOOK_S)
            if time.monotonic() - sent_at >= NOW_S:
                sent_at = time.monotonic()
                self._send_calls()
            with suppress(TidegateError):  # a state that cannot be read is read again
                await self._look()
            await self._look_further([reader.signed_in for reader in self._readers])
            now = time.monotonic()
            if now - checked_at >= CHECK_S:
                checked_at = now
                await self._check()
            for reader in list(self._readers):
                if now - reader.sent_at >= QUIET_S:
                    reader.sent_at = now
                    reader.sender.push(b": quiet\n\n")

    async def _look_further(self, readers: Sequence[SignedIn]) -> None:
        for look in self._looks:
            with suppress(TidegateError):
                await look(readers)

    async def _look(self) -> None:
        """Send what has changed since the last look."""
        lines = self._counted()
        if self._asked.may_differ():
            await self._look_at_questions()
        if self._pairings is not None and self._paired.may_differ():
            await self._look_at_pairings(self._pairings)
        if lines != self._lines:
            after, self._lines = min(self._lines, lines - 1), lines
            await self._send_lines(after)

    async def _look_at_questions(self) -> None:
        before = self._questions
        now = await read_state(self._read, before)
        self._asked.note_read()
        changed = [each for id, each in now.items() if before.get(id) != each]
        gone = before.keys() - now.keys()
        self._questions = {id: each for id, each in now.items() if self._is_followed(each)}
        for question in changed:
            await self._send_card(question)
        for id in gone:
            self._count()
            for reader in list(self._readers):
                if self._inbox.is_visible(before[id], reader.signed_in):
                    reader.send("gone", {"id": id}, self.sequence)
        if changed or gone:
            for reader in list(self._readers):
                self._send_count(reader)

    async def _send_lines(self, after: int) -> None:
        """Say that there are lines after this number, to the pages whose operator sees one."""
        readers = list(self._readers)
        sessions = {each.signed_in.operator: each.signed_in for each in readers}

        def look() -> dict[OperatorEntry, int]:
            if self._activity is None:
                return {}
            newest_for = self._activity.newest_for
            return {who: newest_for(each, after) for who, each in sessions.items()}

        newest = await asyncio.to_thread(look)
        self._count()
        for reader in readers:
            if n := newest.get(reader.signed_in.operator, 0):
                reader.send("line", {"n": n, "gate": self.gate}, self.sequence)

    async def _look_at_pairings(self, pairings: PairingRequests) -> None:
        waiting = await read_state(pairings.waiting)
        self._paired.note_read()
        if waiting == self._waiting:
            return
        self._waiting = waiting
        self._count()
        for reader in list(self._readers):
            self._send_pairings(reader)

    def _send_pairings(self, reader: _Reader) -> None:
        """All requests for a token that wait, for this reader."""
        if self._pairings is not None:
            shown = self._pairings.shown(self._waiting, reader.signed_in)
            reader.send("pairing", {"pairings": shown}, self.sequence)

    async def _send_card(self, question: PendingApproval) -> None:
        """Send a card, which is made once for all pages of operators who see the same, on a
        thread."""
        cards: dict[Any, bytes] = {}

        def make(readers: Iterable[_Reader]) -> None:
            for reader in readers:
                key = _view_of(reader.signed_in)
                if key not in cards and self._inbox.is_visible(question, reader.signed_in):
                    cards[key] = msgspec.json.encode(self._inbox.card(question, reader.signed_in))

        await asyncio.to_thread(make, list(self._readers))
        self._count()
        readers = list(self._readers)
        make(readers)  # for a page that has come since
        for reader in readers:
            if (card := cards.get(_view_of(reader.signed_in))) is not None:
                reader.send("card", card, self.sequence)
        self._bound_unread()

    def _bound_unread(self) -> None:
        unread = {reader: reader.sender.backlog for reader in self._readers}
        total = sum(unread.values())
        for reader in sorted(unread, key=lambda each: -unread[each]):
            if total <= MOST_UNREAD:
                return
            reader.cut_off()
            total -= unread[reader]

    def _send_calls(self) -> None:
        """Send the calls under way to the pages that show them: one list for each operator."""
        lists: dict[OperatorEntry, bytes] = {}
        for reader in list(self._readers):
            now, operator = self._now, reader.signed_in.operator
            if now is None or not now.is_watched(reader.signed_in):
                reader.calls = b""
                continue
            if operator not in lists:
                lists[operator] = msgspec.json.encode(now.calls(reader.signed_in))
            reader.send_calls(lists[operator], self.sequence)

    def _count_lines(self) -> int:
        return 0 if self._activity is None else self._activity.newest()

    def _counted(self) -> int:
        """The newest line by the last count that has ended. Questions wait for no count: that of a
        long log takes minutes, and a damaged index counts nothing."""
        lines = self._lines
        if self._counting is None or self._counting.done():
            if self._counting is not None and self._counting.exception() is None:
                lines = self._counting.result()
            count = asyncio.to_thread(self._count_lines)
            self._counting = asyncio.get_running_loop().create_task(count)
        return lines

    def _read(self, before: dict[str, PendingApproval]) -> dict[str, PendingApproval]:
        found = {each.id: each for each in self._approvals.open()}
        for id in before.keys() - found.keys():
            question = self._approvals.look_up(id)
            if question is not None:
                found[id] = question
        return found

    def _is_followed(self, question: PendingApproval) -> bool:
        if not is_settled(question, time.time()):
            return True
        if question.state == "denied":  # the same call may come again, and be refused
            return time.time() - (question.decided_at or 0.0) < COOL_OFF_S
        ended_at = question.ended_at or question.decided_at or question.asked_at
        # A call that was approved is noted as running only after its grant was used.
        waits_for_run = question.state == "used" and question.run is None
        return waits_for_run and time.time() - ended_at < FOLLOWED_S

    def _send_count(self, reader: _Reader) -> None:
        count = sum(
            each.state == "pending" and self._inbox.is_visible(each, reader.signed_in)
            for each in self._questions.values()
        )
        reader.send("counts", {"pending": count}, self.sequence)

    async def _check(self) -> None:
        """End the streams of sessions that have ended; follow a change of roles."""
        try:
            live = await read_state(self._operators.live)
        except TidegateError:
            return  # a state that cannot be read is read again
        for reader in list(self._readers):
            now = live.get(reader.signed_in.session.id)
            if now is None:
                reader.send("end", {"reason": "The session has ended."}, self.sequence)
                reader.ended.set()
            elif now.operator != reader.signed_in.operator:
                reader.signed_in = now
                reader.send("reload", {}, self.sequence)
            else:
                reader.signed_in = now
