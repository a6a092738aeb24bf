"""Databases that hold the state of a gate, and are no source.

Who could read one as a source would read digests of tokens; who could write there would give
rights. Such a database is known by its tables, so no address, pooler or standby leads around this.
"""

from __future__ import annotations

from tidegate.errors import Code, TidegateError

SCHEMA = "tidegate"
TABLES = frozenset({"about", "generations", "tokens", "commits"})
"""By these tables of the schema a state is known."""
FIND = (
    b"SELECT count(*) = 4 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n"
    b" ON n.oid = c.relnamespace WHERE n.nspname = 'tidegate'"
    b" AND c.relname IN ('about', 'generations', 'tokens', 'commits')"
)
"""Whether a PostgreSQL database holds a state."""

_looked_for = False


def look_for_states() -> None:
    """Have each connection to a database see that it holds no state: the state of this process is
    in such a database."""
    global _looked_for
    _looked_for = True


def are_looked_for() -> bool:
    """Whether connections look."""
    return _looked_for


def refused() -> TidegateError:
    """The refusal of a database that holds a state."""
    return TidegateError(
        Code.POLICY_DENIED,
        "That database holds the state of a gate, and cannot be a source.",
        hint="Keep data and the state in different databases.",
        details={"rule": "source.state"},
    )
