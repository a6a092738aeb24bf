"""The surfaces that there are, by name: a word of the settings, of addresses and of commands."""

from __future__ import annotations

from tidegate.errors import Code, GateError

SURFACES = ("core", "workbench")


def check_surface(name: str) -> None:
    """Raises: GateError CONFIG_INVALID if there is no such surface."""
    if name in SURFACES:
        return
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), SURFACES, 1)
    meant = f"Did you mean {near[0]}? " if near else ""
    raise GateError(
        Code.CONFIG_INVALID,
        f"There is no surface {name!r}",
        hint=f"{meant}Choose from {', '.join(SURFACES)}.",
    )
