"""What the columns of a source's tables hold, as a caller may see it, learned from samples and, for
callers from whom nothing is hidden, from the database's statistics.

Each of these reads is a call of its own through the gate, with the caller's rights: masks and row
filters hold for it, it is limited, and it is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from tidegate.engines.registry import language_of
from tidegate.errors import Code, TidegateError
from tidegate.gateway.profile_views import ProfileViews
from tidegate.model.cancellation import Cancellation
from tidegate.model.data_rules import DataRules
from tidegate.model.profiles import Profiles, TableProfile
from tidegate.model.replies import Reply
from tidegate.model.requests import Call, ReadProfiles, Sample
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Table
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.policy.data_rules import rules_for
from tidegate.policy.run_as import resolve_run_as
from tidegate.results.column_kinds import read_type

if TYPE_CHECKING:
    from tidegate.gateway.context import CallContext
    from tidegate.search.joins import Guess, Joins

SAMPLE = Limits(max_rows=1_000, max_bytes=262_144, timeout_s=2.0)
"""What one sample may take."""
WAIT_S = 0.25
"""How long a caller waits for the tables that it asked about."""
MOST_COLUMNS = 40

_UNSAMPLED = frozenset(
    {"bytes", "json", "uuid", "array", "struct", "boolean", "interval", "decimal", "float"}
)
"""Kinds of columns of which a sample says nothing that helps."""

_UNSAMPLED_TYPES = frozenset(
    {"vector", "halfvec", "sparsevec", "tsvector", "tsquery", "vec", "idoc", "ref", "tuple"}
)
"""Types of extensions: a vector tells of the text that it is of, and no one compares with one."""

Handle = Callable[[Call], Awaitable[Reply]]

_decode = msgspec.json.Decoder(list[list[Any]]).decode


async def read_profiles(ctx: CallContext) -> Profiles:
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
    target = connection.target_of(call.actor, call.surface)
    view = connection.profiles.of((call.actor.kind, identity, rules, target))

    guesses = _Guesses(request, rules)

    def check_target() -> None:
        if connection.target_of(call.actor, call.surface) is not target:
            # What was read meanwhile may be of another database's table of the same name.
            raise TidegateError(Code.CALL_CANCELLED, "The caller switched to another database")

    reader = _Reader(call, ctx.source, ctx.services.handle)

    async def sample(table: Table) -> TableProfile:
        profile = await _sample(table, reader, rules)
        check_target()
        return profile

    async def compare(table: Table, profile: TableProfile) -> TableProfile:
        compared = await _compare(table, profile, reader, rules, guesses)
        check_target()
        return compared

    futures = view.want(
        request.tables,
        request.awaited,
        sample,
        compare if request.joined else None,
        others=request.others,
    )
    if futures:
        await asyncio.wait(futures, timeout=WAIT_S)
    pending = any(map(view.is_waiting, request.tables[: request.awaited]))
    return Profiles(view.known(request.tables), pending)


class _Guesses:
    """The joins that values are to confirm, among the tables of one request."""

    def __init__(self, request: ReadProfiles, rules: DataRules | None) -> None:
        self._request = request
        self._masked = _masked(rules)
        self._joins: Joins | None = None

    def of(self, table: Table) -> Sequence[Guess]:
        """Those of the table. Built at the first need, which is in the background."""
        if self._joins is None:
            from tidegate.search.joins import Joins

            every = (*self._request.tables, *self._request.others)
            places = {(each.schema, each.name): each for each in every}
            self._joins = Joins(tuple(places.values()))
        return self._joins.to_compare(table, self._masked)


class _Reader:
    """Reads as the caller of `call`, by calls of their own that can only read."""

    def __init__(self, call: Call, source: Source, handle: Handle) -> None:
        self.source = source
        self.language = language_of(source)
        self._call = call
        self._handle = handle

    async def read(self, statement: Statement | None) -> Page | None:
        """What the statement returns. Raises: TidegateError."""
        if statement is None:
            return None
        sampled = structs.replace(
            self._call,
            request=Sample(statement, limits=SAMPLE),
            cancellation=Cancellation(),
            progress=None,
            confirmed=False,
            reads_only=True,
            can_ask=False,
        )
        page = (await self._handle(sampled)).payload
        return page if isinstance(page, Page) else None

    async def try_to_read(self, statement: Statement | None) -> list[list[Any]]:
        """The rows, none if the statement fails."""
        try:
            page = await self.read(statement)
        except TidegateError:
            return []
        return _decode(page.rows) if page is not None else []


async def _sample(table: Table, reader: _Reader, rules: DataRules | None) -> TableProfile:
    """What is learned of the table from one to four reads. Raises: TidegateError for the first; a
    later one that fails leaves what is known as it is."""
    from tidegate.search import profiling  # who learns nothing pays nothing

    language, source, columns = reader.language, reader.source, _columns(table, rules)
    padded = language.padded(table, source)
    first = language.sample(table, columns, SAMPLE.max_rows, source) if columns else None
    page = await reader.read(first)
    if page is None:
        return {}
    rows = language.sampled(columns, _decode(page.rows))
    if not page.truncations and page.row_count < SAMPLE.max_rows:
        return profiling.summarize(columns, rows, complete=True, padded=padded)
    # The first rows of a large table are often its oldest, and know nothing of newer values.
    spread = language.sample(table, columns, SAMPLE.max_rows, source, all_over=True)
    rows = language.sampled(columns, await reader.try_to_read(spread)) or rows
    profile = profiling.summarize(columns, rows, complete=False, padded=padded)
    if rules is None:
        # Statistics describe all rows to everyone; the gate refuses them where rules hide some.
        noted = await reader.try_to_read(language.statistics(table, source))
        profile = profiling.with_statistics(profile, noted, columns, padded)
    names, statement = language.bounds(table, profiling.without_range(profile), source)
    for row in await reader.try_to_read(statement):
        profile = profiling.with_bounds(profile, names, row)
    return profile


async def _compare(
    table: Table,
    profile: TableProfile,
    reader: _Reader,
    rules: DataRules | None,
    guesses: _Guesses,
) -> TableProfile:
    """The profile with what values say of the likely joins, from one more read."""
    compared = guesses.of(table)
    if not compared:
        return profile
    from tidegate.search import profiling
    from tidegate.search.joins import confirm

    counted = await _count(compared, reader)
    filtered = rules is not None and bool(rules.filters)
    return profiling.with_joins(profile, confirm(compared, counted, filtered))


async def _count(compared: Sequence[Guess], reader: _Reader) -> list[list[Any]]:
    """The counts of all comparisons, from one read. If that is refused, of each by itself: one may
    be with a table that the caller cannot read."""

    def statement(guesses: Sequence[Guess]) -> Statement | None:
        return reader.language.overlaps([each.comparison for each in guesses], reader.source)

    try:
        page = await reader.read(statement(compared))
    except TidegateError as error:
        if error.code not in (Code.POLICY_MASKED, Code.POLICY_TABLE) or len(compared) == 1:
            return []
        return [
            [number, *counts[1:]]
            for number, guess in enumerate(compared)
            for counts in await reader.try_to_read(statement([guess]))
        ]
    return _decode(page.rows) if page is not None else []


def _columns(table: Table, rules: DataRules | None) -> list[str]:
    """The columns to read: not those that are keys, nor those of which any mask has the name."""
    masked = _masked(rules)
    keys = {key.columns[0] for key in table.foreign_keys if len(key.columns) == 1}
    keys |= {
        index.columns[0] for index in table.indexes if index.unique and len(index.columns) == 1
    }
    return [
        column.name
        for column in table.columns
        if not column.key
        and not column.masked
        and column.name not in keys
        and column.name.casefold() not in masked
        and read_type(column.type)[0] not in _UNSAMPLED
        and column.type.partition("(")[0].rpartition(".")[2] not in _UNSAMPLED_TYPES
    ][:MOST_COLUMNS]


def _masked(rules: DataRules | None) -> frozenset[str]:
    """The names of masked columns, of whichever table."""
    masks = rules.masks if rules is not None else ()
    return frozenset([column.rpartition(".")[2].casefold() for column, _ in masks])
