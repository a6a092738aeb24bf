"""Runs the command line for `python -m tidegate` and for the console script `tidegate`."""

from __future__ import annotations

import sys
from importlib import import_module

NO_POSIX = (
    "tidegate: Tidegate runs on Linux and macOS. Use WSL, or connect to a gate by its address and"
    " sign in."
)
UNAVAILABLE = 69
_ONLY_TELL = frozenset({"--help", "-h", "--help-all", "--version"})


def main() -> int:
    """Run the command line; returns its exit status. Where the system has no POSIX file locks, as
    Windows, only the help and the version are there."""
    words = sys.argv[1:]
    only_tells = words[:1] in (["version"], ["help"]) or not _ONLY_TELL.isdisjoint(words)
    if not only_tells and not _has_posix():
        print(NO_POSIX, file=sys.stderr)  # noqa: T201
        return UNAVAILABLE
    from tidegate.cli.main import main as run

    return run()


def _has_posix() -> bool:
    try:
        import_module("fcntl")
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
