"""Progress on stderr: a bar, which is that of rich on a terminal if it is installed and else plain
lines; and one line with the stage of a call."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TextIO

from tidegate.cli.terminal import harmless, print_status
from tidegate.model.requests import Progress

Advance = Callable[[str, int], None]
"""Called with (the current part, the number of steps since the last call)."""


@contextmanager
def progress(title: str, total: int) -> Generator[Advance]:
    """Show the progress of a job of about `total` steps, until the block ends."""
    if sys.stderr.isatty():
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        except ImportError:
            pass
        else:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%  {task.fields[part]}"),
                TimeElapsedColumn(),
            )
            with Progress(*columns, console=Console(stderr=True)) as bars:
                task = bars.add_task(title, total=total, part="")
                yield lambda part, steps: bars.update(task, advance=steps, part=part)
                bars.update(task, completed=total, part="done")
            return
    yield _lines(title, total)
    print_status(f"{title}: done")


class StageLine:
    """The stage of a statement that takes long, on one line of a terminal that is written again and
    again, and removed at the end. Shows nothing in the first `after_s` seconds. Used on an event
    loop."""

    def __init__(self, stream: TextIO, after_s: float = 0.5) -> None:
        self._stream = stream
        self._stage = ""
        self._is_shown = False
        self._timer = asyncio.get_running_loop().call_later(after_s, self._begin)

    def show(self, share: float, stage: str) -> None:
        """The progress of a call (`model.requests.Progress`)."""
        self._stage = stage
        if self._is_shown:
            self._write(harmless(stage))

    def clear(self) -> None:
        """Remove the line."""
        self._timer.cancel()
        if self._is_shown:
            self._is_shown = False
            self._write("")

    def _begin(self) -> None:
        self._is_shown = True
        self._write(harmless(self._stage))

    def _write(self, text: str) -> None:
        self._stream.write(f"\r{text}\x1b[K")
        self._stream.flush()


@contextmanager
def stage_line() -> Generator[Progress | None]:
    """Show on stderr how far a call is, until the block ends; None if stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    line = StageLine(sys.stderr)
    try:
        yield line.show
    finally:
        line.clear()


def _lines(title: str, total: int) -> Advance:
    """An `Advance` that prints a line at each fifth of the total."""
    done = printed = 0

    def advance(part: str, steps: int) -> None:
        nonlocal done, printed
        done += steps
        share = min(done * 5 // total, 5)
        if share > printed:
            printed = share
            print_status(f"{title}: {share * 20:3d}%  {part}")

    return advance
