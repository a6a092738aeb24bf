"""Looks for mistakes that make an answer wrong although its statement runs. Pure.

Each check says what it found and where; none changes a statement. They search for mistakes that
give plausible numbers: sums over rows that a join has multiplied, NOT IN with NULL, dates that are
compared as texts, a filter of the knowledge file that was left out, and by `connections` tables
that nothing connects. `literals` searches for texts that no row has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tidegate.model.profiles import Place, TableProfile
from tidegate.model.schema import Catalog, Table
from tidegate.products.pgedge.text_to_sql.binding import Bound, BoundColumn, Scope, equalities
from tidegate.products.pgedge.text_to_sql.connections import (
    DoubtfulJoin,
    doubtful_joins,
    unconnected,
)
from tidegate.products.pgedge.text_to_sql.knowledge import Knowledge
from tidegate.products.pgedge.text_to_sql.model import Check, UsedJoin
from tidegate.search.joins import Joins

_SUMS = frozenset({"Sum", "Avg", "Count", "Stddev", "StddevSamp", "StddevPop"})
_COMPARES = frozenset({"GT", "GTE", "LT", "LTE", "Between"})
_TEXTS = ("char", "text", "clob", "string")
_ISO = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d.*)?)?")
_UNSORTED = re.compile(r"%-?[yYbB]")
_WORD = re.compile(r"\w+")

Term = tuple[str, str]
"""A column by what the query calls its table, and its name, both folded."""


class NullProbe(msgspec.Struct, frozen=True):
    """A column that may be NULL in the subquery of a NOT IN: `WHERE it IS NULL` tells."""

    column: BoundColumn


def used_joins(bound: Bound, catalog: Catalog, knowledge: Knowledge) -> tuple[UsedJoin, ...]:
    """The joins of a statement, each once."""
    found: dict[frozenset[str], UsedJoin] = {}
    for scope in bound.scopes:
        for left, right in equalities(scope):
            if type(left).__name__ != "Column" or type(right).__name__ != "Column":
                continue
            one, other = scope.resolve(left), scope.resolve(right)
            if one is None or other is None or one.source == other.source:
                continue
            both = frozenset((one.path, other.path))
            declared = _is_declared(one, other) or _is_known(both, knowledge)
            found.setdefault(both, UsedJoin(one.path, other.path, declared))
    return tuple(found.values())


def _is_declared(one: BoundColumn, other: BoundColumn) -> bool:
    return any(
        key.table == to.table.name
        and (of.column.name, to.column.name) in zip(key.columns, key.references, strict=False)
        for of, to in ((one, other), (other, one))
        for key in of.table.foreign_keys
    ) or bool(_shared_targets(one) & _shared_targets(other))


def _shared_targets(end: BoundColumn) -> set[Place]:
    """What a column refers to by a declared key of its own."""
    return {
        (key.table, key.references[0])
        for key in end.table.foreign_keys
        if key.columns == (end.column.name,) and key.references
    }


def _is_known(both: frozenset[str], knowledge: Knowledge) -> bool:
    ends = {_last_two(path) for path in both}
    return any({_last_two(join.left), _last_two(join.to)} == ends for join in knowledge.joins)


def _last_two(path: str) -> str:
    return ".".join(path.casefold().split(".")[-2:])


def check_statement(
    bound: Bound,
    catalog: Catalog,
    knowledge: Knowledge,
    profiles: Mapping[Place, TableProfile],
) -> Iterator[Check]:
    """What the statement itself shows."""
    joins = Joins(catalog.tables)
    for scope in bound.scopes:
        yield from _multiplied_sums(scope, joins)
        yield from _text_dates(scope, profiles)
        yield from _dates_made_texts(scope)
        yield from _borrowed_names(scope)
        yield from unconnected(scope)
        for join in doubtful_joins(scope, joins, knowledge, profiles):
            if join.against:
                yield join.check()
    yield from _left_out_filters(bound, knowledge)


def joins_to_confirm(
    bound: Bound,
    catalog: Catalog,
    knowledge: Knowledge,
    profiles: Mapping[Place, TableProfile],
) -> list[DoubtfulJoin]:
    """The joins of which only values can say whether their columns belong together. None is of a
    masked column: whether its values are elsewhere would tell of them."""
    joins = Joins(catalog.tables)
    return [
        join
        for scope in bound.scopes
        for join in doubtful_joins(scope, joins, knowledge, profiles)
        if not join.against and not join.one.column.masked and not join.other.column.masked
    ]


# Sums that a join multiplies.


def _multiplied_sums(scope: Scope, joins: Joins) -> Iterator[Check]:
    node = scope.node
    if type(node).__name__ != "Select" or len(scope.sources) < 2:
        return
    pairs = [(_term(scope, left), _term(scope, right)) for left, right in equalities(scope)]
    grouped = _grouped(scope)
    for call in _aggregates(node):
        argument = call.this
        if type(argument).__name__ in ("Distinct", "Star") or argument is None:
            continue
        columns: list[Any] = list(argument.find_all(_column_type()))
        sources = {scope.source_of(column) for column in columns}
        if len(sources) != 1 or None in sources:
            continue
        (source,) = sources
        others = _multiplying(scope, str(source), pairs, grouped, joins)
        if others:
            text = " ".join(call.sql().split())[:80]
            yield Check(
                "fanout",
                f"{text} counts a row of {source} once for each of its rows in "
                f"{' and '.join(others)}: aggregate before the join, if each should count once.",
            )


def _aggregates(node: Any) -> Iterator[Any]:
    """The sums and counts of a query itself, not of its subqueries nor over windows."""
    for each in node.args.get("expressions") or ():
        for call in each.walk(prune=_is_query):
            if type(call).__name__ in _SUMS and type(call.parent).__name__ != "Window":
                yield call


def _is_query(node: Any) -> bool:
    return type(node).__name__ in ("Select", "Subquery", "Union")


def _inside(scope: Scope) -> Callable[[Any], bool]:
    """Whether a node is a query inside that of `scope`, whose own scope has its names."""

    def is_inner(node: Any) -> bool:
        return node is not scope.node and _is_query(node)

    return is_inner


def _column_type() -> Any:
    from sqlglot import exp

    return exp.Column


def _term(scope: Scope, node: Any) -> Term | None:
    """A column as a term; () means a constant, None for anything else."""
    if type(node).__name__ == "Column":
        source = scope.source_of(node)
        return None if source is None else (source, node.name.casefold())
    if type(node).__name__ in ("Literal", "Parameter", "Placeholder", "Boolean", "Neg"):
        return ("", "")
    return None


def _grouped(scope: Scope) -> set[Term]:
    group = scope.node.args.get("group")
    selects = list(getattr(scope.node, "selects", None) or ())
    terms: set[Term] = set()
    for each in group.expressions if group is not None else ():
        node = each
        if type(each).__name__ == "Literal" and not each.is_string and each.name.isdigit():
            place = int(each.name) - 1
            node = selects[place].unalias() if 0 <= place < len(selects) else each
        elif type(each).__name__ == "Column" and scope.source_of(each) is None:
            named = [s for s in selects if s.alias_or_name.casefold() == each.name.casefold()]
            node = named[0].unalias() if named else each
        term = _term(scope, node) if type(node).__name__ == "Column" else None
        if term is not None:
            terms.add(term)
    return terms


def _multiplying(
    scope: Scope,
    source: str,
    pairs: list[tuple[Term | None, Term | None]],
    grouped: set[Term],
    joins: Joins,
) -> list[str]:
    """The tables of a query of which several rows may be combined with one row of `source` in a
    group.

    Beside one row, its own columns and those of the group are fixed, and what is equal to
    something fixed is so as well; a table of which a key is fixed has one row.
    """
    fixed: set[Term] = {("", ""), *grouped}
    single = {source}
    changed = True
    while changed:
        changed = False
        for pair in pairs:
            for one, other in (pair, pair[::-1]):
                if one is None or other is None or other in fixed:
                    continue
                if one in fixed or one[0] in single:
                    fixed.add(other)
                    changed = True
        for called, known in scope.sources.items():
            own = {name for place, name in fixed if place == called}
            if called not in single and _is_single(known, own, joins):
                single.add(called)
                changed = True
    reached = {called for pair in pairs for term in pair if term is not None for called in term[:1]}
    return [
        called
        for called, known in scope.sources.items()
        if called not in single
        and called in reached
        and known is not None
        and _is_many(known, {name for place, name in fixed if place == called}, joins)
    ]


def _is_single(known: Table | Scope | None, own: set[str], joins: Joins) -> bool:
    """Whether at most one row has given values in the columns `own`."""
    if known is None:
        return False
    if isinstance(known, Scope):
        node = known.node
        group = node.args.get("group") if hasattr(node, "args") else None
        if group is None:
            return bool(node.args.get("distinct")) and _outputs(known) <= own
        terms = {name for _, name in _grouped(known)}
        return bool(terms) and terms <= own
    if any(key <= own for key in _keys(known)):
        return True
    referring = {name.casefold() for name in joins.of(known)} | {
        name.casefold() for key in known.foreign_keys for name in key.columns
    }
    # A table that only joins others has each pair once, whether it declares that or not.
    return len(referring) > 1 and referring <= own


def _outputs(scope: Scope) -> set[str]:
    return {each.alias_or_name.casefold() for each in getattr(scope.node, "selects", None) or ()}


def _keys(table: Table) -> list[set[str]]:
    key = {column.name.casefold() for column in table.columns if column.key}
    unique = [{name.casefold() for name in each.columns} for each in table.indexes if each.unique]
    return [each for each in (key, *unique) if each]


def _is_many(known: Table | Scope, own: set[str], joins: Joins) -> bool:
    """Whether several rows with the same values in `own` must be expected: it has a key, which is
    another, or it refers to others by these columns."""
    if isinstance(known, Scope):
        return False
    if _keys(known):
        return True
    referring = {name.casefold() for name in joins.of(known)} | {
        name.casefold() for key in known.foreign_keys for name in key.columns
    }
    return bool(own & referring)


# NOT IN with NULL.


def null_probes(bound: Bound) -> Iterator[NullProbe]:
    """Columns of which one NULL makes a NOT IN find nothing."""
    for scope in bound.scopes:
        for node in scope.node.walk(prune=_inside(scope)):
            if type(node).__name__ != "In" or type(node.parent).__name__ != "Not":
                continue
            query = node.args.get("query")
            inner: Any = query.this if query is not None else None
            found = next((each for each in bound.scopes if each.node is inner), None)
            if found is None or len(getattr(inner, "selects", ())) != 1:
                continue
            column = inner.selects[0].unalias()
            if type(column).__name__ != "Column" or _is_restricted(inner, column):
                continue
            resolved = found.resolve(column)
            if resolved is not None and resolved.column.nullable and not resolved.column.key:
                yield NullProbe(resolved)


def null_check(probe: NullProbe) -> Check:
    """What is said of a column in which there is a NULL."""
    return Check(
        "null_in_not_in",
        f"NOT IN finds no row at all while {probe.column.path} is NULL in one: "
        f"add WHERE {probe.column.column.name} IS NOT NULL, or use NOT EXISTS.",
    )


def _is_restricted(query: Any, column: Any) -> bool:
    """Whether the WHERE of a query names a column, which NULL then rarely passes."""
    where = query.args.get("where")
    return where is not None and any(
        each.name.casefold() == column.name.casefold() for each in where.find_all(_column_type())
    )


# Dates that are texts.


def _text_dates(scope: Scope, profiles: Mapping[Place, TableProfile]) -> Iterator[Check]:
    """Columns that keep dates as text, and are compared."""
    seen: set[str] = set()
    for sides, literals in _comparisons(scope):
        for column in [side for side in sides if type(side).__name__ == "Column"]:
            found = scope.resolve(column)
            if found is None or not _is_text(found.column.type) or found.path in seen:
                continue
            profile = profiles.get((found.table.schema, found.table.name), {})
            known = profile.get(found.column.name)
            if known is None:
                continue
            example = known.example or known.low or next(map(str, known.values), None)
            if {"dates", "months"}.intersection(known.remarks) and not (
                example and _ISO.fullmatch(example)
            ):
                seen.add(found.path)
                yield Check(
                    "text_dates",
                    f"{found.path} keeps dates as text such as '{example}', which do not sort as "
                    "dates: convert it before comparing.",
                )
            elif example and _ISO.fullmatch(example):
                odd = next((text for text in literals if not _ISO.fullmatch(text)), None)
                if odd is not None:
                    seen.add(found.path)
                    yield Check(
                        "text_dates",
                        f"{found.path} keeps dates as text such as '{example}', and is compared "
                        f"with '{odd[:40]}' letter by letter.",
                    )


def _comparisons(scope: Scope) -> Iterator[tuple[list[Any], list[str]]]:
    """The sides of each comparison of more and less, and those that are texts."""
    for node in scope.node.walk(prune=_inside(scope)):
        if type(node).__name__ not in _COMPARES:
            continue
        sides = [node.this, *(node.args.get(name) for name in ("expression", "low", "high"))]
        yield (
            sides,
            [side.name for side in sides if type(side).__name__ == "Literal" and side.is_string],
        )


def _dates_made_texts(scope: Scope) -> Iterator[Check]:
    """Dates that the statement itself makes texts of, which do not sort as dates, and compares."""
    for sides, literals in _comparisons(scope):
        for side in sides:
            column = _column_made_text(side, literals)
            found = scope.resolve(column) if column is not None else None
            if found is not None and (type(side).__name__ != "Cast" or _is_date(found.column.type)):
                yield Check(
                    "text_dates",
                    f"{found.path} is made a text, and compared letter by letter: compare it as a"
                    " date.",
                )


def _column_made_text(side: Any, literals: Sequence[str]) -> Any:
    """The column that a side makes a text of in a form that does not sort, or that is compared
    with a date in another form; None if it does not."""
    kind = type(side).__name__
    if kind == "TimeToStr":
        form = side.args.get("format")
        # A part of a date alone sorts, such as its hour, unless it is a name.
        sorts = form is None or form.name.startswith("%Y") or not _UNSORTED.search(form.name)
        return None if sorts else side.find(_column_type())
    if kind == "Cast" and _is_text(side.to.sql()) and type(side.this).__name__ == "Column":
        return side.this if any(not _ISO.match(text) for text in literals) else None
    return None


def _is_date(type_name: str) -> bool:
    return type_name.lower().startswith(("date", "timestamp"))


def _is_text(type_name: str) -> bool:
    low = type_name.lower()
    return any(word in low for word in _TEXTS)


# Names taken from the query around.


def _borrowed_names(scope: Scope) -> Iterator[Check]:
    for column in scope.columns:
        if scope.borrows(column):
            yield Check(
                "outer_name",
                f"No table of the subquery has {column.name}: the database takes it from the query "
                "around, where it may mean something else.",
            )


# Filters of the knowledge file.


def _left_out_filters(bound: Bound, knowledge: Knowledge) -> Iterator[Check]:
    for table in bound.tables:
        known = knowledge.table(table.schema, table.name)
        if known is None or not known.default_filter:
            continue
        wanted = {
            column.name.casefold()
            for column in table.columns
            if column.name.casefold() in _words(known.default_filter)
        }
        if wanted and not wanted & set(_filtered(bound, table)):
            yield Check(
                "default_filter",
                f"The rows of {table.name} are not restricted to {known.default_filter}, as the "
                "knowledge file says they should be unless asked otherwise.",
            )


def _words(text: str) -> Collection[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _filtered(bound: Bound, table: Table) -> Iterator[str]:
    """The columns of a table that conditions of the statement name."""
    for scope in bound.scopes:
        parts = [scope.node.args.get("where"), scope.node.args.get("having")]
        parts += [join.args.get("on") for join in scope.node.args.get("joins") or ()]
        for part in parts:
            for column in part.find_all(_column_type()) if part is not None else ():
                found = scope.resolve(column)
                if found is not None and found.table is table:
                    yield found.column.name.casefold()
