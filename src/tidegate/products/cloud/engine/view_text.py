"""Views of documents in the text of a statement: the values that they get from outside.

A document's view has placeholders, `region = 'us-east-1'`, in whose place the conditions of the
statement stand. A condition on a parameter that the view neither has nor shows is added to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from sqlglot import exp

from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.engine.resource_table import quoted
from tidegate.products.cloud.engine.text_change import TextChange, changed, parsed, path_of, span
from tidegate.sql import quoting
from tidegate.sql.dialects import find
from tidegate.sql.lex import Token, lex

_BEHIND_WHERE: Final = frozenset({"GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT"})


class Given(NamedTuple):
    """A condition on a column outside of a view: `text` follows the column's name, `= 'x'`, or is
    None where the value comes from another table. `column` is the name in the statement."""

    text: str | None
    column: exp.Column
    is_own: bool
    """Whether the column can be of the view alone, and precedes its value."""

    def removal(self, text: str) -> TextChange:
        """What takes the condition out of the statement's text."""
        return TextChange(*_condition_span(self.column, text), "1")


Takes = Callable[[tuple[str, ...], str], bool]
"""Whether the resource of a path has a parameter of a name."""


def conditions_on(table: exp.Table) -> dict[str, Given]:
    """The conditions that hold for each row of a table, by its columns' names: of its SELECT's
    WHERE and ON with AND between them, and of SELECTs around that, which name no table."""
    given: dict[str, Given] = {}
    is_outer = False
    alias = folded(table.alias or table.name)
    select = table.find_ancestor(exp.Select)
    while select is not None:
        is_alone = not select.args.get("joins")
        for condition in _conjuncts(select, None if is_outer else table):
            sides = _sides(condition)
            for at, side in enumerate(sides):
                if not isinstance(side, exp.Column) or folded(side.table or alias) != alias:
                    continue
                if not (is_outer and side.table):
                    is_own = not is_outer and at == 0 and bool(side.table or is_alone)
                    text = _written(condition, sides, at)
                    given.setdefault(folded(side.name), Given(text, side, is_own))
        is_outer = True
        select = select.find_ancestor(exp.Select)
    return given


def _conjuncts(select: exp.Select, table: exp.Table | None) -> Iterator[exp.Expr]:
    """The conditions that all rows of a SELECT meet, and those by which `table` is joined."""
    waiting: list[Any] = []
    where = select.args.get("where")
    if where is not None:
        waiting.append(where.this)
    for join in select.args.get("joins") or ():
        on, side = join.args.get("on"), str(join.args.get("side") or "").upper()
        if on is not None and (not side or (side == "LEFT" and join.this is table)):
            waiting.append(on)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, exp.And):
            waiting[:0] = [node.left, node.right]
        elif isinstance(node, exp.Paren):
            waiting.insert(0, node.this)
        elif isinstance(node, (exp.EQ, exp.In)):
            yield node


def _written(condition: exp.Expr, sides: list[exp.Expr], at: int) -> str | None:
    values = [sides[1 - at]] if isinstance(condition, exp.EQ) else condition.expressions
    shown = [_literal(each) for each in values]
    if not shown or None in shown:
        return None
    members = ", ".join(each or "" for each in shown)
    return f"= {members}" if isinstance(condition, exp.EQ) else f"IN ({members})"


def with_parameters(
    sql: str, given: Mapping[str, Given], takes: Takes
) -> tuple[str, Collection[str]]:
    """A view's text with conditions on the parameters that it does not show, and their names.

    One that it has a placeholder for needs no more.
    """
    tree: Any = parsed(sql)
    shown = {folded(each.alias_or_name) for each in getattr(tree, "selects", [])}
    hidden = [
        name
        for name, each in given.items()
        if name not in shown and each.text is not None and each.is_own
    ]
    if not isinstance(tree, exp.Select) or "*" in shown or not hidden:
        return sql, ()
    placeholders = {
        folded(condition.this.name)
        for condition in tree.find_all(exp.EQ, exp.In)
        if isinstance(condition.this, exp.Column)
    }
    tables = [each for each in tree.find_all(exp.Table) if each.parent_select is tree]
    passed: list[str] = []
    added: list[str] = []
    for name in hidden:
        if name in placeholders:
            passed.append(name)
            continue
        table = next((each for each in tables if takes(path_of(each), name)), None)
        if table is not None:
            passed.append(name)
            column = f"{quoted(table.alias or table.name)}.{quoted(given[name].column.name)}"
            added.append(f"{column} {given[name].text}")
    return (_with_conditions(sql, added) if added else sql), passed


def _with_conditions(sql: str, conditions: list[str]) -> str:
    """A SELECT with further conditions in its WHERE."""
    tokens = lex(sql, find("cloud").lexical_rules)
    where = behind = None
    depth = 0
    for token in tokens:
        depth += (token.key == "(") - (token.key == ")")
        if depth == 0 and token.key == "WHERE":
            where = token
        elif depth == 0 and token.key in _BEHIND_WHERE and behind is None:
            behind = token
    end = behind.at if behind is not None else len(sql)
    added = " AND ".join(conditions)
    if where is None:
        return changed(sql, [TextChange(end, end, f" WHERE {added}\n")])
    start = where.at + len(where.text)
    return changed(sql, [TextChange(start, start, f" {added} AND ("), TextChange(end, end, "\n) ")])


def _sides(condition: exp.Expr) -> list[exp.Expr]:
    sides = [condition.this]
    if isinstance(condition, exp.EQ):
        sides.append(condition.expression)
    return sides


def _literal(node: exp.Expr) -> str | None:
    """A literal as text; None for any other token."""
    if isinstance(node, exp.Literal):
        return quoting.literal(node.name, "cloud") if node.is_string else node.name
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return f"-{node.this.name}"
    return None


def clobbered(
    tree: exp.Expr, text: str, given: Mapping[str, Given], required: Collection[str]
) -> list[TextChange]:
    """A view's placeholders: a condition outside takes the place of `column = 'literal'` in it.

    Where the value comes from another table, the condition is left out, and the one outside, which
    SQLite carries into the subquery, is all that counts.
    """
    exposed = {
        folded(each.name)
        for select in tree.find_all(exp.Select)
        for each in select.expressions
        if isinstance(each, exp.Column)
    }
    changes: list[TextChange] = []
    wanted = {folded(each) for each in required}
    for condition in tree.find_all(exp.EQ, exp.In):
        column = condition.this
        values = condition.expressions if isinstance(condition, exp.In) else [condition.expression]
        if not isinstance(column, exp.Column) or any(_literal(each) is None for each in values):
            continue
        outside = given.get(folded(column.name))
        if outside is None and folded(column.name) not in wanted:
            continue
        start, stop = _condition_span(column, text)
        if outside is not None and outside.text is not None:
            name_end = span(column.parts)[1]
            changes.append(TextChange(name_end, stop, f" {outside.text}"))
        elif folded(column.name) in exposed:
            changes.append(TextChange(start, stop, "1"))
    return changes


def _condition_span(column: exp.Column, text: str) -> tuple[int, int]:
    """Where `column = 'literal'` or `column IN (…)` is, by its tokens."""
    start, behind = span(column.parts)
    tokens: list[Token] = lex(text[behind:], find("cloud").lexical_rules)
    stop = 2
    if tokens[0].key == "IN":
        stop = next(at for at, each in enumerate(tokens) if each.key == ")") + 1
    elif tokens[1].key == "-":
        stop = 3
    end = behind + tokens[stop].at if stop < len(tokens) else len(text)
    return start, start + len(text[start:end].rstrip())
