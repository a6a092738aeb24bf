"""Line-based input and output on a pair of pipes, one message in a line."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import BinaryIO

from tidegate.protocol.jsonrpc import BYTE_ORDER_MARK

LINE_LIMIT = 10 * 1024 * 1024
MOST_UNREAD = 4 * 1024 * 1024
AT_ONCE = 512 if not hasattr(select, "PIPE_BUF") else select.PIPE_BUF


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
        frame = line.removeprefix(BYTE_ORDER_MARK).strip()
        if frame:
            self.on_line(frame)


class Output:
    """Writes whole messages to a file descriptor, and never waits for the reader.

    What the reader leaves no room for is written by a thread. After `MOST_UNREAD` bytes of it the
    input rests that was given to `hold_back`, so that a client that does not read asks no more.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._unread = 0
        self._queue: SimpleQueue[memoryview] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._empty: asyncio.Future[None] | None = None
        self._input: asyncio.ReadTransport | None = None
        self._poll = select.poll() if hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(fd, select.POLLOUT)
        self._watches = stat.S_ISFIFO(os.fstat(fd).st_mode)
        if self._watches:
            # Readable is the end for writing of a pipe only when the other end is closed.
            self._loop.add_reader(fd, self._close)

    async def reader_closed(self) -> None:
        """Return when the reader has closed its end, if the system reports that."""
        await asyncio.shield(self._closed)

    async def drained(self) -> None:
        """Return when the reader has taken all that was written, or has gone."""
        if self._unread and not self._closed.done():
            self._empty = self._empty or self._loop.create_future()
            await asyncio.wait({self._empty, self._closed}, return_when=asyncio.FIRST_COMPLETED)

    def hold_back(self, transport: asyncio.ReadTransport | None) -> None:
        """Let this input rest while much is unread."""
        self._input = transport

    def write(self, data: bytes) -> None:
        if self._closed.done():
            return
        rest = memoryview(data)
        if not self._unread:
            rest = self._write_what_fits(rest)
        if not rest:
            return
        self._unread += len(rest)
        if self._thread is None:
            self._thread = threading.Thread(target=self._pump, name="stdout", daemon=True)
            self._thread.start()
        self._queue.put(rest)
        if self._unread > MOST_UNREAD and self._input is not None:
            self._input.pause_reading()

    def stop(self) -> None:
        """Watch the reader no more."""
        if self._watches:
            self._watches = False
            self._loop.remove_reader(self._fd)

    def _write_what_fits(self, rest: memoryview) -> memoryview:
        """Write what the descriptor takes without waiting, and return the rest. One that is ready
        takes `AT_ONCE` bytes (POSIX, PIPE_BUF)."""
        poll = self._poll
        if poll is None:
            return rest
        try:
            while rest and (seen := poll.poll(0)) and not seen[0][1] & ~select.POLLOUT:
                rest = rest[os.write(self._fd, rest[:AT_ONCE]) :]
        except BlockingIOError:
            return rest
        except OSError:
            self._close()
            return rest[:0]
        return rest

    def _pump(self) -> None:
        """Write what is queued, in a thread. RuntimeError: the loop was closed meanwhile."""
        with suppress(RuntimeError):
            while True:
                rest = self._queue.get()
                while rest:
                    try:
                        written = os.write(self._fd, rest)
                    except BlockingIOError:
                        select.select((), (self._fd,), ())
                        continue
                    except OSError:
                        self._loop.call_soon_threadsafe(self._close)
                        return
                    rest = rest[written:]
                    self._loop.call_soon_threadsafe(self._note_written, written)

    def _note_written(self, count: int) -> None:
        self._unread -= count
        if self._unread <= MOST_UNREAD and self._input is not None and not self._input.is_closing():
            self._input.resume_reading()
        if not self._unread and self._empty is not None:
            self._empty.set_result(None)
            self._empty = None

    def _close(self) -> None:
        self.stop()
        if not self._closed.done():
            self._closed.set_result(None)


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
