"""Line-based input and output on a pair of pipes, one message in a line."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from contextlib import suppress
from typing import BinaryIO

LINE_LIMIT = 10 * 1024 * 1024
CHECK_S = 0.2


class Lines(asyncio.Protocol):
    """Splits the input into lines. `on_line` gets each line without its end, `on_oversized_line` is
    called once for a line of more than `line_limit` bytes."""

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        self.line_limit = line_limit
        self._buffer = bytearray()
        self._skipping = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_line(self, line: bytes) -> None:
        """One message, stripped and not empty."""
        raise NotImplementedError

    def on_oversized_line(self) -> None:
        """A message was too long and is skipped."""
        raise NotImplementedError

    def data_received(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        if lines:
            self._buffer += lines[0]
            lines[0] = bytes(self._buffer)
            self._buffer.clear()
            for line in lines:
                self._take(line)
        self._buffer += rest
        if len(self._buffer) > self.line_limit:
            self._buffer.clear()
            if not self._skipping:
                self.on_oversized_line()
            self._skipping = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.end()

    def eof_received(self) -> None:
        if self._buffer:
            self._take(bytes(self._buffer))
            self._buffer.clear()
        self.end()

    def end(self) -> None:
        """Take note of the end of the input."""
        if not self.ended.done():
            self.ended.set_result(None)

    def _take(self, line: bytes) -> None:
        if self._skipping:
            self._skipping = False
            return
        if len(line) > self.line_limit:
            self.on_oversized_line()
            return
        frame = line.strip()
        if frame:
            self.on_line(frame)


class Output:
    """Writes whole messages to a file descriptor.

    A full pipe blocks the event loop. That is acceptable, because the client has stopped reading
    and is the only client of this process.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._broken = False

    async def reader_closed(self) -> None:
        """Return when the reader has closed its end, if the system reports that."""
        import select

        if not hasattr(select, "poll"):
            await asyncio.get_running_loop().create_future()
        poll = select.poll()
        poll.register(self._fd, 0)
        while not any(  # noqa: ASYNC110 - no event for it
            seen & (select.POLLERR | select.POLLHUP) for _, seen in poll.poll(0)
        ):
            await asyncio.sleep(CHECK_S)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self._broken:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                os.set_blocking(self._fd, True)
            except OSError:
                self._broken = True


async def feed(lines: Lines, stdin: BinaryIO) -> asyncio.ReadTransport | None:
    """Feed `lines` from a pipe or, where the loop cannot watch it (a file, /dev/null), from a
    thread."""
    loop = asyncio.get_running_loop()
    mode = os.fstat(stdin.fileno()).st_mode
    # asyncio accepts any character device, but never reports the end of some.
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stdin.isatty():
        with suppress(ValueError, OSError):
            transport, _ = await loop.connect_read_pipe(lambda: lines, stdin)
            return transport

    def pump() -> None:
        # RuntimeError: the loop was closed meanwhile, so that no one reads the lines any more.
        with suppress(RuntimeError):
            while data := os.read(stdin.fileno(), 65_536):
                loop.call_soon_threadsafe(lines.data_received, data)
            loop.call_soon_threadsafe(lines.eof_received)

    threading.Thread(target=pump, name="stdin", daemon=True).start()
    return None
