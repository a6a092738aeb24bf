"""The search path of a session, as it is pinned for every statement. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def pinned_path(path: str, user: str) -> str:
    """A search path in which pg_catalog comes first, as always where it is not named, and the
    session's temporary objects last. `$user` stays the account that logged in: names mean the same
    whatever role a caller has."""
    names = [user if name == '"$user"' else name for name in _split(path)]
    return ", ".join(
        [name for name in names if name not in ("pg_catalog", "pg_temp")] + ["pg_temp"]
    )


def _split(path: str) -> Sequence[str]:
    """The names of a search path, quoted as they are."""
    names: list[str] = []
    rest = path.strip()
    while rest:
        if rest.startswith('"'):
            end = rest.find('"', 1)
            while end != -1 and rest[end + 1 : end + 2] == '"':
                end = rest.find('"', end + 2)
            end = len(rest) if end == -1 else end + 1
        else:
            end = rest.find(",")
            end = len(rest) if end == -1 else end
        name, rest = rest[:end].strip(), rest[end:].lstrip().removeprefix(",").lstrip()
        if name and name != '""':
            names.append(name)
    return names
