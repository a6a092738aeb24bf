"""What the account of a source could do if the gate were not there."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.engines.common.account import AccountFacts, Risk
from tidegate.engines.registry import account_guide
from tidegate.errors import TidegateError
from tidegate.model.gate_client import GateClient
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Query
from tidegate.model.results import Page
from tidegate.model.sources import Source
from tidegate.model.statements import Statement


async def account_risks(caller: GateClient, source: Source, state: ConnectionState) -> list[Risk]:
    """What the account could do, with what to do about each; one that reports it if this cannot be
    found out."""
    guide = account_guide(source)
    if guide is None:
        return []
    warnings = state.current.warnings if state.current else ()
    row: dict[str, Any] = {}
    if guide.RISKS_QUERY is not None:
        try:
            query = Query(Statement(guide.RISKS_QUERY))
            page = await caller.handle(query, source.name, Page)
        except TidegateError as error:
            return [Risk(f"what the account could do was not found out: {error.message}", "none")]
        names = [column.name for column in page.columns]
        row = dict(zip(names, msgspec.json.decode(page.rows)[0], strict=True))
    command = f"tidegate source harden {source.name}"
    return [
        Risk(risk.could, risk.remedy or command)
        for risk in guide.risks(AccountFacts(source.url, row, warnings))
    ]
