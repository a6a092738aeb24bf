"""Finding and authenticating the server of a state directory, or starting one if none runs.

Several bridges that start at the same time start one server: each takes the lock `start`, searches
for a server again and only then starts one. A started server writes to a pipe when it is ready.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Sequence

from tidegate import __version__
from tidegate.bridge.handshake_file import CHALLENGE, PAGE, Handshake, HandshakeFile, untrusted
from tidegate.bridge.http_client import NotSent, WireError, send_request
from tidegate.errors import Code, TidegateError
from tidegate.system.descriptors import open_pipe
from tidegate.system.private_files import open_file
from tidegate.system.processes import ask_to_end, start_apart

START_S = 30.0
PROOF_S = 10.0
POLL_S = 0.05
_LOG_TAIL_CHARS = 2_000


def _ignore(note: str) -> None:
    return None


class Discovery:
    """Finds the server of the handshake `files`, or runs `tidegate serve` with `arguments`.

    With `settings`, a digest, a server that was started with other settings is refused, because
    it may apply fewer masks and filters than the requested settings.
    """

    def __init__(
        self,
        files: HandshakeFile,
        arguments: Sequence[str],
        settings: str = "",
        note: Callable[[str], None] = _ignore,
    ) -> None:
        self.files = files
        self._settings = settings
        self._arguments = arguments
        self._may_replace = True
        self._note = note

    def read(self) -> Handshake | None:
        """The handshake in the file, if a server runs. Raises: TidegateError BRIDGE_UNTRUSTED."""
        return self.files.read(time.time())

    async def find(self) -> Handshake:
        """The authenticated server, which is started if none runs.

        The first time, a server that a bridge started ends if it has another version, or other
        values of the variables that sources name. Later it stays, as a bridge that started after
        this one may have wanted it so.
        Raises: TidegateError BRIDGE_UNTRUSTED, BRIDGE_NO_SERVER, STATE_FAILED.
        """
        found = await self.look()
        if found is not None and not self._is_outdated(found):
            self._may_replace = False
            return found
        self.files.prepare()
        start_lock = await self._wait_for_start_lock()
        try:
            found = await self.look()
            if found is not None and self._is_outdated(found):
                await self.end(found)
                found = await self.look()
            self._may_replace = False
            if found is None:
                await self._start()
                found = await self.look()
        finally:
            os.close(start_lock)
        if found is None:
            raise _no_server("The started server cannot be found.")
        return found

    def _is_outdated(self, found: Handshake) -> bool:
        if not self._may_replace or found.is_of(__version__, os.environ):
            return False
        if not found.by_bridge:
            self._note(
                f"note: the server (process {found.pid}) has another version or other values of "
                "the variables that sources name; `tidegate stop` ends it"
            )
            self._may_replace = False
        return found.by_bridge

    async def end(self, found: Handshake, patience_s: float = START_S) -> None:
        """Ask an authenticated server to stop, and wait until bridges no longer find it.

        Raises: TidegateError BRIDGE_NO_SERVER if it does not end.
        """
        ask_to_end(found.pid)
        loop = asyncio.get_running_loop()
        late = loop.time() + patience_s
        while (now := self.read()) is not None and now.instance == found.instance:
            if loop.time() > late:
                raise _no_server(f"The server (process {found.pid}) does not end.")
            await asyncio.sleep(POLL_S)

    async def look(self) -> Handshake | None:
        """The authenticated server, None if none runs.

        Raises: TidegateError BRIDGE_UNTRUSTED, BRIDGE_NO_SERVER.
        """
        found = self.read()
        if found is None:
            return None
        challenge = secrets.token_hex(16)
        try:
            async with asyncio.timeout(PROOF_S):
                headers = [(CHALLENGE, challenge)]
                answer = await send_request(found.address, "GET", PAGE, headers, b"", PROOF_S)
                body = await answer.body()
        except NotSent:
            again = self.read()
            if again is not None and again.instance == found.instance:
                raise untrusted("names a port with no server", self.files.file) from None
            return None
        except (WireError, TimeoutError):
            raise _no_server("The server does not answer.") from None
        if answer.status != 200 or not hmac.compare_digest(
            body, b'{"proof":"' + found.proof(challenge).encode() + b'"}'
        ):
            raise untrusted("names a server that did not write it", self.files.file)
        if self._settings and found.settings != self._settings:
            raise TidegateError(
                Code.BRIDGE_NO_SERVER,
                "The server of this state directory was started with other settings",
                hint="Stop that server, or leave out --config (and TIDEGATE_CONFIG) to use its "
                "settings, or name another --state.",
            )
        return found

    async def _wait_for_start_lock(self) -> int:
        """Wait for the lock `start` on a thread, because another bridge may hold it for long."""
        loop = asyncio.get_running_loop()
        lock: asyncio.Future[int] = loop.create_future()

        def deliver(start_lock: int | TidegateError | None) -> None:
            if lock.done():
                if isinstance(start_lock, int):
                    os.close(start_lock)
            elif isinstance(start_lock, int):
                lock.set_result(start_lock)
            else:
                lock.set_exception(start_lock or _no_server("Cannot wait for another bridge."))

        def wait() -> None:
            try:
                start_lock: int | TidegateError | None = self.files.lock("start", wait=True)
            except TidegateError as error:
                start_lock = error
            loop.call_soon_threadsafe(deliver, start_lock)

        threading.Thread(target=wait, name="turn", daemon=True).start()
        try:
            return await asyncio.wait_for(lock, 2 * START_S)
        except TimeoutError:
            raise _no_server("Another bridge has been starting the server for too long.") from None

    async def _start(self) -> None:
        """Start a server that continues after this process, and wait until it can be found."""
        read_end, write_end = open_pipe()
        log = open_file(self.files.log, "overwrite", follow=False)
        # -P: modules in the client's working directory must not be imported.
        command = [sys.executable, "-P", "-m", "tidegate", "serve", "--http", "127.0.0.1:0"]
        try:
            process = start_apart(
                [*command, "--for-bridge", str(write_end), *self._arguments],
                errors=log,
                inherited=[write_end],
            )
        finally:
            os.close(write_end)
            os.close(log)
        line = await _read_line(read_end, START_S)
        if line != b"ready\n":
            if line is None:
                process.kill()
            process.wait()
            raise _no_server(
                self._last_log_line() or f"The server did not start. See `{self.files.log}`."
            )

    def _last_log_line(self) -> str:
        """A message with the last line of the server's log; empty if there is none."""
        try:
            lines = self.files.log.read_text("utf-8", "replace")[-_LOG_TAIL_CHARS:].split("\n")
        except OSError:
            return ""
        lines = [line.removeprefix("tidegate: ") for line in lines if line.strip()]
        return f"The server did not start: {lines[-1]}" if lines else ""


async def _read_line(pipe: int, patience_s: float) -> bytes | None:
    """The first line from the pipe, empty if it is closed before; None after `patience_s`."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    file = os.fdopen(pipe, "rb", 0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    try:
        return await asyncio.wait_for(reader.readline(), patience_s)
    except TimeoutError:
        return None
    finally:
        transport.close()


def _no_server(message: str) -> TidegateError:
    return TidegateError(Code.BRIDGE_NO_SERVER, message)
