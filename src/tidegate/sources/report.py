"""What is found out about a source by opening it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from tidegate.engines.common.errors import ANSWERED
from tidegate.engines.common.url import FOLDER_SCHEME
from tidegate.engines.registry import entry_of, find
from tidegate.errors import Code, TidegateError
from tidegate.model.gate_client import GateClient
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Browse, Connect, Query
from tidegate.model.results import Page
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.secrets.readers import UNRESOLVED
from tidegate.secrets.url_logins import split_authority
from tidegate.sources.functions import unmatched_functions
from tidegate.sources.risks import account_risks

_SLOW_MS = 250.0
_PASSING = {
    Code.SOURCE_UNREACHABLE, Code.SOURCE_BUSY, Code.ENGINE_MISSING, Code.LIMIT_TIME,
    Code.DRIVER_REPOSITORY,
}  # fmt: skip


def has_answered(failure: TidegateError) -> bool:
    """Whether a database said no, so that it was reached."""
    return failure.details.get("cause") in ANSWERED


def may_pass(failure: TidegateError) -> bool:
    """Whether what fails now may be otherwise tomorrow, or where the server runs: such a source may
    be saved all the same."""
    return failure.code in _PASSING or failure.details.get("cause") == UNRESOLVED


def place_of(url: str) -> str:
    """Host and port of a server's URL as they are written there, for a person to read."""
    entry = find(url)
    if entry.port is None:
        return url
    parts = split_authority(url)
    if parts is None:
        return "the server"
    place = parts.places
    if not place:
        return "this machine"
    return place if place.rpartition(":")[2].isdecimal() else f"{place}:{entry.port}"


async def test_source(caller: GateClient, source: Source) -> dict[str, Any]:
    """Open the source, count its tables, time one trivial statement. Raises: TidegateError."""
    name = source.name
    began = time.perf_counter()
    state = await caller.handle(Connect(), name, ConnectionState)
    opened_ms = (time.perf_counter() - began) * 1_000
    catalog = await caller.handle(Browse("catalog"), name, Catalog)
    question = _trivial_query(source)
    latency_ms = min([await _latency_ms(caller, name, question) for _ in range(3)])
    # Warnings about the database, such as an account with too many privileges.
    warned = state.current.warnings if state.current else ()
    risks = await account_risks(caller, source, state)
    unmatched = await unmatched_functions(caller, source)
    return {
        "source": name,
        "database": catalog.database,
        "server_version": state.current.server_version if state.current else "",
        "tables": sum(table.kind != "view" for table in catalog.tables),
        "views": sum(table.kind == "view" for table in catalog.tables),
        "opened_ms": round(opened_ms, 1),
        "latency_ms": round(latency_ms, 2),
        "warnings": [*_warnings(source, catalog, latency_ms), *unmatched, *warned],
        "risks": [risk._asdict() for risk in risks],
    }


def _trivial_query(source: Source) -> str:
    entry = entry_of(source)
    own = None if entry is None else entry.trivial_queries.get(source.dialect)
    return own or "SELECT 1"


async def _latency_ms(caller: GateClient, name: str, question: str) -> float:
    began = time.perf_counter()
    await caller.handle(Query(Statement(question)), name, Page)
    return (time.perf_counter() - began) * 1_000


def _warnings(source: Source, catalog: Catalog, latency_ms: float) -> Iterator[str]:
    if not catalog.tables:
        yield "it has no tables: check that the URL names the right database"
    keyless = [
        table.name
        for table in catalog.tables
        if table.kind == "table" and not any(column.key for column in table.columns)
    ]
    if source.engine == FOLDER_SCHEME:
        keyless = []  # files have no keys
        for table in catalog.tables:
            if not table.columns:
                yield f"{table.name}: {table.comment}"
    if keyless:
        shown = ", ".join(keyless[:3]) + (", ..." if len(keyless) > 3 else "")
        yield f"{len(keyless)} tables have no primary key ({shown}): rows cannot be identified"
    if latency_ms > _SLOW_MS:
        yield f"{_trivial_query(source)} took {latency_ms:.0f} ms, the fastest of three runs"
    if source.writable:
        yield "tokens with the scope readWrite or fullAccess may change its data"
