"""Runs the commands that a document tells its reader to type, and compares what it shows.

Two kinds of fenced block are read. In `console` a line that starts with `$ ` is a command, lines
that start with `> ` continue it, and the lines below are what it prints, where `...` stands for
anything. In `sh` every line is a command, and what it prints is not compared.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from support.operator_terminal import operator_terminal

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_END = "--- end of command"


class Command(NamedTuple):
    """A command as the document has it; `shown` None if the document shows no output."""

    line: int
    text: str
    shown: str | None


class Outcome(NamedTuple):
    command: Command
    status: int
    printed: str


def commands(document: Path) -> Iterator[Command]:
    """Every command of the document, in order."""
    text = document.read_text("utf-8")
    for block in _BLOCK.finditer(text):
        first = text[: block.start(2)].count("\n") + 1
        lines = block[2].split("\n")[:-1]
        yield from (_in_console if block[1] == "console" else _in_script)(lines, first)


def _in_console(lines: list[str], first: int) -> Iterator[Command]:
    at = 0
    while at < len(lines):
        assert lines[at].startswith("$ "), f"line {first + at}: output before any command"
        begin, text = at, lines[at][2:]
        at += 1
        while at < len(lines) and lines[at].startswith("> "):
            text += "\n" + lines[at][2:]
            at += 1
        shown: list[str] = []
        while at < len(lines) and not lines[at].startswith("$ "):
            shown.append(lines[at].rstrip())
            at += 1
        yield Command(first + begin, text, "\n".join(shown) if shown else None)


def _in_script(lines: list[str], first: int) -> Iterator[Command]:
    begin, text = 0, ""
    for at, line in enumerate(lines):
        if not text and (not line.strip() or line.startswith("#")):
            continue
        begin, text = (begin, f"{text}\n{line}") if text else (at, line)
        if _is_whole(text):
            yield Command(first + begin, text, None)
            text = ""
    assert not text, f"line {first + begin}: a command without an end"


def _is_whole(text: str) -> bool:
    """Whether a shell has all it needs to run the text."""
    if text.endswith("\\"):
        return False
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True).returncode == 0


def play(
    document: Path,
    cwd: Path,
    env: Mapping[str, str],
    leave_out: Callable[[Command], bool] = lambda command: False,
) -> list[Outcome]:
    """Type the document's commands into one shell, at a terminal whose operator agrees to what a
    command asks. A command may end with any status."""
    chosen = [command for command in commands(document) if not leave_out(command)]
    script = "".join(f"{command.text}\nprintf '\\n%s %s\\n' '{_END}' $?\n" for command in chosen)
    with operator_terminal() as terminal:
        ended = subprocess.run(
            ["bash", "-c", script],
            cwd=cwd, env=env, stdin=terminal, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, encoding="utf-8", timeout=300, check=False,
        )  # fmt: skip
    parts = re.split(rf"\n?\n{_END} (\d+)\n", ended.stdout)
    assert len(parts) == 2 * len(chosen) + 1, ended.stdout[-2_000:]
    return [
        Outcome(command, int(parts[2 * at + 1]), parts[2 * at]) for at, command in enumerate(chosen)
    ]


def is_as_shown(outcome: Outcome) -> bool:
    """Whether the command printed what the document shows, if it shows anything."""
    if outcome.command.shown is None:
        return True
    printed = "\n".join(line.rstrip() for line in outcome.printed.splitlines())
    pattern = re.escape(outcome.command.shown).replace(re.escape("..."), ".*?")
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def report(outcome: Outcome) -> str:
    """What to tell whoever broke it."""
    command = outcome.command
    return (
        f"line {command.line}: $ {command.text}\n--- shown\n{command.shown}\n"
        f"--- printed (status {outcome.status})\n{outcome.printed}"
    )
