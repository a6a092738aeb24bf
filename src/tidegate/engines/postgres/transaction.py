"""What every transaction sets in its first query: time limit, search path, role and variables.

The settings hold for the transaction alone. All of them travel as parameters.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from tidegate.engines.common.roles import role_of
from tidegate.engines.postgres.command_protocol import Params
from tidegate.engines.postgres.schema_state import SNAPSHOT_COLUMN
from tidegate.errors import Code, TidegateError
from tidegate.model.source_settings import RunAs
from tidegate.model.sources import Identity

TUNING: dict[str, tuple[int, int] | frozenset[str]] = {
    "hnsw.ef_search": (1, 1_000),
    "hnsw.max_scan_tuples": (1, 2_147_483_647),
    "hnsw.iterative_scan": frozenset({"off", "relaxed_order", "strict_order"}),
    "ivfflat.probes": (1, 32_768),
    "ivfflat.max_probes": (1, 32_768),
    "ivfflat.iterative_scan": frozenset({"off", "relaxed_order"}),
    "enable_indexscan": frozenset({"off"}),
    "enable_indexonlyscan": frozenset({"off"}),
    "seq_page_cost": (0, 0),
    "random_page_cost": (0, 0),
}
"""The settings that a search (of pgvector) and a masked statement may set for its own transaction:
the lowest and highest number, or the words. None of them changes what a statement may read."""

Tuning = tuple[tuple[str, str], ...]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_$]*)+")


class TransactionSettings(NamedTuple):
    """What a transaction runs with: `timeout_ms` is the time limit of each statement, `schema` a
    search path (None: the session's), `identity` whose role and variables it takes on. `tuning`
    was checked by `may_tune`, or by `session_settings.applied`."""

    timeout_ms: int
    schema: bytes | None = None
    identity: Identity | None = None
    tuning: Tuning = ()


@lru_cache(256)
def settings_query(
    settings: TransactionSettings, *, with_snapshot: bool = False
) -> tuple[bytes, Params]:
    """The query and its parameters; the role comes last. With the snapshot, the transaction's is
    the last column.

    Raises: TidegateError POLICY_IDENTITY.
    """
    timeout_ms, schema, identity, tuning = settings
    values = [(b"statement_timeout", b"%d" % timeout_ms)]
    if schema is not None:
        values.append((b"search_path", schema))
    values += [(name.encode(), value.encode()) for name, value in tuning]
    if identity is not None:
        values += [(name.encode(), value.encode()) for name, value in identity.variables]
        role = role_of(identity)
        if role is not None:
            values.append((b"role", role.encode()))
    return _query(len(values), with_snapshot), tuple([part for value in values for part in value])


@lru_cache
def _query(settings: int, with_snapshot: bool) -> bytes:
    calls = [
        b"pg_catalog.set_config($%d, $%d, true)" % (2 * place + 1, 2 * place + 2)
        for place in range(settings)
    ]
    return b"SELECT " + b", ".join([*calls, SNAPSHOT_COLUMN] if with_snapshot else calls)


_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_TIME = re.compile(r"(\d+)([a-z]*)")


def milliseconds_of(shown: str) -> float:
    """A time limit as the server shows it, `90s` or `2min`; 0 for other text."""
    found = _TIME.fullmatch(shown)
    return 0 if found is None else int(found[1]) * _UNITS_MS.get(found[2] or "ms", 0)


def may_tune(name: str, value: str) -> bool:
    """Whether a search may give the setting this value."""
    allowed = TUNING.get(name)
    if isinstance(allowed, tuple):
        least, most = allowed
        return re.fullmatch(r"\d{1,10}", value) is not None and least <= int(value) <= most
    return allowed is not None and value in allowed


def check_run_as(run_as: RunAs | None) -> None:
    """Refuse variables that are settings of the server, such as `transaction_read_only`: those of
    an application have a dot. Raises: TidegateError CONFIG_INVALID."""
    for name, _ in run_as.variables if run_as is not None else ():
        if _VARIABLE.fullmatch(name) is None:
            raise TidegateError(
                Code.CONFIG_INVALID,
                f"`run_as.variables` names `{name}`, which is no variable of an application.",
                hint="Put a prefix and a dot before it, such as app.actor.",
            )
