"""Where the command line begins and ends: words in, one exit status out.

Decides which module runs a command and how a failure looks: one line on stderr, the status of its
code. It knows no concrete class behind the gate; `open_app` is handed in by `tidegate.__main__`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from tidegate.edges.cli.application import OpenApp
from tidegate.errors import FATES, Code, GateError

OK = 0
INTERRUPTED = 130
READER_GONE = 141


def main(words: Sequence[str], open_app: OpenApp) -> int:
    """Run the command that `words` say and return its exit status. Never raises."""
    try:
        return _run(words, open_app)
    except GateError as error:
        _complain(error)
        return error.fate.exit_status
    except KeyboardInterrupt:
        print("tidegate: Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; keep Python from failing once more at its own flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except Exception as error:  # the last edge: a fault becomes one line too
        if "TIDEGATE_TRACE" in os.environ:
            raise
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        _complain(
            GateError(
                Code.INTERNAL,
                f"A fault of Tidegate itself: {what}.",
                hint="Set TIDEGATE_TRACE=1 to see where, and report it.",
            )
        )
        return FATES[Code.INTERNAL].exit_status


def _run(words: Sequence[str], open_app: OpenApp) -> int:
    from tidegate.edges.cli.parser import build

    try:
        arguments = build().parse_args(words)
    except SystemExit:  # --help, which has been printed
        sys.stdout.flush()
        return OK
    status: int = import_module(f"tidegate.edges.cli.{arguments.module}").run(arguments, open_app)
    sys.stdout.flush()
    return status


def _complain(error: GateError) -> None:
    """`tidegate: message hint` on one line."""
    end = "" if error.message.endswith((".", "?", "!")) else "."
    print(" ".join(f"tidegate: {error.message}{end} {error.hint}".split()), file=sys.stderr)
