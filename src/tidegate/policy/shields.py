"""Decides which masks and row filters bind an actor on a source. Touches no statement."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import structs

from tidegate.sql.shield.model import Shield, Show, masked
from tidegate.types import Actor, Catalog, Counts, Description, Mask, RowFilter, Source

_BLANK = re.compile(r"\{(actor\.\w*)\}")
_SAYABLE = re.compile(r"[^\x00-\x1f\x7f\\]*")


def shield_of(actor: Actor, source: Source) -> Shield | None:
    """What is hidden from the actor; None if nothing is.

    Raises: GateError POLICY_MASKED if a filter needs a name that cannot stand in it.
    """
    if not source.masks and not source.filters:
        return None
    return _shield(actor.id, actor.name, source)


@lru_cache(maxsize=1024)
def _shield(actor_id: str, actor_name: str, source: Source) -> Shield | None:
    masks: tuple[tuple[str, Show], ...] = tuple(
        [(rule.column, rule.show) for rule in source.masks if _binds(rule, actor_name, source)]
    )
    blanks = {"actor.id": actor_id, "actor.name": actor_name}
    filters = tuple(
        [
            (rule.table, _filled(rule, blanks))
            for rule in source.filters
            if _binds(rule, actor_name, source)
        ]
    )
    return Shield(masks, filters) if masks or filters else None


def dressed(source: Source, masks: tuple[Mask, ...], filters: tuple[RowFilter, ...]) -> Source:
    """The source with the rules beside its own that are given for every source or by its tags."""
    if not masks and not filters:
        return source
    return structs.replace(
        source,
        masks=source.masks + tuple([rule for rule in masks if _fits(rule, source)]),
        filters=source.filters + tuple([rule for rule in filters if _fits(rule, source)]),
    )


def _fits(rule: Mask | RowFilter, source: Source) -> bool:
    return rule.tag is None or rule.tag in source.tags


def _binds(rule: Mask | RowFilter, actor_name: str, source: Source) -> bool:
    if not _fits(rule, source) or actor_name in rule.except_tokens:
        return False
    return not rule.tokens or actor_name in rule.tokens


def _filled(rule: RowFilter, blanks: dict[str, str]) -> str:
    """The condition with literals in its blanks. They are quoted here, where the text is whole: a
    blank inside a string or a name would let a name of a token write SQL, and is refused."""
    parts = _BLANK.split(rule.where)
    written = parts[0]
    for blank, after in zip(parts[1::2], parts[2::2], strict=True):
        value = blanks.get(blank)
        if value is None:
            raise masked(
                f"The row filter on `{rule.table}` has an unknown blank {{{blank[:40]}}}",
                f"filter.{rule.table}",
                "Ask the operator: {actor.name} and {actor.id} are known.",
            )
        if not _SAYABLE.fullmatch(value) or not value.isascii():
            raise masked(
                f"The row filter on `{rule.table}` cannot hold this caller's name",
                f"filter.{rule.table}",
                "Use a token whose name is plain text.",
            )
        if written.count("'") % 2 or written.count('"') % 2 or written.count("`") % 2:
            raise masked(
                f"The row filter on `{rule.table}` has a blank inside quotes",
                f"filter.{rule.table}",
                "Ask the operator to leave the quotes out: the blank is quoted by itself.",
            )
        literal = value.replace("'", "''")
        written += f"'{literal}'{after}"
    return written


def concealed(described: Description, shield: Shield | None, schema: str | None) -> Description:
    """Metadata as the actor may see it: in the schema it switched to, and with no count of rows
    where rows are hidden from it."""
    if schema is not None and isinstance(described, Catalog):
        described = structs.replace(described, default_schema=schema)
    if shield is None or not shield.filters:
        return described
    if isinstance(described, Counts):
        return Counts({})
    if isinstance(described, Catalog):
        tables = tuple([structs.replace(t, approximate_rows=None) for t in described.tables])
        return structs.replace(described, tables=tables)
    return described
