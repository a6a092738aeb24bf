"""Terminals: what is typed there, shown or not, and what a person sees whatever is redirected."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TextIO


def open_terminal(*, input_is_taken: bool) -> TextIO | None:
    """Where a person can be asked: standard input if it is a terminal. Where a command reads
    something else from it (`input_is_taken`), the terminal that the command was started on. None
    if there is neither. The caller closes it."""
    if sys.stdin.isatty():
        return open(os.dup(sys.stdin.fileno()), encoding="utf-8")  # noqa: PTH123
    if input_is_taken:
        with suppress(OSError):
            return open("/dev/tty", encoding="utf-8")  # noqa: PTH123
    return None


@contextmanager
def hidden_typing(terminal: TextIO) -> Generator[None]:
    """While the block runs, a terminal does not show what is typed; it does again afterwards, on a
    new line, however the block ends. Raises: termios.error for what is no terminal."""
    import termios

    number = terminal.fileno()
    before = termios.tcgetattr(number)
    hidden = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(number, termios.TCSADRAIN, hidden)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
        write_to_screen(terminal, "\n")


def write_to_screen(terminal: TextIO, text: str) -> None:
    """Write where the person looks who types at a terminal, even if standard output and standard
    error go into files; to standard error if it is no terminal."""
    with suppress(OSError):
        name = os.ttyname(terminal.fileno())
        number = os.open(name, os.O_WRONLY | os.O_NOCTTY)
        try:
            os.write(number, text.encode())
        finally:
            os.close(number)
        return
    sys.stderr.write(text)
    sys.stderr.flush()
