"""New lines in the records of other gates, for the pages that are open here.

While a page is open, its gate tells the others for which operators it is (`WATCH`). Each that
serves the console answers (`LINES`) with the number of the newest line of its record that each of
them may see: when that has changed, and every `AGAIN_S`. It reads its record into its index for
that, beside calls and never for more than a twentieth of the time. No page waits for it: a gate
that says nothing is named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from random import random
from typing import Any, NamedTuple

import msgspec

from tidegate.errors import TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import holds
from tidegate.products.console.activity import Activity
from tidegate.products.console.gate_questions import Shared
from tidegate.products.console.gate_records import GateRecords
from tidegate.store.calls import read_state
from tidegate.typed_values import json_decoder

WATCH, LINES = "lines.watch", "lines.are"
ASK_S = 5.0
WATCH_S = 15.0
"""How long a gate looks after it was asked to."""
TELL_S = 1.0
AGAIN_S = 4.0
GONE_S = 10.0
"""A gate that has said nothing for so long does not answer."""
MOST_WATCHED = 256
"""Operators for whom a gate looks."""
_SOON_S = 1.0
_REST = 19.0
"""A gate rests for so many times what it took to look."""

Publish = Callable[[str, Callable[[SignedIn], Any]], None]
"""Sends an event to the pages of those for whom there is data."""


class _Watch(msgspec.Struct, frozen=True, array_like=True):
    """The gate that asks, and one session of each operator who has a page open there."""

    gate: str
    sessions: tuple[str, ...]


class _Newest(msgspec.Struct, frozen=True, array_like=True):
    """The newest line that each may see of a gate's record, by session."""

    gate: str
    lines: dict[str, int]


class _Said(NamedTuple):
    at: float
    lines: Mapping[str, int]


class NewLines:
    """Asks the other gates, and answers them from the record at `home`. Used on the event loop."""

    def __init__(self, shared: Shared, records: GateRecords, home: Activity) -> None:
        self._mailbox, _, self._sessions, self._own = shared
        self._records = records
        self._home = home
        self._publish: Publish = _nowhere
        self._asked: dict[str, str] = {}
        """The operators of those who read, by the session by which others are asked."""
        self._asked_at = float("-inf")
        self._newest: dict[tuple[str, str], int] = {}
        """What is known, by gate and operator."""
        self._heard_at: dict[str, float] = {}
        """When each gate has said something, or was asked first."""
        self._has_silent = False
        self._watched: dict[str, float] = {}
        """Until when this gate looks for others, by session."""
        self._by_sibling = _Said(float("-inf"), {})
        """What another process of this gate has said."""
        self._telling: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch_decoder = json_decoder(_Watch)
        self._newest_decoder = json_decoder(_Newest)
        self._mailbox.handle(WATCH, self._on_watch, encrypted=True)
        self._mailbox.handle(LINES, self._on_lines, encrypted=True)

    # For a gate with open pages

    def publish_by(self, publish: Publish) -> None:
        """Have `line` and `gates` events sent so."""
        self._publish = publish

    async def look(self, readers: Sequence[SignedIn]) -> None:
        """Have the other gates asked for those who read, again and again while this is called."""
        now = asyncio.get_running_loop().time()
        if not readers:
            self._asked, self._asked_at = {}, float("-inf")
            self._newest, self._heard_at = {}, {}
            return
        found = {each.session.id: each.operator.id for each in readers}
        asked = {id: operator for id, operator in found.items() if id in self._asked}
        for id, operator in found.items():
            if operator not in asked.values():
                asked[id] = operator
        rest_s = ASK_S if asked.keys() <= self._asked.keys() else _SOON_S
        if now - self._asked_at >= rest_s:
            self._asked, self._asked_at = asked, now
            self._begin(self._ask())

    async def _ask(self) -> None:
        with suppress(TidegateError):  # it is asked again
            serving, _ = await self._records.list_others()
            if serving:
                body = msgspec.json.encode(_Watch(self._own, tuple(self._asked)))
                await self._mailbox.send(WATCH, body, encrypted=True)
            await self._name_silent(serving)

    async def _name_silent(self, serving: Sequence[str]) -> None:
        """Say which gates do not answer, and once that all do again."""
        now = asyncio.get_running_loop().time()
        self._heard_at = {gate: self._heard_at.get(gate, now) for gate in serving}
        silent = [gate for gate in serving if now - self._heard_at[gate] >= GONE_S]
        if not silent and not self._has_silent:
            return
        self._has_silent = bool(silent)
        names = await self._records.read_names()

        def name(signed_in: SignedIn) -> dict[str, Any]:
            shown = names if holds(signed_in.operator.roles, "viewer", None) else {}
            return {"silent": [{"gate": each, "name": shown.get(each, each)} for each in silent]}

        self._publish("gates", name)

    def _on_lines(self, sender: str, body: bytes) -> None:
        with suppress(msgspec.MsgspecError):  # of another release
            gate, lines = msgspec.structs.astuple(self._newest_decoder.decode(body))
            now = asyncio.get_running_loop().time()
            if gate == self._own:
                self._by_sibling = _Said(now, lines)
                return
            self._heard_at[gate] = now
            changed: dict[str, int] = {}
            for session, n in lines.items():
                operator = self._asked.get(session)
                if operator is not None and self._newest.get((gate, operator)) != n:
                    self._newest[gate, operator] = changed[operator] = n
            if changed:
                self._publish("line", lambda signed_in: _line(gate, changed, signed_in))

    # For a gate that is asked

    def _on_watch(self, sender: str, body: bytes) -> None:
        with suppress(msgspec.MsgspecError):
            watch, loop = self._watch_decoder.decode(body), asyncio.get_running_loop()
            if watch.gate == self._own:
                return  # the record is the same
            until = loop.time() + WATCH_S
            self._watched.update(dict.fromkeys(watch.sessions[:MOST_WATCHED], until))
            if self._telling is None or self._telling.done():
                self._telling = self._begin(self._tell())

    async def _tell(self) -> None:
        loop = asyncio.get_running_loop()
        sent = _Said(float("-inf"), {})
        lines: dict[str, int] = {}
        read_to: int | None = None
        rests_until = float("-inf")
        while self._keep_watched():
            if (began := loop.time()) >= rests_until:
                with suppress(TidegateError):  # a record that cannot be read is read again
                    newest = await asyncio.to_thread(self._home.read_newest)
                    if newest != read_to or not self._watched.keys() <= lines.keys():
                        lines, read_to = await self._find_newest(newest), newest
                rests_until = loop.time() + (loop.time() - began) * _REST
            now = loop.time()
            if now - self._by_sibling.at < AGAIN_S and self._by_sibling.lines == lines:
                sent = self._by_sibling
            if lines != sent.lines or now - sent.at >= AGAIN_S:
                with suppress(TidegateError):  # it is sent again
                    body = msgspec.json.encode(_Newest(self._own, lines))
                    await self._mailbox.send(LINES, body, encrypted=True)
                    sent = _Said(now, lines)
            # Processes of one gate take turns by chance; what one has said no other one repeats.
            await asyncio.sleep(TELL_S * (1 + random() / 2))

    def _keep_watched(self) -> bool:
        """Whether someone still watches."""
        now = asyncio.get_running_loop().time()
        latest = sorted(self._watched, key=lambda id: -self._watched[id])[:MOST_WATCHED]
        self._watched = {id: self._watched[id] for id in latest if self._watched[id] > now}
        return bool(self._watched)

    async def _find_newest(self, newest: int | None) -> dict[str, int]:
        """The newest line of each session that goes on; 0 for one that sees none, and while the
        index lacks lines. Raises: TidegateError STATE_FAILED."""
        watched, live = list(self._watched), await read_state(self._sessions)

        def find() -> dict[str, int]:
            found = dict.fromkeys(watched, 0)
            if newest is not None:
                known = [(id, live[id]) for id in watched if id in live]
                found |= {id: self._home.newest_seen(each, newest) for id, each in known}
            return found

        return await asyncio.to_thread(find)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _line(gate: str, newest: Mapping[str, int], signed_in: SignedIn) -> dict[str, Any] | None:
    n = newest.get(signed_in.operator.id, 0)
    return {"n": n, "gate": gate} if n else None


def _nowhere(event: str, data_of: Callable[[SignedIn], Any]) -> None:
    """No page is open."""
