"""The search path of a session, as it is pinned for every statement. Pure."""

from __future__ import annotations

from tidegate.sql.name_lists import split_names


def pinned_path(path: str, user: str) -> str:
    """A search path in which pg_catalog comes first, as always where it is not named, and the
    session's temporary objects last. `$user`, in quotes or without, stays the account that logged
    in: names mean the same whatever role a caller has."""
    names = [
        user if each.name == "$user" else each.written
        for each in split_names(path)
        if each.name not in ("pg_catalog", "pg_temp")
    ]
    return ", ".join([*names, "pg_temp"])
