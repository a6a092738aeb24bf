"""What a search of `core` answers: of one source, or of all that the caller may use, and what the
signs of the notation mean, once for each session. All within one budget of bytes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.replies import SourceEntry
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog
from tidegate.surfaces.table_search import budget_for, search_tables
from tidegate.surfaces.tool_context import ToolContext

_MOST_SOURCES = 8
"""Sources that one search reads: each may have to be opened."""
_LEAST_BYTES = 280
"""Bytes for each source: of more sources than fit so the others are named."""
_EXPLAINED_FROM = 600
"""Bytes of an answer from which on the signs are explained in it."""
_EXPLAINED = "core.explained_signs"
"""The name in a session's state of the signs that were explained."""


def topics_of(words: str | Sequence[str]) -> list[str]:
    """The topics of a search. Some clients send an array as its JSON."""
    if not isinstance(words, str):
        return list(words)
    if words.lstrip().startswith("["):
        try:
            return msgspec.json.decode(words, type=list[str]) or [words]
        except msgspec.DecodeError:
            pass
    return [words]


async def search_all(
    context: ToolContext, source: str | None, topics: Sequence[str], max_bytes: int | None
) -> str:
    """The tables that fit the topics: of the source, or of all where none is named and there are
    several. Raises: TidegateError."""
    budget = budget_for(topics, max_bytes)
    room = _legend_room(context, budget)
    try:
        catalog = await context.handle(Browse("catalog"), source, Catalog)
    except TidegateError as error:
        if source is not None or error.code is not Code.SOURCE_UNKNOWN:
            raise
        entries = await context.sources()
        if len(entries) < 2:
            raise
        text = await _search_each(context, entries, topics, budget - room)
    else:
        text = await search_tables(context, source, catalog, topics, budget - room)
    return with_legend(context, text) if room else text


async def _search_each(
    context: ToolContext, entries: Sequence[SourceEntry], topics: Sequence[str], budget: int
) -> str:
    """What each source has, under its name: those with a match first."""
    most = max(1, min(_MOST_SOURCES, budget // _LEAST_BYTES))
    names = [entry.source.name for entry in entries]
    asked, others = names[:most], names[most:]
    rest = _rest_of(others)
    left = budget - len(rest.encode())
    parts: list[str] = []
    missed: list[str] = []
    for number, name in enumerate(asked):
        share = left // (len(asked) - number)
        heading = f"source {name}:\n"
        try:
            catalog = await context.handle(Browse("catalog"), name, Catalog)
            found = await search_tables(
                context, name, catalog, topics, max(1, share - len(heading.encode()) - 1)
            )
        except TidegateError as error:
            found = f"{error.code.value}: {error.message}"[: max(1, share - len(heading) - 1)]
        part = heading + found
        if found.startswith("No match. Tables:"):
            missed.append(name)
            part = f"source {name}: no match"
        parts.append(part)
        left -= len(part.encode()) + 1
    parts.sort(key=lambda part: part.endswith(": no match"))
    return "\n".join([*parts, *([rest] if rest else [])])


def _rest_of(names: Sequence[str]) -> str:
    """What is said of sources that were not searched."""
    if not names:
        return ""
    shown = ", ".join(names[:10])
    more = f" +{len(names) - 10}" if len(names) > 10 else ""
    return f"Not searched, name one in `source`: {shown}{more}"


def _legend_room(context: ToolContext, budget: int) -> int:
    """Bytes to be left for what the signs mean: none if that was said, or where room is scarce."""
    from tidegate.search.shorthand import LONGEST_LEGEND, SIGNS

    explained = _explained(context)
    return 0 if budget < _EXPLAINED_FROM or len(explained) == len(SIGNS) else LONGEST_LEGEND


def with_legend(context: ToolContext, text: str) -> str:
    """The text, and a line on those of its signs that were not explained in this session. Where
    there are no sessions each answer explains its signs."""
    from tidegate.search.shorthand import legend

    explained = _explained(context)
    line, signs = legend(text, explained)
    if not line:
        return text
    if context.context.state_id:
        context.context.new_state()[_EXPLAINED] = [*explained, *signs]
    return f"{text}\n{line}"


def _explained(context: ToolContext) -> list[str]:
    if not context.context.state_id:
        return []
    return context.context.new_state().get(_EXPLAINED, [])
