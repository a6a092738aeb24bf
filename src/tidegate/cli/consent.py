"""Asks the person at the terminal before a command gives rights away.

An agent with a shell can run every command that its person can. A typed word on a terminal stops
one that follows its instructions; the operator's passphrase stops one that does not know it. Only
an account of its own for the gate stops one that writes files of the state directory itself.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tidegate.app import App
from tidegate.cli.terminal import ask_secret
from tidegate.errors import Code, TidegateError
from tidegate.system.terminals import open_terminal, write_to_screen

_TRIES = 3


def require_consent(
    app: App, word: str, what: str, arguments: argparse.Namespace, *, no_word: bool = False
) -> None:
    """Go on only if a person agrees to `what`, a clause such as "create token x (readOnly)".

    The person types `word`, or the operator's passphrase where one is set; `--passphrase-file`
    gives it without a terminal. `no_word` says that no word needs to be typed: a person has
    just answered the command's questions, or the state has given no rights yet (`App.gave_rights`),
    so that a script can begin there.

    Raises: TidegateError OPERATOR_CONSENT if they do not agree or cannot be asked, and then
    nothing has been changed.
    """
    taken = getattr(arguments, "password_stdin", False)
    if app.operator_passphrase.is_set:
        _require_passphrase(app, what, arguments.passphrase_file, input_is_taken=taken)
    elif not no_word:
        _require_word(word, what, input_is_taken=taken)


def _require_word(word: str, what: str, *, input_is_taken: bool) -> None:
    terminal = open_terminal(input_is_taken=input_is_taken)
    if terminal is None:
        raise TidegateError(
            Code.OPERATOR_CONSENT,
            f"To {what}, a person must agree on a terminal, and standard input is not a terminal.",
            hint="Run it in a terminal; or set a passphrase there with `tidegate passphrase set`,"
            " and give it with --passphrase-file.",
        )
    with terminal:
        write_to_screen(terminal, f"This will {what}.\nType {word} to agree: ")
        typed = terminal.readline().strip()
    if typed != word:
        raise TidegateError(
            Code.OPERATOR_CONSENT, f"{word!r} was not typed; nothing was changed.",
            hint="Run it again if you agree.",
        )  # fmt: skip


def _require_passphrase(app: App, what: str, file: str | None, *, input_is_taken: bool) -> None:
    if file is not None:
        if app.operator_passphrase.matches(read_passphrase(file)):
            return
    elif terminal := open_terminal(input_is_taken=input_is_taken):
        with terminal:
            write_to_screen(terminal, f"This will {what}.\n")
            for _ in range(_TRIES):
                typed = ask_secret("Operator's passphrase: ", terminal)
                if app.operator_passphrase.matches(typed):
                    return
                write_to_screen(terminal, "That is not the passphrase.\n")
    else:
        raise TidegateError(
            Code.OPERATOR_CONSENT,
            f"To {what}, the operator's passphrase is needed, and standard input is no terminal.",
            hint="Run it in a terminal, or give the passphrase with --passphrase-file.",
        )
    app.note("operator.refused", {"to": what})
    raise TidegateError(
        Code.OPERATOR_CONSENT,
        "That is not the operator's passphrase; nothing was changed.",
        hint="`tidegate passphrase set --help` says where its hash is kept.",
    )


def read_new_passphrase(file: str | None, command: str) -> str:
    """A new passphrase, typed twice on the terminal, or the first line of a file.

    Raises: TidegateError OPERATOR_CONSENT without a terminal, ARGUMENT_INVALID.
    """
    if file is not None:
        return read_passphrase(file)
    if not sys.stdin.isatty():
        raise TidegateError(
            Code.OPERATOR_CONSENT,
            "The passphrase is typed on a terminal, and standard input is not a terminal.",
            hint="Run it in a terminal, or give the passphrase with --new-passphrase-file.",
        )
    passphrase = ask_secret("New passphrase: ")
    if passphrase != ask_secret("The same again: "):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "The two passphrases differ; nothing was changed.",
            hint=f"Run `tidegate {command}` again.",
        )
    return passphrase


def read_passphrase(file: str) -> str:
    """The first line of a file, of standard input for `-`.

    Raises: TidegateError ARGUMENT_INVALID if it cannot be read.
    """
    try:
        text = sys.stdin.readline() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"Cannot read the passphrase file `{file}`: {reason}."
        ) from None
    return text.partition("\n")[0].rstrip("\r")
