"""`${COMMAND:["PROGRAM","ARGUMENT"]}`: a secret that a program of the operator's prints.

The program is started as it is written, without a shell, in a session of its own, with the
environment of this process and no input. What it prints on standard output is the secret; what it
writes to standard error is thrown away unread, because it may be one, too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, cast

from tidegate.errors import TidegateError
from tidegate.secrets.readers import MAX_SECRET_BYTES, Misspelt, Reading, unavailable
from tidegate.system.program_output import TooMuchOutputError, read_output

LIMIT_S = 10.0
"""How long a program may take."""

_KIND = "COMMAND"


def check_name(name: str) -> Misspelt | None:
    """What is wrong with the list of a program and its arguments."""
    if _words(name) is not None:
        return None
    form = _meant(name) or '${COMMAND:["PROGRAM","ARGUMENT"]}'
    return Misspelt(
        "is no list of a program and its arguments, as JSON.",
        f"Write `{form}`; a `}}` in an argument is written \\u007d.",
    )


def read_all(names: Collection[str], _: Any) -> Mapping[str, Reading]:
    """Raises: TidegateError SECRET_UNAVAILABLE."""
    return {name: Reading(_run(name)) for name in names}


def _words(name: str) -> list[str] | None:
    try:
        found: Any = json.loads(name)
    except ValueError:
        return None
    if not isinstance(found, list) or not found:
        return None
    words = cast("list[Any]", found)
    if not all(isinstance(each, str) and "\0" not in each for each in words) or not words[0]:
        return None
    return words


def _meant(name: str) -> str | None:
    """The reference for a command that was written as for a shell."""
    import shlex

    try:
        words = shlex.split(name)
    except ValueError:
        return None
    if not words or name.lstrip()[:1] in '[{"':
        return None
    text = json.dumps(words, separators=(",", ":"), ensure_ascii=False).replace("}", "\\u007d")
    return f"${{{_KIND}:{text}}}"


def _run(name: str) -> str:
    """What the program prints. Raises: TidegateError."""
    words = _words(name)
    if words is None:
        raise _failed(name, "it is no list of a program and its arguments")
    try:
        status, output = read_output(words, LIMIT_S, MAX_SECRET_BYTES)
    except TimeoutError:
        raise _failed(name, f"the program did not end within {LIMIT_S:g} s") from None
    except TooMuchOutputError:
        raise _failed(name, "it printed more than 64 KiB") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text"
        raise _failed(name, f"the program cannot be started ({why})") from None
    if status:
        raise _failed(name, f"the program ended with {_status(status)}")
    try:
        secret = output.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise _failed(name, "it printed what is not UTF-8 text") from None
    if not secret:
        raise _failed(name, "it printed nothing")
    return secret


def _status(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"status {code}"


def _failed(name: str, why: str) -> TidegateError:
    hint = "Run the program yourself, as the account of the server, and see what it says."
    return unavailable((_KIND, name), why, hint)
