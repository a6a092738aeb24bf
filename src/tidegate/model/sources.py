"""A source: where a database is, and what the operator said of it. Frozen."""

from __future__ import annotations

import msgspec

from tidegate.model.source_settings import DeclaredSettings


class Identity(msgspec.Struct, frozen=True):
    """Who one caller is to one database: its role, if it has one, and (name, value) to set."""

    role: str | None
    variables: tuple[tuple[str, str], ...] = ()


class Source(DeclaredSettings, frozen=True):
    """A saved or ad-hoc connection, with what is set for it. `url` never holds a secret, only
    references to one; nor do `options`.

    `ephemeral`: it is not saved. `temporary`: a caller opened it, with a login of its own, so
    nothing of the gate's own environment and files may log in there.
    """

    id: str
    name: str
    url: str
    engine: str
    dialect: str
    ephemeral: bool = False
    temporary: bool = False

    @property
    def writable(self) -> bool:
        """Whether `access` covers changes."""
        return self.access in ("write", "admin")
