"""What a program prints, within limits of time and size. It blocks: call it on a thread."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress


class TooMuchOutputError(Exception):
    """A program printed more than was to be read."""


def read_output(words: Sequence[str], limit_s: float, most_bytes: int) -> tuple[int, bytes]:
    """The exit status (negative: the signal that ended it) and the standard output of a program,
    which has our environment, reads nothing, and whose standard error is thrown away. It is ended
    at its limit, with all of its session.

    Raises: OSError if it cannot be started, TimeoutError, TooMuchOutputError.
    """
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            output = _read(process, limit_s, most_bytes)
        except BaseException:
            # It was not waited for yet, so that its id is no other's; and a program that has
            # ended may have left others in its session.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, output


def _read(process: subprocess.Popen[bytes], limit_s: float, most_bytes: int) -> bytes:
    assert process.stdout is not None  # noqa: S101 - for the type checker
    pipe = process.stdout.fileno()
    ready = select.poll()
    ready.register(pipe, select.POLLIN | select.POLLHUP)
    until = time.monotonic() + limit_s
    output = b""
    while ready.poll(max(0.0, until - time.monotonic()) * 1_000):
        part = os.read(pipe, 65_536)
        output += part
        if len(output) > most_bytes:
            raise TooMuchOutputError
        if not part:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
                return output
            break
    raise TimeoutError
