"""Where the state of this server is kept."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from tidegate.errors import Code, TidegateError
from tidegate.paths import expand, of_platform
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.secrets.references import check_references, resolve
from tidegate.secrets.url_logins import refuse_literal
from tidegate.system.file_rights import is_ours, may_all_write, name_owner
from tidegate.system.private_files import make_private_directory

NO_DATABASE = ""
"""As `state_url`: the state is in its directory, whatever the environment names."""
_DATABASE = ("postgresql://", "postgres://", "${")


def is_database(text: str) -> bool:
    """Whether a state is named by the URL of a database, or a reference to one."""
    return text.startswith(_DATABASE)


def state_url(configured: str | None) -> str | None:
    """The URL of the state's database, with its secrets: as configured, else TIDEGATE_STATE_URL.
    None for a state in the directory, as also where `NO_DATABASE` is configured.

    Raises: TidegateError SOURCE_URL for a URL that holds its password, and for a reference that
    leads nowhere; ARGUMENT_INVALID for the URL of something else.
    """
    chosen = os.environ.get("TIDEGATE_STATE_URL") if configured is None else configured
    if not chosen:
        return None
    if configured is not None:  # a variable of the environment is a place for secrets
        refuse_literal(chosen)
    found = _resolved(chosen)
    if not found.startswith(_DATABASE[:2]):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "The state's URL is not one of PostgreSQL.",
            hint="Write postgresql://USER:${ENV:NAME}@HOST/DATABASE.",
        )
    return found


def state_key(configured: str | None, database: str | None) -> ClusterKey | None:
    """The key of the gates of one state: as configured, else TIDEGATE_STATE_KEY. None for a state
    in a file that has none; one in a `database` needs it.

    Raises: TidegateError SOURCE_URL for a reference that leads nowhere; ARGUMENT_INVALID for a key
    that is too short; CONFIG_INVALID for one that is no reference, and where one is missing.
    """
    chosen = configured or os.environ.get("TIDEGATE_STATE_KEY") or None
    if chosen is None:
        if database is None:
            return None
        raise TidegateError(
            Code.CONFIG_INVALID,
            "A state in PostgreSQL needs a key that its gates share.",
            hint="Name the key that they have with --config or TIDEGATE_STATE_KEY. For the first "
            "gate make one with `openssl rand -hex 32`, keep it in a file of this account, and set "
            'state_key = "${FILE:/path/of/it}".',
        )
    if configured is not None and not _is_reference(chosen):
        raise TidegateError(
            Code.CONFIG_INVALID,
            "`state_key` holds the key itself.",
            hint="Keep the key in a file or a vault, and write a reference: ${FILE:/path/of/it}.",
        )
    return ClusterKey(_resolved(chosen))


def _resolved(text: str) -> str:
    """The text with its secrets. Raises: TidegateError SOURCE_URL, which advises about a state and
    not about a source."""
    check_references(text)
    try:
        return resolve(text)
    except TidegateError as error:
        if "source update" in error.hint:
            error.hint = (
                "Set it for the server and for each command, or keep the secret in a file of this"
                " account: ${FILE:/path/of/it}."
            )
        raise


def _is_reference(text: str) -> bool:
    return text.startswith("${") and text.endswith("}")


def state_path(configured: str | None) -> Path:
    """Where the directory of all state is or would be: as configured, else TIDEGATE_STATE, else the
    platform's own. Nothing is made.

    Raises: TidegateError ARGUMENT_INVALID if it is in a home directory and there is none.
    """
    chosen = configured or os.environ.get("TIDEGATE_STATE")
    if chosen:
        if is_database(chosen):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "The state's directory is a URL.",
                hint="Name a database with the setting `state_url`, or TIDEGATE_STATE_URL.",
            )
        return expand(chosen)
    from platformdirs import user_data_path

    return of_platform(
        partial(user_data_path, "tidegate", appauthor=False),
        hint="Name the state directory with `--state` or TIDEGATE_STATE, or set HOME.",
    )


def state_directory(configured: str | None) -> Path:
    """The directory of all state at `state_path`.

    Made with mode 0700 if it is not there.
    Raises: TidegateError STATE_FAILED if it cannot be made, belongs to another account, or if every
    user may write in it.
    """
    path = state_path(configured)
    try:
        make_private_directory(path)
        status = path.stat()
    except OSError as error:
        raise TidegateError(
            Code.STATE_FAILED,
            f"Cannot make the state directory `{path}`: {error.strerror}.",
            hint="Name another one with `--state` or TIDEGATE_STATE.",
        ) from None
    _check_owner(path, status)
    return path


def check_directory(path: Path) -> None:
    """Whether the directory of all state could be used, if it is there. Nothing is made. Raises: as
    `state_directory`."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise TidegateError(
            Code.STATE_FAILED,
            f"Cannot read the state directory `{path}`: {error.strerror}.",
            hint="Name another one with `--state` or TIDEGATE_STATE.",
        ) from None
    if not path.is_dir():
        raise TidegateError(
            Code.STATE_FAILED,
            f"The state directory `{path}` is no directory.",
            hint="Name another one with `--state` or TIDEGATE_STATE.",
        )
    _check_owner(path, status)


def _check_owner(path: Path, status: os.stat_result) -> None:
    if not is_ours(status):
        raise TidegateError(
            Code.STATE_FAILED,
            f"The state directory `{path}` belongs to another account ({name_owner(status)}).",
            hint="Run Tidegate as that account, or use another directory.",
            details={"path": str(path)},
        )
    if may_all_write(status):
        raise TidegateError(
            Code.STATE_FAILED,
            f"Every user can write in the state directory `{path}`.",
            hint=f"Run `chmod 700 {path}`, or use a directory of its own inside it.",
        )
