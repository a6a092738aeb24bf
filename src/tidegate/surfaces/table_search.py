"""Finds tables by words and shows them in shorthand, with likely joins and what columns hold.

The text is the same for every surface that offers this help. What is derived from a catalog (its
index and its likely joins) is kept for all callers who see the same, and made again when the
catalog changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.profiles import Join, Place, Profiles, TableProfile
from tidegate.model.requests import ReadProfiles
from tidegate.model.schema import Catalog, Table
from tidegate.search.shorthand import printable, table_name, with_keys
from tidegate.search.vocabulary import find
from tidegate.surfaces.tool_context import ToolContext

if TYPE_CHECKING:
    from tidegate.search.words import Match, PerCatalog

_BUDGET = 2_500
"""Bytes of an answer of `search`, unless the caller says how many."""
_TOPIC, _MOST_BUDGET = 400, 8_000
"""Bytes that each further topic adds, and the most for all, unless the caller says how many."""
_OF_TOPIC = 2
"""Tables of one of several topics of which columns are shown, beside those that fit it best."""
_MOST_MATCHES = 40
_MOST_WHOLE = 8
"""Tables of which columns are shown."""
_NEAR_BEST = 0.75
"""Share of the best table's score from which on a table's columns are shown, if it is not the best
for one of the words."""
_RELATED, _MOST_RELATED = 0.5, 2
"""Share from which on the columns that matched are shown, of so many tables."""
_SMALL = 20
"""Tables of a database that is shown whole, as far as there is room."""
_ALSO_BYTES = 300
_SHORTEST_LINE = 40
"""About the bytes of a table with one column."""
_COUNTED = 18
"""Bytes in which the number of further tables is said."""
_MOST_PROFILED = 500
_PENDING = "Values follow: ask again."
"""Said where a caller asks before the values of the tables that it sees were read."""
_MOST_NAMES = 200
_MOST_ASKED = 300
"""Characters of the words to search for: what comes after them finds nothing more."""


class SearchedCatalog:
    """What is derived from a catalog that was searched."""

    def __init__(self, catalog: Catalog) -> None:
        from tidegate.search.joins import Joins  # slow; only search needs them
        from tidegate.search.words import Index

        self.index = Index(catalog)
        self.joins = Joins(catalog.tables)
        self.parts = _parts(catalog)
        self.tables = tuple(
            [
                table
                for table in catalog.tables
                if table.kind != "system table" and (table.schema, table.name) not in self.parts
            ]
        )
        """The tables of which a search shows all if they are few."""
        self.profiled = catalog.tables[:_MOST_PROFILED]


@cache
def _searched() -> PerCatalog[SearchedCatalog]:
    from tidegate.search.words import PerCatalog

    return PerCatalog(SearchedCatalog)


async def search_tables(
    context: ToolContext,
    source: str | None,
    catalog: Catalog,
    words: str | Sequence[str],
    max_bytes: int | None = None,
) -> str:
    """The tables of `catalog` that fit `words`, one a line: the best with columns, keys, joins and
    values. Then the names of others. All within `max_bytes`, if the first name fits.

    Several `words` are topics: each has its best tables among those that are shown.
    """
    topics = [words] if isinstance(words, str) else list(words)
    searched = _searched().of(catalog)
    own = searched.tables
    small = len(own) <= _SMALL
    wordless = not any(topic.strip() for topic in topics)
    if wordless and not small:
        return _all_names(catalog)
    found = _merged([_matched(searched, topic, small=small) for topic in topics])
    matches, total = found.matches, found.total
    if not matches and not small:
        return f"No match. Tables: {_all_names(catalog, 30)}"
    heading: list[str] = []
    if small:
        # One answer that shows everything saves the searches that would follow.
        heading = ["No match. All tables:"] if not matches and not wordless else []
        matches, total = _with_others(matches, own, total)
        found = _Found(matches, {id(match.table) for match in matches}, total)
    tables = tuple([match.table for match in matches if id(match.table) in found.whole])
    profiles = await _profiles(context, source, tables, searched)
    missed = [] if small else [topic for topic in topics if topic in found.missed]
    if missed:
        heading.append(f"No match: {', '.join([printable(each[:60]) for each in missed[:8]])}")
    budget = budget_for(topics, max_bytes)
    return _written(found, catalog, searched, profiles, budget, _heading(catalog, tables) + heading)


def budget_for(topics: Sequence[str], max_bytes: int | None) -> int:
    """Bytes of the answer on so many topics."""
    return max_bytes or min(_BUDGET + _TOPIC * (len(topics) - 1), _MOST_BUDGET)


def _matched(searched: SearchedCatalog, words: str, *, small: bool) -> _Found:
    """The tables that fit one topic. Those to be shown are its best, and of the others of about
    half their score those that come next."""
    parts = searched.parts
    matches, total = searched.index.search(
        words[:_MOST_ASKED],
        _MOST_MATCHES + len(parts),
        None if small else _MOST_WHOLE + len(parts),
    )
    kept = [match for match in matches if (match.table.schema, match.table.name) not in parts]
    total -= len(matches) - len(kept)
    best = max((match.score for match in kept), default=0.0)
    strong = [match for match in kept if match.leads or match.score >= best * _NEAR_BEST]
    strong = strong[:_MOST_WHOLE]
    whole = {id(match.table) for match in strong}
    others = [
        match
        for match in kept[:_MOST_WHOLE]
        if id(match.table) not in whole and match.score >= best * _RELATED
    ]
    whole |= {id(match.table) for match in others[: min(_MOST_RELATED, _MOST_WHOLE - len(strong))]}
    return _Found(
        kept[:_MOST_MATCHES],
        whole,
        total,
        frozenset([id(match.table) for match in strong]),
        frozenset() if kept or not words.strip() else frozenset({words}),
    )


def _merged(topics: Sequence[_Found]) -> _Found:
    """The tables of all topics: the best of each first, then the second of each, each once."""
    if len(topics) == 1:
        return topics[0]
    order: dict[int, Match] = {}
    columns: dict[int, dict[str, None]] = {}
    deepest = max((len(topic.matches) for topic in topics), default=0)
    whole: set[int] = set()
    for place in range(deepest):
        for topic in topics:
            if place >= len(topic.matches):
                continue
            match = topic.matches[place]
            key = id(match.table)
            order.setdefault(key, match)
            columns.setdefault(key, {}).update(dict.fromkeys(match.columns))
            if key in topic.whole and (place < _OF_TOPIC or key in (topic.strong or ())):
                whole.add(key)
    matches = [
        msgspec.structs.replace(match, columns=tuple(columns[key])) for key, match in order.items()
    ]
    return _Found(
        matches,
        whole,
        max([len(order), *[topic.total for topic in topics]]),
        None,
        frozenset().union(*[topic.missed for topic in topics]),
    )


async def outline_tables(
    context: ToolContext,
    source: str | None,
    catalog: Catalog,
    tables: Sequence[Table],
    max_bytes: int,
) -> str:
    """These tables of `catalog` as a search shows them, in the order given: as many as there is
    room for in `max_bytes`, then the names of others."""
    from tidegate.search.words import Match

    searched = _searched().of(catalog)
    shown = tuple(tables[: max(1, max_bytes // _SHORTEST_LINE)])
    profiles = await _profiles(context, source, shown, searched)
    found = _Found([Match(table, 0.0) for table in tables], set(map(id, shown)), len(tables))
    return _written(found, catalog, searched, profiles, max_bytes, [], "raise max_bytes")


class _Found(NamedTuple):
    """Tables in the order in which they are shown. `whole` are the ids of those of which columns
    are shown, `total` is how many there are with those that are not named. `strong` are the ids of
    those that fit best, whose columns are all shown if there is room; `missed` are topics that no
    table fits."""

    matches: Sequence[Match]
    whole: set[int]
    total: int
    strong: frozenset[int] | None = None
    missed: frozenset[str] = frozenset()


def _written(
    found: _Found,
    catalog: Catalog,
    searched: SearchedCatalog,
    profiles: Profiles,
    budget: int,
    lines: list[str],
    step: str = "add words",
) -> str:
    """The tables as there is room for them: whole, with some columns, by name, counted.

    Each is first given the room of the columns that matched, the best ones next that of all: one
    wide table does not leave others with their names alone.
    """
    also = min(_ALSO_BYTES, budget // 4)
    left = budget - also - (len(_PENDING) + 1 if profiles.pending else 0)
    left -= sum([len(line.encode()) + 1 for line in lines])
    chosen: dict[int, str] = {}
    wide: list[tuple[int, str]] = []
    for match in found.matches:
        key = id(match.table)
        if key not in found.whole:
            continue
        table = match.table
        profile = profiles.tables.get((table.schema, table.name), {})
        joins = searched.joins.of(table)
        whole = _shown(table, catalog, profile, joins)
        brief = _shown(table, catalog, profile, joins, only=match.columns)
        if len(brief) >= len(whole):
            brief = whole
        if len(brief.encode()) <= left:
            chosen[key] = brief
            left -= len(brief.encode()) + 1
            if brief != whole and (found.strong is None or key in found.strong):
                wide.append((key, whole))
    for key, whole in wide:
        more = len(whole.encode()) - len(chosen[key].encode())
        if more <= left:
            chosen[key] = whole
            left -= more
    lines += [chosen[id(match.table)] for match in found.matches if id(match.table) in chosen]
    named = [
        table_name(match.table, catalog) for match in found.matches if id(match.table) not in chosen
    ]
    more = found.total - len(found.matches)
    if named or more > 0:
        lines.append(_also(named, more, also, step))
    if profiles.pending:
        lines.append(_PENDING)
    return "\n".join(lines) or "none"


def _parts(catalog: Catalog) -> set[Place]:
    """The tables whose rows a partitioned table shows that is in the catalog as well."""
    places = {(table.schema, table.name) for table in catalog.tables}
    return {
        (table.schema, table.name)
        for table in catalog.tables
        if table.reads and places.intersection(table.reads) and "view" not in table.kind
    }


def _with_others(
    matches: Sequence[Match], tables: Sequence[Table], total: int
) -> tuple[list[Match], int]:
    """The matches, then the tables that no word fits, and how many there are in all."""
    from tidegate.search.words import Match

    found = {(match.table.schema, match.table.name) for match in matches}
    others = [Match(table, 0.0) for table in tables if (table.schema, table.name) not in found]
    return [*matches, *others], total + len(others)


async def _profiles(
    context: ToolContext, source: str | None, tables: tuple[Table, ...], searched: SearchedCatalog
) -> Profiles:
    """What is known of the tables' values. Of the others in the catalog it is found out meanwhile.

    A caller who may not read rows learns nothing of them, and still sees the schema.
    """
    request = ReadProfiles(tables, len(tables), joined=True, others=searched.profiled)
    try:
        return await context.handle(request, source, Profiles)
    except TidegateError:
        return Profiles()


def _shown(
    table: Table,
    catalog: Catalog,
    profile: TableProfile,
    joins: Mapping[str, Join],
    only: Sequence[str] | None = None,
) -> str:
    """The table in the words of its source's language."""
    vocabulary = find(catalog.dialect)
    if vocabulary is None:
        return with_keys(table, catalog, profile, joins, only)
    return vocabulary.table_line(table, profile, only)


def _heading(catalog: Catalog, tables: Sequence[Table]) -> list[str]:
    """How a source is asked that does not speak SQL."""
    vocabulary = find(catalog.dialect)
    first = "" if vocabulary is None else vocabulary.heading(tables)
    return [first] if first else []


def _also(names: Sequence[str], more: int, room: int, step: str) -> str:
    """The names of further tables, as many as there is room for; the others are counted, with the
    step that shows them."""
    text = "Also: "
    shown = 0
    for name in names:
        if shown and len(text.encode()) + len(name.encode()) + _COUNTED > room:
            break
        text += f"{',' if shown else ''}{name}"
        shown += 1
    more += len(names) - shown
    return text + (f" +{more}: {step}" if more else "")


def _all_names(catalog: Catalog, most: int = _MOST_NAMES) -> str:
    tables = [table for table in catalog.tables if table.kind != "system table"]
    names = ",".join(table_name(table, catalog) for table in tables[:most])
    more = len(tables) - most
    return names + (f" +{more} more: search by words" if more > 0 else "") or "none"


async def describe_tables(
    context: ToolContext, source: str | None, catalog: Catalog, names: Sequence[str]
) -> str:
    """The tables called so, one a line. Raises: TidegateError TABLE_UNKNOWN if none is known."""
    found = {name: _named(name, catalog) for name in names}
    searched = _searched().of(catalog)
    tables = tuple([table for named in found.values() for table in named])
    profiles = await _profiles(context, source, tables, searched) if tables else Profiles()
    lines = _heading(catalog, tables)
    unknown: list[str] = []
    for name, named in found.items():
        lines += [
            _shown(
                table,
                catalog,
                profiles.tables.get((table.schema, table.name), {}),
                searched.joins.of(table),
            )
            for table in named
        ]
        if not named:
            unknown.append(_with_nearest(name, catalog) if len(unknown) < 3 else name)
    if not tables:
        raise TidegateError(Code.TABLE_UNKNOWN, f"No table {', '.join(unknown)}")
    if unknown:
        lines.append(f"No table {', '.join(unknown)}")
    if profiles.pending:
        lines.append(_PENDING)
    return "\n".join(lines)


def _with_nearest(name: str, catalog: Catalog) -> str:
    from tidegate.search.suggestions import nearest_tables

    near = nearest_tables(name, catalog)
    return f"{name} (nearest: {', '.join(near)})" if near else name


def _named(name: str, catalog: Catalog) -> list[Table]:
    """The tables called `name`, as written or with another case, in the default schema first."""
    wanted = name.replace('"', "").replace("`", "").strip()
    for same in (_equal, _alike):
        found = [
            table
            for table in catalog.tables
            if same(table.name, wanted) or same(f"{table.schema}.{table.name}", wanted)
        ]
        own = [table for table in found if table.schema == catalog.default_schema]
        if found:
            return own or found
    return []


def _equal(name: str, wanted: str) -> bool:
    return name == wanted


def _alike(name: str, wanted: str) -> bool:
    return name.casefold() == wanted.casefold()
