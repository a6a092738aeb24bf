"""Which names in a source's setting `functions` match no function that its account may call."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.errors import TidegateError
from tidegate.model.gate_client import GateClient
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.sql.dialects import find
from tidegate.sql.own_functions import key_of

_MOST = 10_000


async def unmatched_functions(caller: GateClient, source: Source) -> list[str]:
    """What is wrong with the setting, one sentence each; nothing where all names match."""
    if not source.functions:
        return []
    query = Query(Statement(find(source.dialect).function_names), limits=Limits(max_rows=_MOST))
    try:
        page = await caller.handle(query, source.name, Page)
    except TidegateError as error:
        return [f"whether `functions` names functions that are there was not found out: {error}"]
    known = [f"{schema}.{name}" for schema, name in msgspec.json.decode(page.rows)]
    return list(_sentences(source, known))


def _sentences(source: Source, known: list[str]) -> Iterator[str]:
    dialect = find(source.dialect)
    there = {key_of(name, dialect) for name in known}
    folded = {name.lower(): name for name in known}
    for name in source.functions:
        if key_of(name, dialect) in there:
            continue
        near = folded.get(name.lower())
        meant = f"; did you mean `{near}`?" if near is not None else ""
        yield (
            f"`functions` names `{name}`, and the database has no function of a user of this name"
            f" that the source's account may call{meant}"
        )
