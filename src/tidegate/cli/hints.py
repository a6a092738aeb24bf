"""What the local operator can type about a failure: hints of the gate, in the command line's words.

The gate's own hints are for any caller, and name no command that an agent should run.
"""

from __future__ import annotations

import argparse

from tidegate.engines.common.errors import ACCOUNT
from tidegate.errors import Code, TidegateError
from tidegate.secrets import LITERAL_REFUSED

_OF_THE_SOURCE = {Code.SOURCE_URL, Code.SOURCE_UNREACHABLE, Code.KEYRING_FAILED}
"""Codes of failures that another setting of the source may end."""
_TRIES_WHAT_IS_SAVED = {"ask", "describe", "embed", "explain", "export", "judge", "query", "tables"}
"""Modules of commands that open a source that is saved already."""
_PASSWORD_COMMANDS = {"setup": "--password-stdin", "source": "--ask-password or --password-stdin"}


def advise(error: TidegateError, arguments: argparse.Namespace) -> None:
    """Add to the error's hint what the person at the command line can do about a source."""
    module: str = arguments.module
    if error.message == LITERAL_REFUSED and module in _PASSWORD_COMMANDS:
        options = _PASSWORD_COMMANDS[module]
        error.hint = f"Leave it out, and give it with {options}. Or: {error.hint}"
        return
    name = _source_of(arguments)
    if name is None:
        return
    if "source update NAME" in error.hint:
        error.hint = error.hint.replace("source update NAME", f"source update {name}")
    elif error.code in _OF_THE_SOURCE and "tidegate source" not in error.hint:
        option = " --ask-password" if error.details.get("cause") == ACCOUNT else ""
        hint = f"`tidegate source update {name}{option}` changes what is saved of it."
        error.hint = f"{error.hint} {hint}".strip()


def _source_of(arguments: argparse.Namespace) -> str | None:
    """The saved source that the command opens, if it opens one."""
    if arguments.module == "source":
        return arguments.name if arguments.action in ("test", "harden") else None
    if arguments.module not in _TRIES_WHAT_IS_SAVED:
        return None
    name = getattr(arguments, "source", None) or getattr(arguments, "first", None)
    return name if isinstance(name, str) else None
