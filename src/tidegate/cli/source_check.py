"""Tries a source before it is saved, and keeps the password that a person gives for it.

What can never work is refused. What does not work now, such as a server that is down, is saved only
if the operator agrees.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

import msgspec

from tidegate.app import App
from tidegate.cli.local_actor import ask, with_app
from tidegate.cli.terminal import ask_secret, print_status
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.config.state import state_directory
from tidegate.engines.common.errors import ACCOUNT
from tidegate.engines.common.url import FOLDER_SCHEME, folder_path
from tidegate.engines.registry import find
from tidegate.errors import Code, TidegateError
from tidegate.identity.tokens import Records
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Connect
from tidegate.model.sources import Source
from tidegate.paths import expand
from tidegate.product import load
from tidegate.secrets.references import typed
from tidegate.secrets.url_logins import asks_for_password, with_password
from tidegate.sources.changes import SourceChanges
from tidegate.sources.kept_passwords import forget_password as forget
from tidegate.sources.kept_passwords import kept_password as keep_password
from tidegate.sources.report import may_pass, place_of
from tidegate.store.passwords import Place

MOST_TRIES = 3
"""How often a person is asked for a password."""


class Tried(NamedTuple):
    """The result. `password` is one that was given and is not saved; `failure` is None if the
    source was reached, and then `state` says what was found."""

    settings: SourceSettings
    password: str | None = None
    state: ConnectionState | None = None
    failure: TidegateError | None = None


def can_ask() -> bool:
    """Whether a person can be asked: stdin and stderr are terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def given_password(settings: SourceSettings, *, from_stdin: bool, asked: bool) -> str | None:
    """The password that the options of a command say to take, if any.

    Raises: TidegateError ARGUMENT_INVALID if the URL has no place for one, or none comes.
    """
    if not (from_stdin or asked):
        return None
    if not asks_for_password(settings.url):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "The URL does not name a user without a password.",
            hint="Write it like postgresql://user@host/database.",
        )
    if from_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    elif can_ask():
        password = ask_password(settings.url)
    else:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "There is no terminal to ask on.",
            hint="Use --password-stdin.",
        )
    if not password:
        raise TidegateError(Code.ARGUMENT_INVALID, "No password was given.")
    return password


def ask_password(url: str) -> str:
    """Ask on the terminal, which shows nothing of it. Empty if none was typed."""
    user = url.partition("://")[2].partition("@")[0].rstrip(":")
    return ask_secret(f"Password of {user} at {place_of(url)}: ")


def try_source(
    config: Config, settings: SourceSettings, tool: str, password: str | None = None
) -> Tried:
    """Open the source through the gate; ask for a password where the server wants one.

    Raises: TidegateError SOURCE_URL, CONFIG_INVALID, ... for a source that can never work.
    """
    tries = 0
    while True:
        try:
            return Tried(settings, password, _connect(config, settings, tool, password))
        except TidegateError as error:
            failure = error
        wants = failure.details.get("cause") == ACCOUNT and asks_for_password(settings.url)
        if not (wants and can_ask() and tries < MOST_TRIES):
            break
        if password is not None:
            print_status(f"{failure.message} {failure.hint}")
        tries += 1
        password = ask_password(settings.url) or None
        if password is None:
            break
    if may_pass(failure):
        return Tried(settings, password, None, failure)
    raise failure


def _connect(
    config: Config, settings: SourceSettings, tool: str, password: str | None
) -> ConnectionState:
    with typed(password) if password is not None else nullcontext() as reference:
        url = settings.url if reference is None else with_password(settings.url, reference)
        # As the operator alone sees it: what the source admits, and to whom, is another question.
        tried = SourceSettings(settings.name, url, options=settings.options)
        app = App.open(msgspec.structs.replace(config, sources=(tried,)))
        return with_app(app, lambda app: ask(app, tool, Connect(), tried.name, ConnectionState))


def absolute_file_url(url: str) -> str:
    """The URL with a relative file made absolute: a saved source means one file from anywhere."""
    try:
        entry = find(url)
    except TidegateError:  # which the check of the URL reports
        return url
    if entry.absolute_url:
        absolute: str = load(entry.absolute_url)(url)
        return absolute
    if url.startswith(f"{FOLDER_SCHEME}://"):
        return f"{FOLDER_SCHEME}://{folder_path(url)}" + "".join(url.partition("?")[1:])
    scheme, slashes, rest = url.partition(":///")
    path, mark, options = rest.partition("?")
    if entry.files is None or not path or path == ":memory:":
        return url
    return f"{scheme}{slashes}{expand(path).absolute()}{mark}{options}"


def require_success(
    tried: Tried,
    *,
    anyway: bool | None,
    undone: str,
    ways: str = "--ask-password or --password-stdin",
) -> None:
    """Go on only with a source that was reached, unless the operator says `anyway`; None where the
    command has no such option.

    `undone` says what was not done, `ways` which options of the command give a password.
    Raises: TidegateError, the failure.
    """
    failure = tried.failure
    if failure is None:
        return
    end = "" if failure.message.endswith(".") else "."
    hint = failure.hint
    missing = tried.password is None and asks_for_password(tried.settings.url)
    if failure.details.get("cause") == ACCOUNT and missing:
        hint = f"Give the password with {ways}."
    if not anyway:
        if anyway is not None:  # before the hint, whose command can be copied up to its end
            hint = f"With --anyway it is saved all the same. {hint}".strip()
        raise TidegateError(failure.code, f"{failure.message}{end} {undone}", hint=hint)
    print_status(f"note: it does not work now: {failure.message}{end} {hint}")


@contextmanager
def kept_password(config: Config, tried: Tried, place: Place) -> Generator[SourceSettings]:
    """The settings with a reference to the password, which is kept if the block succeeds."""
    directory = state_directory(config.state)
    with keep_password(directory, tried.settings, tried.password, place) as settings:
        yield settings


def forget_password(app: App, was: Source) -> None:
    """Remove the kept password of a source that no longer names it, unless another one does."""
    print_problems(forget(app.directory, was, app.state.sources))


def print_problems(problems: Iterable[str]) -> None:
    """Say what stays in the keyring."""
    for problem in problems:
        print_status(f"note: {problem}")


def source_changes(app: App) -> SourceChanges:
    """What changes the saved sources, as the local operator."""
    return SourceChanges(app.state, app.tokens, app.directory, Records(app.note, app.note_less))
