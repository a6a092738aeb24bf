"""The command line's entry point: arguments in, an exit status out.

Only the module of the requested command is imported, for a fast start. A failure is one line on
stderr and the exit status of its code (`errors.ERRORS`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from errno import EBADF, ENOENT
from importlib import import_module
from io import TextIOWrapper

from tidegate.errors import ERRORS, Code, TidegateError
from tidegate.system.descriptors import STDOUT, lead_to, open_missing_streams, open_nowhere

OK = 0
INTERRUPTED = 130
READER_GONE = 141
UNWRITTEN = 74


def main(words: Sequence[str] | None = None) -> int:
    """Run the command in `words`, the arguments of this process if None, and return its exit
    status. Raises nothing, unless TIDEGATE_TRACE is set."""
    if words is None and "_ARGCOMPLETE" in os.environ:
        from tidegate.cli.completion import complete

        complete()
    words = sys.argv[1:] if words is None else words
    try:
        _check_encodable(words)
        _keep_streams()
        return _run(words)
    except TidegateError as error:
        _complain(error)
        return error.mapping.exit_status
    except KeyboardInterrupt:
        print("tidegate: Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return READER_GONE
    except OSError as error:
        print(f"tidegate: {_unusable(error)}.", file=sys.stderr)
        _drop_output()
        return UNWRITTEN
    except Exception as error:  # an internal error is shown as one line, too
        if "TIDEGATE_TRACE" in os.environ:
            raise
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        _complain(
            TidegateError(
                Code.INTERNAL,
                f"Internal error: {what}.",
                hint="Set TIDEGATE_TRACE=1 to get a traceback, and report it.",
            )
        )
        return ERRORS[Code.INTERNAL].exit_status


def _unusable(error: OSError) -> str:
    """What could not be read or written, and why."""
    reason = error.strerror or error
    if error.filename:
        return f"Cannot read or write `{error.filename}`: {reason}"
    if error.errno == ENOENT:
        return "The current directory was removed: go to another one"
    return f"Cannot read or write standard input or output: {reason}"


def _check_encodable(words: Sequence[str]) -> None:
    """Raises: TidegateError for an argument that is not UTF-8, which no record could hold."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise TidegateError(
                Code.ARGUMENT_INVALID, f"The argument {word[:40]!r} is not UTF-8 text."
            ) from None


def _keep_streams() -> None:
    """Open /dev/null for closed standard streams, so that no other file gets their numbers, and
    escape what the terminal's encoding lacks, as `\\u2603`.

    Raises: OSError if standard output is closed.
    """
    open_missing_streams()
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - it is, if closed
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - for as long as we run
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - as above
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as above
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - as above
        raise OSError(EBADF, os.strerror(EBADF))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Redirect stdout to /dev/null, so that Python's flush at exit does not fail again."""
    lead_to(STDOUT, open_nowhere())


def _run(words: Sequence[str]) -> int:
    from tidegate.cli.parser import build

    if not words:
        print(build().format_screen(), file=sys.stderr)
        return ERRORS[Code.ARGUMENT_INVALID].exit_status
    if words[0] == "help":  # no command, and what many type
        words = [*words[1:], "--help"]
    try:
        arguments = build(words).parse_args(words)
    except SystemExit:  # --help, which has been printed
        sys.stdout.flush()
        return OK
    try:
        arguments.words = tuple(words)
        name: str = arguments.module
        module = import_module(name if "." in name else f"tidegate.cli.commands.{name}")
        status: int = module.run(arguments)
    except TidegateError as error:
        from tidegate.cli.hints import advise  # imported lazily: only a failure needs it

        advise(error, arguments, words)
        raise
    sys.stdout.flush()
    return status


def _complain(error: TidegateError) -> None:
    """`tidegate: message hint` on one line."""
    end = "" if error.message.endswith((".", "?", "!")) else "."
    hint = "" if error.hint and error.message.endswith(error.hint) else error.hint
    if error.code is Code.SOURCE_UNKNOWN and hint.startswith("Ask the operator"):
        hint = "`tidegate source add NAME URL` adds one."  # who types here is the operator
    from tidegate.cli.terminal import print_status  # imported lazily: only a failure needs it

    print_status(" ".join(f"tidegate: {error.message}{end} {hint}".split()), failed=True)
