"""Where the state of this server is kept."""

from __future__ import annotations

import os
from pathlib import Path

from tidegate.errors import Code, GateError


def state_directory(configured: str | None) -> Path:
    """The directory of all state: as configured, else TIDEGATE_STATE, else the platform's own.

    Made with mode 0700 if it is not there.
    Raises: GateError STATE_FAILED if it cannot be made or is open to every user's writing.
    """
    chosen = configured or os.environ.get("TIDEGATE_STATE")
    if chosen:
        path = Path(chosen).expanduser()
    else:
        from platformdirs import user_data_path

        path = user_data_path("tidegate", appauthor=False)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.stat().st_mode
    except OSError as error:
        raise GateError(
            Code.STATE_FAILED, f"Cannot make the state directory `{path}`: {error.strerror}."
        ) from None
    if os.name == "posix" and mode & 0o002:
        raise GateError(
            Code.STATE_FAILED,
            f"Every user can write in the state directory `{path}`.",
            hint=f"Run `chmod 700 {path}`, or use a directory of its own inside it.",
        )
    return path
