"""What the columns of a source's tables hold, as a caller may see it, learned from samples.

Each sample is a call of its own through the gate, with the caller's rights: masks and row filters
hold for it, it is limited, and it is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from tidegate.engines.common.column_kinds import read_type
from tidegate.engines.registry import language_of
from tidegate.gateway.profile_views import ProfileViews
from tidegate.model.cancellation import Cancellation
from tidegate.model.data_rules import DataRules
from tidegate.model.profiles import Profiles, TableProfile
from tidegate.model.replies import Reply
from tidegate.model.requests import Call, ReadProfiles, Sample
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Table
from tidegate.model.sources import Source
from tidegate.policy.data_rules import rules_for
from tidegate.policy.run_as import resolve_run_as

if TYPE_CHECKING:
    from tidegate.gateway.context import CallContext

SAMPLE = Limits(max_rows=1_000, max_bytes=262_144, timeout_s=2.0)
"""What one sample may take."""
WAIT_S = 0.25
"""How long a caller waits for the tables that it asked about."""
MOST_COLUMNS = 40

_UNSAMPLED = frozenset(
    {"bytes", "json", "uuid", "array", "struct", "boolean", "interval", "decimal", "float"}
)
"""Kinds of columns of which a sample says nothing that helps."""

Handle = Callable[[Call], Awaitable[Reply]]

_decode = msgspec.json.Decoder(list[list[Any]]).decode


async def read_profiles(ctx: CallContext, handle: Handle) -> Profiles:
    """What is known of the tables. Those that are awaited and not known are waited for a moment.

    Raises: TidegateError POLICY_IDENTITY, POLICY_MASKED.
    """
    call, request = ctx.call, ctx.call.request
    if not isinstance(request, ReadProfiles):
        raise TypeError(type(request).__name__)
    identity = resolve_run_as(call.actor, ctx.source)
    rules = rules_for(call.actor, ctx.source, language_of(ctx.source))
    connection = ctx.connection
    if connection.profiles is None:
        connection.profiles = ProfileViews()
    # A source may ask a person before an agent reads rows, and let a person read them.
    view = connection.profiles.of(
        (call.actor.kind, identity, rules, connection.target_of(call.actor))
    )

    async def sample(table: Table) -> TableProfile:
        return await _sample(table, call, ctx.source, rules, handle)

    futures = view.want(request.tables, request.awaited, sample)
    if futures:
        await asyncio.wait(futures, timeout=WAIT_S)
    return Profiles(view.known(request.tables))


async def _sample(
    table: Table, call: Call, source: Source, rules: DataRules | None, handle: Handle
) -> TableProfile:
    from tidegate.search.profiling import summarize  # who learns nothing pays nothing

    columns = _columns(table, rules)
    statement = None
    if columns:
        statement = language_of(source).sample(table, columns, SAMPLE.max_rows, source)
    if statement is None:
        return {}
    sampled = structs.replace(
        call,
        request=Sample(statement, limits=SAMPLE),
        cancellation=Cancellation(),
        progress=None,
        confirmed=False,
        reads_only=True,
        can_ask=False,
    )
    page = (await handle(sampled)).payload
    if not isinstance(page, Page):
        return {}
    complete = not page.truncations and page.row_count < SAMPLE.max_rows
    return summarize(columns, _decode(page.rows), complete)


def _columns(table: Table, rules: DataRules | None) -> list[str]:
    """The columns to read: not those that are keys, nor those of which any mask has the name."""
    masked = {column.rpartition(".")[2].casefold() for column, _ in rules.masks} if rules else ()
    keys = {key.columns[0] for key in table.foreign_keys if len(key.columns) == 1}
    keys |= {
        index.columns[0] for index in table.indexes if index.unique and len(index.columns) == 1
    }
    return [
        column.name
        for column in table.columns
        if not column.key
        and column.name not in keys
        and column.name.casefold() not in masked
        and read_type(column.type)[0] not in _UNSAMPLED
    ][:MOST_COLUMNS]
