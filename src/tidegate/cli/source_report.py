"""What `tidegate source test` finds out about a source."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from tidegate.app import App
from tidegate.cli.local_actor import ask
from tidegate.cli.source_account import account_risks
from tidegate.cli.source_functions import unmatched_functions
from tidegate.cli.terminal import show, show_json
from tidegate.config.installation import as_typed
from tidegate.engines.common.url import FOLDER_SCHEME
from tidegate.engines.registry import entry_of
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Browse, Connect, Query
from tidegate.model.results import Page
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

_SLOW_MS = 250.0
_TOOL = "source test"


async def test_source(app: App, name: str) -> dict[str, Any]:
    """Open the source, count its tables, time one trivial statement. Raises: TidegateError."""
    began = time.perf_counter()
    state = await ask(app, _TOOL, Connect(), name, ConnectionState)
    opened_ms = (time.perf_counter() - began) * 1_000
    catalog = await ask(app, _TOOL, Browse("catalog"), name, Catalog)
    tested = next(each for each in app.connections.sources() if each.name == name)
    question = _trivial_query(tested)
    latency_ms = min([await _latency_ms(app, name, question) for _ in range(3)])
    # Warnings about the database, such as an account with too many privileges.
    warned = state.current.warnings if state.current else ()
    risks = await account_risks(app, tested, state)
    unmatched = await unmatched_functions(app, tested, _TOOL)
    return {
        "source": name,
        "database": catalog.database,
        "server_version": state.current.server_version if state.current else "",
        "tables": sum(table.kind != "view" for table in catalog.tables),
        "views": sum(table.kind == "view" for table in catalog.tables),
        "opened_ms": round(opened_ms, 1),
        "latency_ms": round(latency_ms, 2),
        "warnings": [*_warnings(app, name, catalog, latency_ms), *unmatched, *warned],
        "risks": [risk._asdict() for risk in risks],
    }


def show_report(report: dict[str, Any], *, as_json: bool) -> None:
    """Print what `test_source` found."""
    if as_json:
        show_json(report)
        return
    for key, value in report.items():
        if key not in ("warnings", "risks"):
            show(f"{key:<15} {value}")
    known = {risk["could"] for risk in report["risks"]}
    for warning in report["warnings"]:
        if warning not in known:
            show(f"{'warning':<15} {warning}")
    for risk in report["risks"]:
        show(f"{'risk':<15} {risk['could']}; to do: {as_typed(risk['remedy'])}")


def _trivial_query(source: Source) -> str:
    entry = entry_of(source)
    own = None if entry is None else entry.trivial_queries.get(source.dialect)
    return own or "SELECT 1"


async def _latency_ms(app: App, name: str, question: str) -> float:
    began = time.perf_counter()
    await ask(app, _TOOL, Query(Statement(question)), name, Page)
    return (time.perf_counter() - began) * 1_000


def _warnings(app: App, name: str, catalog: Catalog, latency_ms: float) -> Iterator[str]:
    if not catalog.tables:
        yield "it has no tables: check that the URL names the right database"
    keyless = [
        table.name
        for table in catalog.tables
        if table.kind == "table" and not any(column.key for column in table.columns)
    ]
    source = next(each for each in app.connections.sources() if each.name == name)
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
