"""Opens the state where it is: a file in the state directory, or a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.api import State
from tidegate.store.gates import GateEntry

FILE = "state.db"
SEEN_SERVER = "state-server.json"
"""In the directory of a gate whose state is in PostgreSQL: the server where it was last seen."""


def open_state(
    url: str | None, directory: Path, key: ClusterKey | None = None, *, is_repair: bool = False
) -> State:
    """The state in the database of a URL, or, without one, in a file in the directory. It is made
    if it is not there, and brought up to date. With a key its rows are sealed (`store/seals.py`);
    in a repair all rows count, until `State.seal_again`.
    Raises: TidegateError STATE_FAILED, ENGINE_MISSING; CONFIG_INVALID for another key than theirs,
    and for the directory of a gate whose state is in PostgreSQL: a file would be another state.
    """
    if url is None:
        _check_place(directory)
        from tidegate.store.sqlite.state import SqliteState

        return SqliteState(directory / FILE, key, is_repair=is_repair)
    try:
        from tidegate.store.postgres.state import PostgresState
    except ImportError as error:
        raise _needs_extra() from error
    return PostgresState(url, directory, key, is_repair=is_repair)


def check_state(url: str | None, directory: Path, key: ClusterKey | None = None) -> None:
    """Whether `open_state` would open the state, without that: nothing is made, changed or brought
    up to date. Raises: as `open_state`."""
    if url is None:
        _check_place(directory)
        path = directory / FILE
        if path.is_file():
            from tidegate.store.sqlite import copies

            copies.check(path, key)
        return
    try:
        from tidegate.store.postgres import health
    except ImportError as error:
        raise _needs_extra() from error
    health.check(url, directory, key)


def _check_place(directory: Path) -> None:
    """Raises: TidegateError CONFIG_INVALID for a gate whose state is not in its directory."""
    if (directory / SEEN_SERVER).is_file() and not (directory / FILE).is_file():
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"The state of the gate in `{directory}` is in PostgreSQL, and no database is named.",
            hint="Name the settings of the gate with --config, or the database with"
            " --state postgresql://... or TIDEGATE_STATE_URL.",
        )


def read_gates(url: str) -> tuple[tuple[GateEntry, ...], float]:
    """The gates of the state in the database of a URL, and the time there. Nothing is made or
    changed. Raises: TidegateError STATE_FAILED, also if there is no state; ENGINE_MISSING."""
    try:
        from tidegate.store.postgres import gates
    except ImportError as error:
        raise _needs_extra() from error
    return gates.read_gates(url)


def read_sources(url: str | None, directory: Path) -> tuple[Source, ...]:
    """The saved sources of a state, also those that no gate has sealed: none of them may be opened.
    None if there is no state file. Nothing is made or changed. Raises: TidegateError STATE_FAILED,
    ENGINE_MISSING."""
    if url is None:
        from tidegate.store.sqlite import copies

        path = directory / FILE
        return copies.read_sources(path) if path.is_file() else ()
    try:
        from tidegate.store.postgres import sources
    except ImportError as error:
        raise _needs_extra() from error
    return sources.read_sources(url)


def _needs_extra() -> TidegateError:
    from tidegate.config.installation import add_command

    return TidegateError(
        Code.ENGINE_MISSING,
        "A state in PostgreSQL needs the extra `postgres`.",
        hint=f"Run: {add_command('postgres')}",
    )
