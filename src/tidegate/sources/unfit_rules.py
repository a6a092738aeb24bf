"""Which masks and row filters of a source its database does not fit. Such a rule closes the source
to the callers whom it binds, so the operator reads of it where the source is saved or checked."""

from __future__ import annotations

from msgspec import structs

from tidegate.engines.registry import language_of
from tidegate.errors import TidegateError
from tidegate.identity.builtin_actors import cli
from tidegate.model.gate_client import GateClient
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source
from tidegate.policy.data_rules import rules_for


async def unfit_rules(caller: GateClient, source: Source) -> list[str]:
    """What is wrong with each rule of a source that speaks SQL, whomever the rule binds.

    Raises: TidegateError if the catalog cannot be read.
    """
    if not (source.masks or source.filters):
        return []
    from tidegate.sql.language import SqlLanguage

    if not isinstance(language_of(source), SqlLanguage):
        return []
    catalog = await caller.handle(Browse("catalog"), source.name, Catalog)
    # Each rule alone, and for every caller.
    masks = [(Mask(rule.column, rule.show),) for rule in source.masks]
    filters = [(RowFilter(rule.table, rule.where),) for rule in source.filters]
    alone = [structs.replace(source, masks=mask, filters=()) for mask in masks]
    alone += [structs.replace(source, masks=(), filters=each) for each in filters]
    return list(dict.fromkeys(text for each in alone if (text := _problem(each, catalog))))


def _problem(source: Source, catalog: Catalog) -> str:
    """Why the only rule of the source does not fit; empty if it does."""
    from tidegate.sql.masking.rewrite import masked_columns

    try:
        rules = rules_for(cli(), source, language_of(source))
        if rules is not None:
            masked_columns(source.dialect, rules, catalog)
    except TidegateError as error:
        return error.message
    return ""
