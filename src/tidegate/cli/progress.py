"""A progress bar on stderr: that of rich on a terminal if it is installed, else plain lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from tidegate.cli.terminal import print_status

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
