"""A terminal with an operator at it, who types what commands ask for."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Generator

from support.eventually import PATIENCE_S

_ASKED = re.compile(rb"Type (\S+) to agree: |(passphrase: |The same again: )")


@contextlib.contextmanager
def operator_terminal(*passphrases: str, agrees: bool = True) -> Generator[int]:
    """A file descriptor of a terminal, to be the standard input of commands.

    The operator types the word that is asked for, another one if they do not agree, and one of
    `passphrases` after the other where a passphrase is asked for.
    """
    keyboard, terminal = os.openpty()
    waiting = list(passphrases)

    def read_prompts() -> None:
        seen = b""
        while True:
            try:
                part = os.read(keyboard, 4096)
            except OSError:
                return
            if not part:
                return
            seen += part
            while found := _ASKED.search(seen):
                seen = seen[found.end() :]
                if found[2]:
                    typed = waiting.pop(0).encode() if waiting else b""
                else:
                    typed = found[1] if agrees else b"no"
                os.write(keyboard, typed + b"\n")

    operator = threading.Thread(target=read_prompts, daemon=True)
    operator.start()
    try:
        yield terminal
    finally:
        os.close(terminal)
        operator.join(PATIENCE_S)
        # A thread that still read could take what is meant for another file of that number.
        assert not operator.is_alive(), "a command still holds the terminal"
        os.close(keyboard)


@contextlib.contextmanager
def at_operator_terminal() -> Generator[None]:
    """Commands of this process read from a terminal whose operator agrees to what they ask."""
    before = sys.stdin
    with operator_terminal() as terminal, open(terminal, closefd=False) as sys.stdin:
        try:
            yield
        finally:
            sys.stdin = before
