"""One worker as its parent sees it: the process, the channel to it, and what it last answered."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

import msgspec

from tidegate.serve.worker import WorkerPlace
from tidegate.serve.worker_channel import Message, Ready, WorkerChannel
from tidegate.system.processes import Notice, ask_child, start_child
from tidegate.typed_values import decode_json

PROGRAM = (sys.executable, "-P", "-m", "tidegate")
"""`-P`: no module of the directory in which the gate was started takes the place of one of ours."""
PATIENCE_S = 2.0
"""How long a worker may take to answer a question of the parent."""


class WorkerProcess:
    """A worker that was started. `serial` is a number that no other worker of this parent has."""

    def __init__(
        self,
        place: WorkerPlace,
        serial: int,
        process: asyncio.subprocess.Process,
        channel: WorkerChannel,
        on_tell: Callable[[WorkerProcess, str, bytes], None],
    ) -> None:
        self.number = place.number
        self.serial = serial
        self.slot = place.slot
        self.began_at = asyncio.get_running_loop().time()
        self.ready: Ready | None = None
        self.last: dict[str, bytes] = {}
        """The last answer to each question."""
        self.retired = False
        """Whether another worker has its place, or the gate stops: it is not started again."""
        self._process = process
        self._channel = channel
        self._on_tell = on_tell
        self._settled = asyncio.Event()
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._next = 0
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def start(
        cls,
        words: Sequence[str],
        place: WorkerPlace,
        serial: int,
        secret: bytes,
        on_tell: Callable[[WorkerProcess, str, bytes], None],
    ) -> WorkerProcess:
        """Start the command `words` as the worker of `place`, whose channel is made here. Raises:
        OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            place = msgspec.structs.replace(place, channel=theirs.fileno())
            ours.sendall(secret)
            inherited: Collection[int] = (
                theirs.fileno(),
                place.counts,
                place.private,
                *place.sockets.values(),
            )
            command = [*PROGRAM, *words, *place.words()]
            process = await start_child(command, inherited)
        channel = await WorkerChannel.open(ours)
        return cls(place, serial, process, channel, on_tell)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Its exit status, of a signal the negative number; None while it runs."""
        return self._process.returncode

    @property
    def serves(self) -> bool:
        """Whether it takes callers."""
        return self.ready is not None and self.status is None and not self.retired

    async def settled(self) -> bool:
        """Wait until it serves, which is True, or has ended."""
        await self._settled.wait()
        return self.ready is not None and self.status is None

    async def wait_ended(self) -> int:
        """Wait for its end and for all that it said before; its exit status."""
        status = await self._process.wait()
        await asyncio.wait([self._reading], timeout=PATIENCE_S)
        self._reading.cancel()
        self._channel.close()
        self._settled.set()
        return status

    def notify(self, notice: Notice) -> None:
        """Send it a signal."""
        ask_child(self._process, notice)

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            self._process.kill()

    def announce(self) -> None:
        """Have it print where the gate is."""
        self._channel.send("announce")

    def pass_on(self, topic: str, body: bytes) -> None:
        """Tell it what another worker said."""
        self._channel.send("pass", topic, body=body)

    async def ask(self, topic: str) -> bytes | None:
        """Its answer, also to be found in `last`; None if it gives none in time."""
        self._next += 1
        number = self._next
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self._channel.send("ask", topic, number)
        try:
            return await asyncio.wait_for(answer, PATIENCE_S)
        except TimeoutError:
            return None
        finally:
            del self._asked[number]

    async def _read(self) -> None:
        async for message in self._channel.messages():
            self._take(message)

    def _take(self, message: Message) -> None:
        if message.kind == "ready":
            with suppress(msgspec.DecodeError):
                self.ready = decode_json(message.body, Ready)
                self._settled.set()
        elif message.kind == "tell":
            self._on_tell(self, message.topic, message.body)
        elif message.kind in ("answer", "last"):
            self.last[message.topic] = message.body
            waiting = self._asked.get(message.number)
            if waiting is not None and not waiting.done():
                waiting.set_result(message.body)
