"""A worker's end: what its parent gives it at the start, and how it answers until one of them ends.

The parent starts it by `tidegate serve ... --worker PLACE`. Its listening sockets and its channel
are descriptors that it inherits; a secret comes over the channel, since other accounts can read the
words of a command.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from tidegate import __version__
from tidegate.edges.accepting import ConnectionCounts
from tidegate.edges.http.worker_relay import WorkerWay
from tidegate.edges.listening import Sockets
from tidegate.errors import Code, TidegateError
from tidegate.model.worker_share import WorkerShare
from tidegate.serve.worker_channel import Message, Ready, WorkerChannel
from tidegate.siblings import Siblings
from tidegate.system.descriptors import keep_from_children
from tidegate.typed_values import decode_json

SECRET_BYTES = 32
FIRST_S = 30.0
"""How long a worker waits for the first word of its parent."""


class WorkerPlace(msgspec.Struct, frozen=True):
    """Which worker of how many, the process of the parent, and the numbers of its descriptors: of
    the channel, of the sockets by the name of what listens there, and of the memory in which
    workers show how many connections they have (`edges.accepting`), with the place in it. At
    `private` other workers pass requests on to it, which find its socket by its number in
    `folder`."""

    number: int
    count: int
    parent: int
    channel: int
    sockets: dict[str, int]
    counts: int
    slot: int
    private: int
    folder: str

    def words(self) -> tuple[str, str]:
        """The option of `serve` that says it."""
        return "--worker", msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, text: str) -> WorkerPlace:
        """Raises: TidegateError ARGUMENT_INVALID."""
        try:
            return decode_json(text, cls)
        except msgspec.DecodeError:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "--worker is for the processes that `serve --workers` starts.",
                hint="Leave it out.",
            ) from None


class Worker:
    """This process as a worker: its sockets, its siblings, and the way to its parent."""

    def __init__(self, place: WorkerPlace) -> None:
        given = (place.channel, place.counts, place.private, *place.sockets.values())
        for descriptor in given:
            keep_from_children(descriptor)
        self.number = place.number
        sockets = {name: socket.socket(fileno=each) for name, each in place.sockets.items()}
        for each in sockets.values():
            each.setblocking(False)
        counts = {
            name: ConnectionCounts(place.counts, row, place.slot)
            for row, name in enumerate(sorted(sockets))
        }
        self.sockets = Sockets(sockets, counts)
        private = socket.socket(fileno=place.private)
        private.setblocking(False)
        self.sockets.way = WorkerWay(place.folder, place.number, place.count, private)
        self._end = socket.socket(fileno=place.channel)
        share = WorkerShare(place.number, place.count)
        self.siblings = Siblings(share, self._read_secret(), place.parent)
        self._channel: WorkerChannel | None = None
        self._task: asyncio.Task[None] | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._announce: Callable[[], None] | None = None

    def _read_secret(self) -> bytes:
        """The first bytes that the parent sends. Raises: TidegateError SERVER_STOPPING if
        it is gone."""
        self._end.settimeout(FIRST_S)
        found = b""
        try:
            while len(found) < SECRET_BYTES and (part := self._end.recv(SECRET_BYTES - len(found))):
                found += part
        except OSError:
            found = b""
        if len(found) < SECRET_BYTES:
            raise TidegateError(Code.SERVER_STOPPING, "The process that started this worker ended")
        return found

    async def follow(self, on_parent_gone: Callable[[], None]) -> None:
        """Take what the parent says from now on, in the background."""
        self._channel = channel = await WorkerChannel.open(self._end)
        self.siblings.send = lambda topic, body: channel.send("tell", topic, body=body)
        self.siblings.say_last = self._say_last

        async def take() -> None:
            async for message in channel.messages():
                self._take(channel, message)
            on_parent_gone()

        self._task = asyncio.get_running_loop().create_task(take())

    def _take(self, channel: WorkerChannel, message: Message) -> None:
        if message.kind == "pass":
            self.siblings.take(message.topic, message.body)
        elif message.kind == "announce" and self._announce is not None:
            self._begin(asyncio.to_thread(self._announce))  # it reads the state
        elif message.kind == "ask":
            self._begin(self._answer(channel, message))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, channel: WorkerChannel, message: Message) -> None:
        answer = self.siblings.answers.get(message.topic)
        body = b"" if answer is None else await answer()
        channel.send("answer", message.topic, message.number, body)

    def report_ready(
        self, edges: Sequence[str], console: str, announce: Callable[[], None]
    ) -> None:
        """Say that callers are served. `announce` is called if the parent wants this worker to
        print where."""
        self._announce = announce
        if self._channel is not None:
            ready = Ready(tuple(edges), console, __version__)
            self._channel.send("ready", body=msgspec.json.encode(ready))

    async def _say_last(self) -> None:
        """Give the parent the last answer to each question; no caller is served any more."""
        channel = self._channel
        if channel is None:
            return
        for topic, answer in self.siblings.answers.items():
            channel.send("last", topic, body=await answer())
        await channel.flush()
        if self._task is not None:
            self._task.cancel()
        channel.close()
