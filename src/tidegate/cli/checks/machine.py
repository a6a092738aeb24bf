"""Checks of the machine: Python, extras, disk, clock, terminal. Nothing is opened or changed."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import tidegate
from tidegate import __version__
from tidegate.audit.tail import Tail, TailFilter
from tidegate.cli.checks.finding import Finding, fault, note, ok
from tidegate.config.installation import EXTRAS, import_silently, installation
from tidegate.errors import TidegateError

_OLDEST = (3, 11)
_LEAST_FREE_MB = 100
_LITTLE_FREE_MB = 1_000
_TOLERANCE_S = 60.0


def check_python() -> Iterator[Finding]:
    """The interpreter, the version, how it was installed, and which `tidegate` a shell starts."""
    here = installation()
    version = ".".join(map(str, sys.version_info[:3]))
    what = f"Python {version}, Tidegate {__version__}, installed with {here.kind}"
    if sys.version_info < _OLDEST:
        yield fault("python", what, "Use Python 3.11 or later")
    else:
        yield ok("python", what)
    found = shutil.which("tidegate")
    own = Path(sys.executable).with_name("tidegate")
    if found is not None and own.is_file() and not own.samefile(found):
        yield note(
            "python",
            f"`tidegate` in a shell is another program, `{found}`, than this one, `{own}`",
            "Change PATH, or remove the one that you do not use",
        )


def check_extras(needed: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """The optional packages. `needed` names for each extra what needs it."""
    here = installation()
    working: list[str] = []
    for extra, module in EXTRAS.items():
        wanted = ", ".join(sorted(needed.get(extra, ())))
        if extra not in here.extras:
            if wanted:
                text = f"the extra `{extra}` is not installed, and {wanted} needs it"
                yield fault("extras", text, f"{here.add_command(extra)}")
            continue
        try:
            import_silently(module)
        except Exception as error:  # noqa: BLE001 - a broken package may raise anything
            reason = f"{type(error).__name__}: {error}"
            text = f"the extra `{extra}` is installed and cannot be used: {reason}"
            yield (fault if wanted else note)("extras", text, f"{here.add_command(extra)}")
        else:
            working.append(extra)
    absent = [extra for extra in EXTRAS if extra not in here.extras and not needed.get(extra)]
    unused = f"; not installed and not needed: {', '.join(absent)}" if absent else ""
    yield ok("extras", f"{', '.join(working) or 'none'}{unused}")


def check_disk(directory: Path) -> Iterator[Finding]:
    """The space for the state and the record, without which nothing that changes data runs."""
    free_mb = shutil.disk_usage(directory).free // 1_000_000
    text = f"{free_mb:,} MB are free for the state and the audit log"
    if free_mb < _LEAST_FREE_MB:
        yield fault("disk", text, f"Free space on the disk of {directory}")
    elif free_mb < _LITTLE_FREE_MB:
        yield note("disk", text, f"Free space on the disk of {directory}")
    else:
        yield ok("disk", text)


def check_clock(state: Path | None) -> Iterator[Finding]:
    """The clock, by which tokens expire and records are ordered: no record may lie ahead of it."""
    now = time.time()
    shown = datetime.fromtimestamp(now).astimezone().isoformat(timespec="seconds")
    installed_at = Path(tidegate.__file__).stat().st_mtime
    newest = _newest_record(state) if state is not None else None
    if newest is not None and newest > now + _TOLERANCE_S:
        text = f"{shown}, which is {newest - now:,.0f} s before the newest record"
    elif installed_at > now + _TOLERANCE_S:
        text = f"{shown}, which is before this version was installed"
    else:
        yield ok("clock", shown)
        return
    yield fault("clock", text, "Set the clock of this machine, for instance by NTP")


def _newest_record(state: Path) -> float | None:
    try:
        records = Tail(state / "audit").newest(TailFilter(None, None, None, True, None), 1)
    except TidegateError:  # the check of the record reports it
        return None
    return records[-1].time.timestamp() if records else None


def check_terminal() -> Iterator[Finding]:
    """Whether commands can ask a person here, and show every character."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding != "utf8":
        yield note(
            "terminal",
            f"the output is written as {encoding or 'nothing known'}, which lacks characters",
            "Set LANG=C.UTF-8",
        )
    if not sys.stdin.isatty():
        yield note(
            "terminal",
            "standard input is no terminal: no command can ask a person here",
            "Run commands that grant something in a terminal, or give --passphrase-file",
        )
        return
    width = shutil.get_terminal_size().columns
    color = "without color" if "NO_COLOR" in os.environ else "with color"
    yield ok("terminal", f"{os.environ.get('TERM', 'no TERM')}, {width} columns, {color}")
