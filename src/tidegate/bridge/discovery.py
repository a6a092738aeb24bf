"""Finds the server of a state directory, makes sure that it is the one, and starts one if none is.

Bridges that start at once start one server: whoever holds the lock `start` looks once more, and
then starts it. The wait for a started server is for its word on a pipe, or its end.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from tidegate.bridge.handshake import CHALLENGE, PAGE, Handshake, HandshakeFile, check_trust
from tidegate.bridge.http_client import NotSent, WireError, ask
from tidegate.errors import Code, TidegateError

START_S = 30.0
PROOF_S = 10.0
_MOST_SAID = 2_000


class Discovery:
    """Of the server at `place`; `words` start one: those of `tidegate serve`, after its name.

    With `settings`, the mark of some, a server that was started with others is refused: its masks
    and filters may be fewer than those that were asked for.
    """

    def __init__(self, place: HandshakeFile, words: Sequence[str], settings: str = "") -> None:
        self.place = place
        self._settings = settings
        self._words = words

    def reread(self) -> Handshake | None:
        """What the file says now, if a server runs. Raises: TidegateError BRIDGE_UNTRUSTED."""
        return self.place.read(time.time())

    async def find(self) -> Handshake:
        """A server that has proved to be the one, started now if need be.

        Raises: TidegateError BRIDGE_UNTRUSTED, BRIDGE_NO_SERVER, STATE_FAILED.
        """
        found = await self._look()
        if found is not None:
            return found
        self.place.prepare()
        turn = await self._wait_turn()
        try:
            found = await self._look()
            if found is None:
                await self._start()
                found = await self._look()
        finally:
            os.close(turn)
        if found is None:
            raise _no_server("The server that was started cannot be found.")
        return found

    async def _look(self) -> Handshake | None:
        found = self.reread()
        if found is None:
            return None
        challenge = secrets.token_hex(16)
        try:
            async with asyncio.timeout(PROOF_S):
                headers = [(CHALLENGE, challenge)]
                answer = await ask(found.host, found.port, "GET", PAGE, headers, b"", PROOF_S)
                body = await answer.body()
        except NotSent:
            again = self.reread()
            if again is not None and again.instance == found.instance:
                raise check_trust("names a port where nobody listens", self.place.file) from None
            return None
        except (WireError, TimeoutError):
            raise _no_server("The server does not answer.") from None
        if answer.status != 200 or not hmac.compare_digest(
            body, b'{"proof":"' + found.proof(challenge).encode() + b'"}'
        ):
            raise check_trust("names a server that is not its writer", self.place.file)
        if self._settings and found.settings != self._settings:
            raise TidegateError(
                Code.BRIDGE_NO_SERVER,
                "The server of this state directory was started with other settings",
                hint="Stop it, leave out --config (or TIDEGATE_CONFIG) to take its settings, or "
                "name another --state.",
            )
        return found

    async def _wait_turn(self) -> int:
        """The lock `start`, waited for on a thread of its own: another bridge may have it."""
        loop = asyncio.get_running_loop()
        taken: asyncio.Future[int] = loop.create_future()

        def hand_over(turn: int | TidegateError | None) -> None:
            if taken.done():
                if isinstance(turn, int):
                    os.close(turn)
            elif isinstance(turn, int):
                taken.set_result(turn)
            else:
                taken.set_exception(turn or _no_server("Cannot wait for another bridge."))

        def wait() -> None:
            try:
                turn: int | TidegateError | None = self.place.lock("start", wait=True)
            except TidegateError as error:
                turn = error
            loop.call_soon_threadsafe(hand_over, turn)

        threading.Thread(target=wait, name="turn", daemon=True).start()
        try:
            return await asyncio.wait_for(taken, 2 * START_S)
        except TimeoutError:
            raise _no_server("Another bridge has been starting the server for too long.") from None

    async def _start(self) -> None:
        """Start a server that outlives us, and wait until it can be found."""
        ours, theirs = os.pipe()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        log = os.open(self.place.log, flags, 0o600)
        # -P: what lies in the directory where a client happens to run is not ours to import.
        command = [sys.executable, "-P", "-m", "tidegate", "serve", "--http", "127.0.0.1:0"]
        try:
            process = subprocess.Popen(  # noqa: ASYNC220  milliseconds; our own words
                [*command, "--for-bridge", str(theirs), *self._words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[theirs],
                start_new_session=True,
            )
        finally:
            os.close(theirs)
            os.close(log)
        word = await _word_from(ours, START_S)
        if word != b"ready\n":
            if word is None:
                process.kill()
            process.wait()
            raise _no_server(self._said() or "The server that was started said nothing.")

    def _said(self) -> str:
        """The last line of what the server complained about."""
        try:
            lines = self.place.log.read_text("utf-8", "replace")[-_MOST_SAID:].split("\n")
        except OSError:
            return ""
        said = [line.removeprefix("tidegate: ") for line in lines if line.strip()]
        return f"The server did not start: {said[-1]}" if said else ""


async def _word_from(pipe: int, patience_s: float) -> bytes | None:
    """What was written to the pipe before it was closed; None if nobody does either in time."""
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
