"""`tidegate state backup | restore | copy | seal`."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tidegate.app import App
from tidegate.cli.consent import read_passphrase, require_consent
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_state
from tidegate.cli.terminal import ask_secret, print_status
from tidegate.config.state import (
    NO_DATABASE,
    is_database,
    state_directory,
    state_key,
    state_path,
    state_url,
)
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand
from tidegate.products.backup.contents import STATE, Description, read_backup, write_backup
from tidegate.products.backup.later_events import LaterEvents, read_later_events
from tidegate.products.backup.taken_rights import ServerEventLine, take_away
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.sqlite.copies import begin_again, read_gates
from tidegate.store.sqlite.state import SqliteState
from tidegate.system.private_files import create_file, draft_of, make_private_directory
from tidegate.system.terminals import open_terminal, write_to_screen

_WORD = "restore"


def run(arguments: argparse.Namespace) -> int:
    """Do what `arguments.action` says."""
    action = {"backup": _backup, "restore": _restore, "copy": _copy, "seal": _seal}[
        arguments.action
    ]
    action(arguments)
    return 0


def _backup(arguments: argparse.Namespace) -> None:
    config = load_for_state(arguments)
    directory = state_directory(config.state)
    file = expand(arguments.file)
    if file.exists():
        raise _invalid(f"`{file}` is there already; nothing was written.", "Name a new file.")
    passphrase = _passphrase(arguments, twice=True)
    draft = draft_of(file)

    async def note(app: App) -> None:
        app.note("state.backed_up", {"file": str(file.absolute())})

    with_app(App.open(config), note)
    try:
        with open(create_file(draft), "wb") as target:  # noqa: PTH123 - an open descriptor
            described = write_backup(directory, target, passphrase, state_url(config.state_url))
            target.flush()
        draft.rename(file)
    except OSError as error:
        raise TidegateError(
            Code.STATE_FAILED, f"Cannot write `{file}`: {error.strerror}; nothing was kept."
        ) from None
    finally:
        draft.unlink(missing_ok=True)
    print_status(f"{file}: the state of {_moment(described)}, {file.stat().st_size:,} bytes")


def _restore(arguments: argparse.Namespace) -> None:
    if arguments.state_url is not None:
        raise _invalid(
            "A restore makes a state directory; nothing was restored.",
            "Name a directory with --state; `tidegate state copy` moves its state into PostgreSQL.",
        )
    config = msgspec.structs.replace(load_for_state(arguments), state_url=NO_DATABASE)
    place = state_path(config.state)
    with suppress(OSError):
        if place.exists() and any(place.iterdir()):
            raise _invalid(
                f"`{place}` is not empty; nothing was restored.", "Name another --state."
            )
    file = expand(arguments.file)
    passphrase = _passphrase(arguments, twice=False)
    make_private_directory(place.parent)
    draft = draft_of(place)
    try:
        with file.open("rb") as source:
            described = read_backup(source, passphrase, draft)
        now = time.time()
        key = state_key(config.state_key, None)
        later = _later(arguments, described, draft)
        begin_again(draft / STATE, now, described.directory, str(place.absolute()), key)
        # Before it is in its place, so that a kill leaves no state with such rights.
        taken = _take_away(draft, later.events, now, key)
        _put_in_place(draft, place)
    except OSError as error:
        raise TidegateError(
            Code.STATE_FAILED, f"Cannot restore `{file}`: {error.strerror}; nothing was kept."
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)

    async def work(app: App) -> None:
        details = {
            "made_at": _moment(described),
            "former_gate": described.gate,
            "record": _how_followed(arguments, later),
            "taken_away": str(len(taken)),
        }
        app.note("state.restored", {name: text for name, text in details.items() if text})

    with_app(App.open(config), work)
    for each in taken:
        print_status(f"taken away again: {each}")
    print_status(f"{place}: the state of {_moment(described)}; a new record begins")


def _copy(arguments: argparse.Namespace) -> None:
    config = load_for_state(arguments)
    directory, url = state_directory(config.state), state_url(config.state_url)
    target = arguments.target
    if is_database(target) == (url is not None):
        other = "a directory" if url is not None else "postgresql://..."
        raise _invalid(
            "The state is in a place of that kind already; nothing was copied.",
            f"Name {other}, or the state that is copied with --state.",
        )
    from tidegate.store import moving  # needs an extra

    there = state_url(target) if is_database(target) else None
    key = state_key(config.state_key, there or url)
    place = moving.name_of(there) if there else str(expand(target).absolute())

    async def note(app: App) -> None:
        app.note("state.copied", {"to": place})

    try:
        with_app(App.open(config), note)
    except TidegateError as error:
        if error.code is not Code.STATE_FAILED:
            raise  # else: a copy that is finished now has left its line before
    if there is not None:
        rows = moving.move_to_postgres(directory, there, key)
    else:
        rows = moving.move_to_sqlite(url or "", state_directory(target))
    print_status(f"{place}: the state, {rows:,} rows; the former one refuses every process")


def _seal(arguments: argparse.Namespace) -> None:
    config = load_for_state(arguments)

    async def work(app: App) -> int:
        if app.cluster_key is None:
            raise TidegateError(
                Code.CONFIG_INVALID,
                "There is no key of this state.",
                hint="Name it with the setting `state_key`.",
            )
        require_consent(
            app,
            "seal",
            "seal all rows of the state as they are",
            arguments,
            no_word=not app.granted_rights.exist,
        )
        app.note("state.sealed", {})
        return app.state.seal_again()

    rows = with_app(App.open(config, repairs_seals=True), work)
    print_status(f"{rows:,} rows are sealed")


def _later(arguments: argparse.Namespace, described: Description, draft: Path) -> LaterEvents:
    """What happened after the backup. Raises: TidegateError OPERATOR_CONSENT where a record is
    missing and no one says yes."""
    later = LaterEvents([], [])
    if arguments.record:
        gates = read_gates(draft / STATE)
        records = [expand(each) for each in arguments.record]
        later = read_later_events(records, described, draft / "audit-key", gates)
    if (later.missing or not arguments.record) and not arguments.without_record:
        _ask(described, later.missing)
    return later


def _how_followed(arguments: argparse.Namespace, later: LaterEvents) -> str:
    if not arguments.record:
        return "not known"
    return "followed in part" if later.missing else "followed"


def _ask(described: Description, missing: list[str]) -> None:
    terminal = open_terminal(input_is_taken=False)
    lacking = f"the record of {', '.join(missing)}" if missing else "the record"
    if terminal is None:
        raise TidegateError(
            Code.OPERATOR_CONSENT,
            f"Without {lacking}, rights that were taken away after the backup come back.",
            hint="Name the audit directory of each gate with a --record of its own, or agree with"
            " --without-record.",
        )
    with terminal:
        write_to_screen(
            terminal,
            f"Rights that were taken away after {_moment(described)} come back without {lacking}:"
            " tokens that were revoked, operators that were removed, masks that were added. With"
            f" --record DIR they stay away.\nType {_WORD} to agree: ",
        )
        typed = terminal.readline().strip()
    if typed != _WORD:
        raise TidegateError(
            Code.OPERATOR_CONSENT, f"{_WORD!r} was not typed; nothing was restored."
        )


def _take_away(
    draft: Path, events: list[ServerEventLine], now: float, key: ClusterKey | None
) -> list[str]:
    state = SqliteState(draft / STATE, key)
    try:
        return take_away(events, state, now)
    finally:
        state.close()


def _put_in_place(draft: Path, place: Path) -> None:
    """Raises: OSError."""
    if place.exists():
        place.rmdir()
    draft.rename(place)


def _passphrase(arguments: argparse.Namespace, *, twice: bool) -> str:
    if arguments.passphrase_file is not None:
        return read_passphrase(arguments.passphrase_file)
    if not sys.stdin.isatty():
        raise _invalid(
            "The passphrase of the backup is asked for, and standard input is not a terminal.",
            "Give it with --passphrase-file FILE, - for standard input.",
        )
    passphrase = ask_secret("Passphrase of the backup: ")
    if twice and passphrase != ask_secret("The same again: "):
        raise _invalid("The two passphrases differ; nothing was written.", "Run it again.")
    return passphrase


def _moment(described: Description) -> str:
    return datetime.fromtimestamp(described.made_at, UTC).isoformat(timespec="seconds")


def _invalid(message: str, hint: str) -> TidegateError:
    return TidegateError(Code.ARGUMENT_INVALID, message, hint=hint)
