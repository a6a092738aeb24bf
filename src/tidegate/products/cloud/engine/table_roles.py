"""What a statement says of each table beside the conditions that SQLite passes on with its loops.

SQLite passes no condition of WHERE to a virtual table that an outer join may give rows of NULLs.
So `a LEFT JOIN b … WHERE b.region = 'x'`, from which every such row drops out, is written as the
inner join that it is; and of a table whose rows all stay, on the right of a RIGHT or FULL JOIN, the
literals that WHERE compares its columns with are read here. Its rows are read twice, once for the
rows that match and once for those that do not, and both times they must be of the same calls.

SQLite may also read a table once for each part of an OR, and tells rows apart by their number. Two
calls can give the same thing as different rows, so an OR is written such that it does not, and the
values that each part asks for are read here as if they were in one IN list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple, cast

from sqlglot import exp

from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.engine.text_change import TextChange
from tidegate.products.cloud.http.responses import SqlValue
from tidegate.sql.lex import Token

NEVER: Final = "tidegate_never"
"""A function of SQLite that is false, and that its planner knows nothing of."""
_MOST_INTEGER: Final = 2**63
_WIDENING: Final = ("RIGHT", "FULL")

Constants = Mapping[str, tuple[SqlValue, ...]]
"""By folded names of columns, the values of which each row of the result has one."""
_NONE: Final[Constants] = {}


class TableRole(NamedTuple):
    """`is_kept`: a RIGHT or FULL JOIN gives the table's rows also where nothing matches them.
    `constants` are those that SQLite does not pass on as they are: all of a table that is kept,
    else those of an OR."""

    is_kept: bool = False
    constants: Constants = _NONE


class TableRoles(NamedTuple):
    """`roles` are by the `id` of the tables in the tree. `joins` writes outer joins as what they
    are; `ors` are places where `OR NEVER() ` keeps SQLite from reading a table for each part."""

    roles: Mapping[int, TableRole]
    joins: tuple[TextChange, ...]
    ors: tuple[int, ...]


class _Relation(NamedTuple):
    """One part of a FROM. `join` is None for the first."""

    source: exp.Expr
    join: exp.Join | None
    alias: str


def read_roles(
    tree: exp.Expr,
    tokens: list[Token],
    start_of: Callable[[exp.Table], int],
    has_column: Callable[[exp.Table, str], bool],
) -> TableRoles:
    """`start_of` is where a table is in the text; `has_column` says whether one has a column of
    a folded name, which it must for all that are resources."""
    roles: dict[int, TableRole] = {}
    changes: list[TextChange] = []
    sides: dict[int, str] = {id(join): join.side for join in tree.find_all(exp.Join)}
    for select in tree.find_all(exp.Select):
        relations = _relations(select)
        holding = _where(select)
        for at in range(len(relations) - 1, 0, -1):
            join = cast("exp.Join", relations[at].join)
            side = _needed_side(join.side, relations, at, holding, has_column)
            source = relations[at].source
            if side != join.side and isinstance(source, exp.Table):
                change = _side_change(tokens, start_of(source), side)
                if change is not None:
                    sides[id(join)] = side
                    changes.append(change)
            on = join.args.get("on")
            if on is not None and sides[id(join)] in ("", "RIGHT"):
                holding = [*holding, on]
        for relation in relations:
            if not isinstance(relation.source, exp.Table):
                continue
            is_kept = relation.join is not None and sides[id(relation.join)] in _WIDENING
            constants: dict[str, tuple[SqlValue, ...]] = {}
            for condition in _where(select):
                for part in _conjuncts(condition):
                    if is_kept or isinstance(part, exp.Or):
                        own = _own(_constants(part), relation, relations, has_column)
                        constants = {**own, **constants}
            roles[id(relation.source)] = TableRole(is_kept, constants)
    for join in tree.find_all(exp.Join):  # also one within brackets in a FROM
        if sides[id(join)] in _WIDENING and id(join.this) not in roles:
            roles[id(join.this)] = TableRole(is_kept=True)
    return TableRoles(roles, tuple(changes), tuple(_or_places(tree, tokens)))


def _relations(select: exp.Select) -> list[_Relation]:
    source = select.args.get("from_") or select.args.get("from")
    if not isinstance(source, exp.From):
        return []
    joins: list[exp.Join] = select.args.get("joins") or []
    parts = [(source.this, None), *((join.this, join) for join in joins)]
    return [_Relation(each, join, folded(each.alias_or_name)) for each, join in parts]


def _where(select: exp.Select) -> list[exp.Expr]:
    where = select.args.get("where")
    return [where.this] if where is not None else []


def _needed_side(
    side: str,
    relations: list[_Relation],
    at: int,
    holding: list[exp.Expr],
    has_column: Callable[[exp.Table, str], bool],
) -> str:
    """The side of a join that gives the same rows in the end: what `holding` compares with a
    literal is not NULL."""
    if side not in ("LEFT", "RIGHT", "FULL"):
        return side

    def is_real(relation: _Relation) -> bool:
        return any(
            _own(_constants(part), relation, relations, has_column, is_certain=True)
            for condition in holding
            for part in _conjuncts(condition)
        )

    right = is_real(relations[at])
    left = any(map(is_real, relations[:at]))
    if side == "FULL":
        return {(True, True): "", (True, False): "LEFT", (False, True): "RIGHT"}.get(
            (left, right), side
        )
    return "" if (right if side == "LEFT" else left) else side


def _side_change(tokens: list[Token], table_at: int, side: str) -> TextChange | None:
    """Writes another side before the JOIN of the table at a place; None if the words
    there are in an order of their own."""
    at = next(number for number, token in enumerate(tokens) if token.at == table_at) - 1
    if at < 1 or tokens[at].key != "JOIN":
        return None
    first = at - 1
    if tokens[first].key == "OUTER":
        first -= 1
    if first < 0 or tokens[first].key not in ("LEFT", "RIGHT", "FULL"):
        return None
    return TextChange(tokens[first].at, tokens[at].at, f"{side} " if side else "")


def _own(
    constants: Mapping[tuple[str, str], tuple[SqlValue, ...]],
    relation: _Relation,
    relations: list[_Relation],
    has_column: Callable[[exp.Table, str], bool],
    *,
    is_certain: bool = False,
) -> dict[str, tuple[SqlValue, ...]]:
    """The constants of one table. A name without its table is of each that has such a column: of
    several, a USING makes them one, or the statement is refused. `is_certain`: of that table
    alone."""

    def is_own(qualifier: str, name: str) -> bool:
        if qualifier:
            return qualifier == relation.alias
        if not isinstance(relation.source, exp.Table) or not has_column(relation.source, name):
            return False
        others = [each.source for each in relations if each is not relation]
        return not is_certain or not any(
            not isinstance(each, exp.Table) or has_column(each, name) for each in others
        )

    return {name: values for (q, name), values in constants.items() if is_own(q, name)}


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node


def _constants(node: exp.Expr) -> dict[tuple[str, str], tuple[SqlValue, ...]]:
    """The columns that have one of some literals wherever a condition is true, by the name of their
    table, which may be empty, and their own."""
    if isinstance(node, exp.Paren):
        return _constants(node.this)
    if isinstance(node, exp.And):
        return {**_constants(node.expression), **_constants(node.this)}
    if isinstance(node, exp.Or):
        left, right = _constants(node.this), _constants(node.expression)
        return {
            key: tuple(dict.fromkeys([*left[key], *right[key]])) for key in left if key in right
        }
    if isinstance(node, exp.EQ):
        for column, other in ((node.this, node.expression), (node.expression, node.this)):
            value = _literal(other)
            if isinstance(column, exp.Column) and value is not None:
                return {_key(column): (value,)}
    if isinstance(node, exp.In) and isinstance(node.this, exp.Column):
        members: list[Any] = node.expressions
        values = [_literal(each) for each in members]
        if values and None not in values:
            return {_key(node.this): tuple(dict.fromkeys(values))}
    return {}


def _key(column: exp.Column) -> tuple[str, str]:
    # Of provider.service.resource.column the last but one names the table.
    return folded(column.table), folded(column.name)


def _literal(node: Any) -> SqlValue:
    """The value of a literal; None for anything else."""
    sign = 1
    if isinstance(node, exp.Neg):
        sign, node = -1, node.this
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return node.name if sign == 1 else None
    try:
        value = int(node.name) if node.name.isdigit() else float(node.name)
    except ValueError:
        return None
    return sign * value if abs(value) < _MOST_INTEGER else None


def _or_places(tree: exp.Expr, tokens: list[Token]) -> Iterator[int]:
    """The place of each OR that SQLite makes no IN list of."""
    for node in tree.find_all(exp.Or):
        if isinstance(node.parent, exp.Or):
            continue
        parts = list(_parts(node))
        if not (node.find_ancestor(exp.Where, exp.Join)) or _is_one_list(parts):
            continue
        for left, right in pairwise(parts):
            ends, starts = _places(left), _places(right)
            if ends and starts:
                low, high = max(ends), min(starts)
                yield from (
                    token.at for token in tokens if token.key == "OR" and low < token.at < high
                )
                break


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Or):
        yield from _parts(node.this)
        yield from _parts(node.expression)
    else:
        yield node


def _is_one_list(parts: list[exp.Expr]) -> bool:
    """Whether SQLite makes one IN list of the parts: each is `column = value` of one column."""
    names: list[set[tuple[str, str]]] = []
    for part in parts:
        if not isinstance(part, exp.EQ):
            return False
        sides = (part.this, part.expression)
        names.append({_key(each) for each in sides if isinstance(each, exp.Column)})
    return any(all(name in each for each in names) for name in names[0])


def _places(node: exp.Expr) -> list[int]:
    found = (each.meta.get("start") for each in node.find_all(exp.Identifier))
    return [each for each in found if isinstance(each, int)]
