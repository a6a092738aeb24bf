"""The calls under way in other processes on the same state, and how they are ended from here.

A process that is asked to (`WATCH`) sends the list of its calls whenever it changes, and every
`AGAIN_S`, for as long as someone watches: one that sends nothing does not answer. The list holds
names of sources and no URL, and the statements as Now shows them, so gates with a key encrypt it.
The id of a call begins with that of its process, so a cancel is for that one alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import structs

from tidegate.errors import TidegateError
from tidegate.gateway.running_calls import CallState, RunningCall, RunningCalls
from tidegate.model.actors import Actor
from tidegate.model.sources import Source
from tidegate.store.messages import MOST_BODY, Mailbox
from tidegate.typed_values import json_decoder

WATCH, CALLS, CANCEL = "calls.watch", "calls.are", "calls.cancel"
WATCH_S = 30.0
"""How long a process sends its calls after it was asked to."""
ASK_S = 10.0
TELL_S = 0.5
AGAIN_S = 2.0
GONE_S = 5.0
"""A list counts for so long, and is sent again in time."""
MOST_CALLS = 50


class _SentCall(msgspec.Struct, frozen=True, array_like=True):
    """A `RunningCall` with the name of its source."""

    id: str
    actor: Actor
    client: str
    address: str
    surface: str
    tool: str
    request: str
    source: str | None
    statement: str
    effect: str
    state: CallState
    since: float
    rows: int | None


class _SentCalls(msgspec.Struct, frozen=True, array_like=True):
    """The oldest calls of a process, how many there are besides, and its gate, empty where gates
    do not share the state."""

    calls: tuple[_SentCall, ...]
    more: int
    gate: str = ""


class OtherProcesses:
    """What other processes run. `find_source` gives a source by its name; `gate` is the id of the
    gate that this process serves. On the event loop."""

    def __init__(
        self,
        mailbox: Mailbox,
        running: RunningCalls,
        find_source: Callable[[str], Source | None],
        gate: str = "",
    ) -> None:
        self._mailbox = mailbox
        self._running = running
        self._find_source = find_source
        self._gate = gate
        self._first_asked_at = float("-inf")
        self._asked_at = float("-inf")
        self._watched_until = float("-inf")
        self._telling: asyncio.Task[None] | None = None
        self._lists: dict[str, tuple[float, _SentCalls]] = {}
        self._decoder = json_decoder(_SentCalls)
        mailbox.handle(WATCH, self._on_watch)
        mailbox.handle(CALLS, self._on_calls, encrypted=True)
        mailbox.handle(CANCEL, self._on_cancel)

    # For a process that shows calls

    async def watch(self) -> None:
        """Have the others send their calls for `WATCH_S` from now on. Never raises: without the
        state nothing of others is known."""
        now = asyncio.get_running_loop().time()
        if now - self._asked_at >= WATCH_S:
            self._first_asked_at = now
        if now - self._asked_at >= ASK_S:
            self._asked_at = now
            with suppress(TidegateError):
                await self._mailbox.send(WATCH, b"")

    def calls(self) -> tuple[list[RunningCall], int]:
        """The calls of the others, and how many there are besides."""
        lists = self._lists_now()
        found = [self._read(call) for sent in lists for call in sent.calls]
        return found, sum(sent.more for sent in lists)

    def answering(self) -> Counter[str] | None:
        """How many processes of each other gate answer; None as long as they have not had the time
        to."""
        if asyncio.get_running_loop().time() - self._first_asked_at < GONE_S:
            return None
        return Counter(sent.gate for sent in self._lists_now())

    def find(self, id: str) -> RunningCall | None:
        """The call of that id, if it is under way in another process."""
        return next((each for each in self.calls()[0] if each.id == id), None)

    async def cancel(self, id: str) -> None:
        """Have a call of another process end. Raises: TidegateError STATE_FAILED."""
        await self._mailbox.send(CANCEL, id.encode(), to=id.rpartition("-")[0])

    def _lists_now(self) -> list[_SentCalls]:
        """The lists that count."""
        now = asyncio.get_running_loop().time()
        self._lists = {
            sender: (at, sent) for sender, (at, sent) in self._lists.items() if now - at < GONE_S
        }
        return [sent for _, sent in self._lists.values()]

    # For a process whose calls are shown

    def _on_watch(self, sender: str, body: bytes) -> None:
        loop = asyncio.get_running_loop()
        self._watched_until = loop.time() + WATCH_S
        if self._telling is None or self._telling.done():
            self._telling = loop.create_task(self._tell())

    async def _tell(self) -> None:
        loop, sent, sent_at = asyncio.get_running_loop(), b"", float("-inf")
        while (now := loop.time()) < self._watched_until:
            body = _encoded(*self._running.oldest(MOST_CALLS, _everything), self._gate)
            if body != sent or now - sent_at >= AGAIN_S:
                with suppress(TidegateError):  # it is sent again
                    await self._mailbox.send(CALLS, body, encrypted=True)
                    sent, sent_at = body, now
            await asyncio.sleep(TELL_S)

    def _on_calls(self, sender: str, body: bytes) -> None:
        with suppress(msgspec.DecodeError):  # of another version of Tidegate
            self._lists[sender] = asyncio.get_running_loop().time(), self._decoder.decode(body)

    def _on_cancel(self, sender: str, body: bytes) -> None:
        self._running.cancel(body.decode("ascii", "replace"))

    def _read(self, call: _SentCall) -> RunningCall:
        source = None if call.source is None else self._find_source(call.source)
        fields: dict[str, Any] = {**structs.asdict(call), "source": source}
        return RunningCall(**fields)


def _everything(actor: Actor, source: Source | None) -> bool:
    return True


def _encoded(calls: Sequence[RunningCall], more: int, gate: str) -> bytes:
    sent = [_sent(each) for each in calls]
    body = msgspec.json.encode(_SentCalls(tuple(sent), more, gate))
    if len(body) > MOST_BODY:
        short = [structs.replace(each, statement="") for each in sent]
        body = msgspec.json.encode(_SentCalls(tuple(short), more, gate))
    return body


def _sent(call: RunningCall) -> _SentCall:
    name = None if call.source is None else call.source.name
    fields: dict[str, Any] = {**structs.asdict(call), "source": name}
    return _SentCall(**fields)
