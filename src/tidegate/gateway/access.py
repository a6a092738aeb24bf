"""What a caller may do on a source, for people who look: cells of a matrix, and one of them with
all that decided it. Opens nothing, runs nothing, records nothing."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.engines.registry import language_of
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor
from tidegate.model.data_rules import DataRules
from tidegate.model.sources import Identity, Source
from tidegate.model.statement_rules import StatementRules
from tidegate.policy.access_matrix import (
    VERBS,
    AccessCell,
    Verb,
    access_cell,
    explain_cell,
)
from tidegate.policy.data_rules import rules_for
from tidegate.policy.deciding_settings import DecidingSetting, deciding_settings
from tidegate.policy.explanation import Explanation
from tidegate.policy.run_as import resolve_run_as


class AccessDetail(NamedTuple):
    """A cell with the rules that were asked, the settings that decided, and what the caller is and
    sees there. `data_rules` and `identity` are None where there are none, or where they refuse."""

    cell: AccessCell
    explanation: Explanation
    settings: tuple[DecidingSetting, ...]
    data_rules: DataRules | None
    identity: Identity | None


def cells_of(
    actor: Actor, source: Source, statements: StatementRules | None
) -> tuple[AccessCell, ...]:
    """The cells of all verbs, in their order. Raises: TidegateError SOURCE_URL if the language of
    the source is unknown."""
    language = language_of(source)
    return tuple([access_cell(actor, source, verb, language, statements) for verb in VERBS])


def hidden_from(actor: Actor, source: Source) -> DataRules | None:
    """What is hidden from a caller; None if nothing is. Raises: TidegateError where the rules
    refuse, as `cells_of`."""
    return rules_for(actor, source, language_of(source))


def detail_of(
    actor: Actor, source: Source, verb: Verb, statements: StatementRules | None
) -> AccessDetail:
    """One cell with all that decided it. Raises: as `cells_of`."""
    language = language_of(source)
    cell = access_cell(actor, source, verb, language, statements)
    explanation = explain_cell(actor, source, verb, language, statements)
    settings = deciding_settings(cell.strictest.verdict.rule, actor, source, statements)
    try:
        identity = resolve_run_as(actor, source)
        data_rules = rules_for(actor, source, language)
    except TidegateError:
        identity, data_rules = None, None  # the cell shows it
    return AccessDetail(cell, explanation, settings, data_rules, identity)
