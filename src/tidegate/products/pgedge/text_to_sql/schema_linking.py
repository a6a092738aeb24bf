"""Finds what a question needs of a source, as one caller may see it: catalog, values, tables."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.errors import TidegateError
from tidegate.model.gate_client import GateClient
from tidegate.model.profiles import Place, Profiles, TableProfile
from tidegate.model.requests import ReadProfiles
from tidegate.model.schema import Catalog, Table
from tidegate.products.pgedge.text_to_sql.linking import Family, Linker, unit
from tidegate.products.pgedge.text_to_sql.prompts import write_schema
from tidegate.products.pgedge.text_to_sql.requests import Guidance
from tidegate.products.pgedge.text_to_sql.shared_schema import shared_catalog
from tidegate.search.requests import Embeddings, EmbedTexts

MOST_LINKED = 40
"""Families that are linked, beside those that join them and, while there is room, the others of the
small schemas of the best ones, where the whole schema does not fit."""
_BEST = 10
_MOST_AWAITED = 8
_MOST_PROFILED = 500
_EMBEDDED_AT_ONCE = 256


class LinkedSchema(msgspec.Struct, frozen=True):
    """The part of a schema for one question. `catalog` is all that may be shown of the source,
    `text` the tables that are shown, `whole` whether these are all."""

    catalog: Catalog
    tables: tuple[Table, ...]
    text: str
    whole: bool


async def link_schema(
    caller: GateClient, source: str | None, catalog: Catalog, guidance: Guidance, question: str
) -> LinkedSchema:
    """The tables for a question: all of them if they fit in the bytes that the settings allow, else
    the best ones and those that join them, best first."""
    shared = shared_catalog(catalog, guidance.share, guidance.knowledge)
    linker = _linker(f"{caller.actor.id}/{guidance.source}/{guidance.share}", shared, guidance)
    profiles: Mapping[Place, TableProfile] = {}
    ranked = linker.rank(question)
    if guidance.share == "values":
        first = [linker.families[at].newest for at in ranked]
        profiles = await read_profiles(caller, source, [*first, *shared.tables])
        ranked = linker.rank(question, profiles=profiles)
    text, shown = write_schema(linker, linker.families, profiles, guidance.schema_bytes)
    if shown == len(linker.families):
        best = [linker.families[at] for at in ranked]
        rest = [family for family in linker.families if family not in best]
        families: list[Family] = [*best, *rest]
        return LinkedSchema(shared, _newest(families), text, whole=True)
    if guidance.embeddings:
        near = await _nearest(caller, source, linker, question)
        ranked = linker.rank(question, near, profiles)
    families = linked_families(linker, ranked)
    text, shown = write_schema(linker, families, profiles, guidance.schema_bytes)
    return LinkedSchema(shared, _newest(families[:shown]), text, whole=False)


def linked_families(linker: Linker, ranked: list[int]) -> list[Family]:
    """The families for a prompt in their order, more than may fit into it."""
    places = linker.with_joining(ranked[:MOST_LINKED]) or list(range(len(linker.families)))
    return [linker.families[at] for at in linker.with_schemas(places, ranked[:_BEST])]


async def _nearest(
    caller: GateClient, source: str | None, linker: Linker, question: str
) -> list[int]:
    """The families by their vectors; none if these cannot be computed, and words then decide."""
    try:
        if linker.vectors is None:
            texts = linker.describe()
            found: list[tuple[float, ...]] = []
            for start in range(0, len(texts), _EMBEDDED_AT_ONCE):
                part = EmbedTexts(tuple(texts[start : start + _EMBEDDED_AT_ONCE]), "document")
                made = (await caller.handle(part, source, Embeddings)).vectors
                found += [unit(vector) for vector in made]
            linker.vectors = found
        asked = await caller.handle(EmbedTexts((question,)), source, Embeddings)
    except TidegateError:
        return []
    return linker.nearest(unit(asked.vectors[0]))


def _newest(families: list[Family]) -> tuple[Table, ...]:
    return tuple([family.newest for family in families])


def _linker(key: str, shared: Catalog, guidance: Guidance) -> Linker:
    """The linker of a catalog, made again when the catalog or the knowledge changes."""
    kept = _kept.get(key)
    if kept is None or kept[0] != guidance.knowledge or kept[1] != shared:
        kept = _kept[key] = guidance.knowledge, shared, Linker(shared, guidance.knowledge)
        if len(_kept) > _MOST_KEPT:
            del _kept[next(iter(_kept))]
    return kept[2]


_MOST_KEPT = 64
_kept: dict[str, tuple[object, Catalog, Linker]] = {}


async def read_profiles(
    caller: GateClient, source: str | None, tables: list[Table]
) -> Mapping[Place, TableProfile]:
    """What is known of the tables' values; the first few are waited for a moment. A caller who may
    not read rows learns nothing of them."""
    wanted = {(table.schema, table.name): table for table in tables[:_MOST_PROFILED]}
    if not wanted:
        return {}
    request = ReadProfiles(tuple(wanted.values()), min(_MOST_AWAITED, len(wanted)), joined=True)
    try:
        return (await caller.handle(request, source, Profiles)).tables
    except TidegateError:
        return {}
