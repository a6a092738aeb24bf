"""The masks, row filters and lists of tables that apply to an actor on a source. Changes no
statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from msgspec import structs

from tidegate.errors import TidegateError, masking_refused
from tidegate.model.actors import Actor, Role, role_on
from tidegate.model.data_rules import DataRules, Show
from tidegate.model.decisions import Verdict
from tidegate.model.language import Language
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source

_BLANK = re.compile(r"\{(actor\.\w*)\}")
_ALLOWED_VALUE = re.compile(r"[^\x00-\x1f\x7f\\]*")


class _Caller(NamedTuple):
    """What a rule reads to find whether it binds an actor. `role` is that of an operator on the
    source; `blanks` are its values for the placeholders of filters."""

    name: str
    is_operator: bool
    role: Role | None
    blanks: tuple[tuple[str, str], ...]

    def is_bound(self, rule: Mask | RowFilter, source: Source) -> bool:
        return _binds(rule, self, source)


def _callers(actor: Actor, source: Source) -> tuple[_Caller, ...]:
    """The actor, and the operator who sees what it reads: what is hidden from either is."""
    blanks = (("actor.id", actor.id), ("actor.name", actor.name))
    if actor.roles is None:
        own = _Caller(actor.name, False, None, blanks)
    else:
        role = role_on(actor.roles, source.name)
        own = _Caller(actor.name.casefold(), True, role, blanks)
    return (own,) if actor.seen_by is None else (own, *_callers(actor.seen_by, source))


def hides_something(actor: Actor, source: Source) -> bool:
    """Whether anything of the source is hidden from the actor."""
    return actor.tables is not None or any(
        caller.is_bound(rule, source)
        for caller in _callers(actor, source)
        for rule in (*source.masks, *source.filters)
    )


def rules_by_name(actor: Actor, source: Source) -> DataRules | None:
    """The names of what is hidden from the actor, without conditions, to leave it out of rows that
    no statement was rewritten for; None if nothing is hidden."""
    if not hides_something(actor, source):
        return None
    callers = _callers(actor, source)
    return _by_name(source, lambda rule: any(each.is_bound(rule, source) for each in callers))


def rules_for_people(source: Source) -> DataRules | None:
    """The names of what is hidden from some operator; None if nothing is."""
    return _by_name(
        source,
        lambda rule: _fits(rule, source) and bool(rule.operators or rule.roles or not rule.tokens),
    )


def digest_of(rules: DataRules | None) -> str:
    """Tells one set of rules from another."""
    return sha256(repr(rules).encode()).hexdigest()[:16]


def _by_name(source: Source, holds: Callable[[Mask | RowFilter], bool]) -> DataRules | None:
    masks: tuple[tuple[str, Show], ...] = tuple(
        [(rule.column, rule.show) for rule in source.masks if holds(rule)]
    )
    filters = tuple([(rule.table, "1 = 0") for rule in source.filters if holds(rule)])
    return DataRules(masks, filters) if masks or filters else None


def rules_for(actor: Actor, source: Source, language: Language) -> DataRules | None:
    """What is hidden from the actor; None if nothing is. `language` is the source's.

    Raises: TidegateError POLICY_MASKED if a filter needs a name that cannot be in it.
    """
    if not source.masks and not source.filters and actor.tables is None:
        return None
    return _data_rules(_callers(actor, source), actor.tables, source, language)


@lru_cache(maxsize=1024)
def _data_rules(
    callers: tuple[_Caller, ...],
    tables: frozenset[str] | None,
    source: Source,
    language: Language,
) -> DataRules | None:
    masks: tuple[tuple[str, Show], ...] = tuple(
        [
            (rule.column, rule.show)
            for rule in source.masks
            if any(caller.is_bound(rule, source) for caller in callers)
        ]
    )

    def literal(value: str) -> str:
        return language.literal(value, source.dialect)

    filters = tuple(
        [
            (rule.table, _filled(rule, dict(caller.blanks), literal))
            for caller in callers
            for rule in source.filters
            if caller.is_bound(rule, source)
        ]
    )
    only = None if tables is None else tuple(sorted(_there(tables, source)))
    return DataRules(masks, filters, only) if masks or filters or only is not None else None


def _there(tables: frozenset[str], source: Source) -> Iterator[str]:
    """The tables of a list that are of this source, without its name."""
    for table in tables:
        where, colon, name = table.rpartition(":")
        if not colon or where == source.name:
            yield name


def may_use_table(
    actor: Actor, source: Source, table: str, schema: str | None, database: str | None
) -> bool:
    """Whether the actor's list, if it has one, has a table that was looked up before. Without a
    catalog: a name without a schema means the usual default schemas alone."""
    if actor.tables is None:
        return True
    listed = frozenset(_there(actor.tables, source))
    at_home = not schema or schema in ("public", "main", database)
    return (at_home and table in listed) or f"{schema}.{table}" in listed


def hidden_columns(
    rules: DataRules, schema: str, table: str, columns: Sequence[str]
) -> tuple[str, ...]:
    """Those of the columns of a table that are masked, for rows that no statement was rewritten
    for: without a catalog, and so in any case of letters."""
    wanted = {
        column.lower()
        for where, _, column in [path.rpartition(".") for path, _ in rules.masks]
        if _means(where, schema, table)
    }
    return tuple([name for name in columns if name.lower() in wanted])


def is_filtered(rules: DataRules, schema: str, table: str) -> bool:
    """Whether rows of a table may be hidden."""
    return any(_means(path, schema, table) for path, _ in rules.filters)


def masked_names(rules: DataRules, table: str) -> frozenset[str]:
    """The names of the masked columns of a table by its whole name, whatever parts of the name a
    rule or a statement leaves out: more rather than fewer."""
    split = [path.rpartition(".") for path, _ in rules.masks]
    return frozenset([column for where, _, column in split if _ends_alike(where, table)])


def is_filtered_table(rules: DataRules, table: str) -> bool:
    """Whether rows of a table may be hidden, by its whole name."""
    return any(_ends_alike(path, table) for path, _ in rules.filters)


def _ends_alike(path: str, table: str) -> bool:
    one, other = [f".{name.replace('-', '_').casefold()}" for name in (path, table)]
    return one.endswith(other) or other.endswith(one)


def _means(path: str, schema: str, table: str) -> bool:
    where, _, name = path.rpartition(".")
    there = not where or not schema or where.lower() == schema.lower()
    return there and name.lower() == table.lower()


def verdict_of(refusal: TidegateError) -> Verdict:
    """The verdict of a refusal by data rules."""
    rule = str(refusal.details.get("rule", "source.masking"))
    return Verdict("deny", rule, refusal.message, refusal.code.value, refusal.hint)


def with_global_rules(
    source: Source, masks: tuple[Mask, ...], filters: tuple[RowFilter, ...]
) -> Source:
    """The source with the rules in addition to its own that are given for every source or by its
    tags."""
    if not masks and not filters:
        return source
    return structs.replace(
        source,
        masks=source.masks + tuple([rule for rule in masks if _fits(rule, source)]),
        filters=source.filters + tuple([rule for rule in filters if _fits(rule, source)]),
    )


def _fits(rule: Mask | RowFilter, source: Source) -> bool:
    return rule.tag is None or rule.tag in source.tags


def _binds(rule: Mask | RowFilter, caller: _Caller, source: Source) -> bool:
    if not _fits(rule, source):
        return False
    is_for_all = not (rule.tokens or rule.operators or rule.roles)
    if not caller.is_operator:
        name = caller.name
        return name not in rule.except_tokens and (is_for_all or name in rule.tokens)
    role = caller.role
    if role in rule.except_roles or _is_named(caller, rule.except_operators):
        return False
    # A caller without a role there does not get there either; if it did, the rule would hold.
    named = _is_named(caller, rule.operators) or role in rule.roles or role is None
    return is_for_all or named


def _is_named(operator: _Caller, names: Sequence[str]) -> bool:
    return any(name.casefold() == operator.name for name in names)


def _filled(rule: RowFilter, blanks: dict[str, str], literal: Callable[[str], str]) -> str:
    """The condition with literals in its blanks. They are put in here, where the text is whole: a
    blank inside a string or a name would let a token's name write a condition, and is refused."""
    parts = _BLANK.split(rule.where)
    written = parts[0]
    for blank, after in zip(parts[1::2], parts[2::2], strict=True):
        value = blanks.get(blank)
        if value is None:
            raise masking_refused(
                f"The row filter on `{rule.table}` has an unknown blank {{{blank[:40]}}}",
                f"filter.{rule.table}",
                "Ask the operator: {actor.name} and {actor.id} are known.",
            )
        if not _ALLOWED_VALUE.fullmatch(value) or not value.isascii():
            raise masking_refused(
                f"The row filter on `{rule.table}` cannot hold this caller's name",
                f"filter.{rule.table}",
                "Use a token whose name is plain text.",
            )
        if written.count("'") % 2 or written.count('"') % 2 or written.count("`") % 2:
            raise masking_refused(
                f"The row filter on `{rule.table}` has a blank inside quotes",
                f"filter.{rule.table}",
                "Ask the operator to leave the quotes out: the blank is quoted by itself.",
            )
        written += literal(value) + after
    return written
