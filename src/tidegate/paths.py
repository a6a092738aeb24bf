"""Paths as people write them, with `~` for a home directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tidegate.errors import Code, TidegateError


def expand(path: str | Path) -> Path:
    """The path with `~` and `~name` replaced by the home directory.

    Raises: TidegateError ARGUMENT_INVALID if there is no such account, or it has no home directory,
    such as the account of a container.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is no home directory for `{str(path)[:200]}`.",
            hint="Write the whole path, or set HOME.",
        ) from None


def of_platform(find: Callable[[], Path], hint: str = "Set HOME.") -> Path:
    """A directory that the platform has for every account, as a function of platformdirs finds it.

    Raises: TidegateError ARGUMENT_INVALID if this account has no home directory.
    """
    try:
        return find()
    except RuntimeError:
        raise TidegateError(
            Code.ARGUMENT_INVALID, "This account has no home directory.", hint=hint
        ) from None


def home_directory() -> Path:
    """The home directory of this account. Raises: TidegateError ARGUMENT_INVALID if it has none."""
    return expand("~")
