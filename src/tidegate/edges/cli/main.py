"""Where the command line begins and ends: words in, one exit status out.

Decides which module runs a command and how a failure looks: one line on stderr, the status of its
code. It knows no concrete class behind the gate; `open_app` is handed in by `tidegate.__main__`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from errno import EBADF
from importlib import import_module

from tidegate.edges.cli.application import OpenApp
from tidegate.errors import FATES, Code, GateError

OK = 0
INTERRUPTED = 130
READER_GONE = 141
UNWRITTEN = 74


def main(words: Sequence[str], open_app: OpenApp) -> int:
    """Run the command that `words` say and return its exit status. Never raises."""
    try:
        _refuse_unsayable(words)
        _keep_streams()
        return _run(words, open_app)
    except GateError as error:
        _complain(error)
        return error.fate.exit_status
    except KeyboardInterrupt:
        print("tidegate: Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return READER_GONE
    except OSError as error:
        what = f"`{error.filename}`" if error.filename else "standard input or output"
        reason = error.strerror or error
        print(f"tidegate: Cannot read or write {what}: {reason}.", file=sys.stderr)
        _drop_output()
        return UNWRITTEN
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


def _refuse_unsayable(words: Sequence[str]) -> None:
    """Raises: GateError for a word that is no text: no name and no record could hold it."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise GateError(
                Code.ARGUMENT_INVALID, f"The argument {word[:40]!r} is not UTF-8 text."
            ) from None


def _keep_streams() -> None:
    """Fill the places of streams that are closed, so that no file of ours gets one of them.

    Raises: OSError if there is nowhere to write an answer to.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest number that is free: this one
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - it is, if closed
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - for as long as we run
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - as above
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as above
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - as above
        raise OSError(EBADF, os.strerror(EBADF))


def _drop_output() -> None:
    """Keep Python from failing once more at its own flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


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
    hint = "" if error.hint and error.message.endswith(error.hint) else error.hint
    print(" ".join(f"tidegate: {error.message}{end} {hint}".split()), file=sys.stderr)
