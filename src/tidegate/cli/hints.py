"""What the local operator can type about a failure: hints of the gate, in the command line's words.

The gate's own hints are for any caller, and name no command that an agent should run.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence

from tidegate.config.installation import EXTRAS, add_command, installation
from tidegate.engines.common.errors import ACCOUNT
from tidegate.errors import Code, TidegateError
from tidegate.secrets.redaction import redact
from tidegate.secrets.url_logins import LITERAL_REFUSED, split_password

_OF_THE_SOURCE = {Code.SOURCE_URL, Code.SOURCE_UNREACHABLE, Code.KEYRING_FAILED}
"""Codes of failures that another setting of the source may end."""
_TRIES_WHAT_IS_SAVED = {"ask", "describe", "embed", "explain", "export", "judge", "query", "tables"}
"""Modules of commands that open a source that is saved already."""
_PASSWORD_COMMANDS = {"setup": "--password-stdin", "source": "--ask-password or --password-stdin"}


def advise(error: TidegateError, arguments: argparse.Namespace, words: Sequence[str] = ()) -> None:
    """Add to the error's hint what the person at the command line can do about a source, or about
    an extra that is missing for the command in `words`."""
    module: str = arguments.module
    error.hint = _with_command(error.hint, words)
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


def _with_command(hint: str, words: Sequence[str]) -> str:
    """The hint with the whole command to type, if it says to add an extra: this one, with it."""
    if not words:
        return hint
    for extra in EXTRAS:
        adding = add_command(extra)
        if adding in hint:
            return hint.replace(adding, installation().command_with(extra, without_secrets(words)))
    return hint


def without_secrets(words: Iterable[str]) -> list[str]:
    """The arguments of a command, without the passwords in URLs. What else of a URL may be a secret
    is masked."""
    return [_without_secret(word) if "://" in word else word for word in words]


def _without_secret(url: str) -> str:
    url, _ = split_password(url)
    bare = re.sub(r":?\$\{[^}]*\}", "", url)  # references, which are no secrets
    return url if redact(bare) == bare else redact(url)


def _source_of(arguments: argparse.Namespace) -> str | None:
    """The saved source that the command opens, if it opens one."""
    if arguments.module == "source":
        return arguments.name if arguments.action in ("test", "harden") else None
    if arguments.module not in _TRIES_WHAT_IS_SAVED:
        return None
    name = getattr(arguments, "source", None) or getattr(arguments, "first", None)
    return name if isinstance(name, str) else None
