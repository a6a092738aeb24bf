"""Takes INSERT, UPDATE, REPLACE and DELETE apart: what they set, for what, and what they return."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from sqlglot import exp

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import SqlVerb
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.engine.resource_table import quoted
from tidegate.products.cloud.engine.text_change import parsed, path_of
from tidegate.products.cloud.language.cloud_sql import sql_of
from tidegate.products.cloud.language.statements import SqlStatement
from tidegate.sql.dialects import find
from tidegate.sql.lex import Token, lex

_CONDITIONS: Final = (
    "This is no condition of a change: write name = value, or name IN (…), with AND between them."
)
_STRING: Final = re.compile(r"string\s*\(", re.IGNORECASE)
_ENDS: Final = ("WHERE", "RETURNING")


class Assignment(NamedTuple):
    """One name and the SQL of its value; `is_list`: of a query, or a list, of several."""

    name: str
    sql: str
    is_list: bool = False


class ChangeText(NamedTuple):
    """A change: either `rows`, a query whose columns are `names`, or `assignments`. `returning` is
    what follows RETURNING. `as_text` are names whose value is `string(…)`."""

    verb: SqlVerb
    path: tuple[str, ...]
    names: tuple[str, ...] = ()
    rows: str = ""
    assignments: tuple[Assignment, ...] = ()
    returning: str = ""
    as_text: frozenset[str] = frozenset()


def read_change(statement: SqlStatement, text: str) -> ChangeText:
    """The parts of a statement, whose text with its parameters written in is `text`.

    Raises: TidegateError SQL_UNREADABLE, ARGUMENT_INVALID.
    """
    text = sql_of(SqlStatement(statement.verb, text))
    tree = parsed(text)
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    path = path_of(target) if isinstance(target, exp.Table) else ()
    if len(path) != 3:
        raise _unreadable("A change names one resource as provider.service.resource.")
    verb: Any = statement.verb
    tokens = lex(text, find("cloud").lexical_rules)
    parts = _split(tokens)
    returning = _text(text, tokens, parts.returning + 1, len(tokens)) if parts.returning else ""
    end = parts.returning or len(tokens)
    if isinstance(tree, exp.Insert):
        if not isinstance(tree.this, exp.Schema):
            raise _unreadable("INSERT names its columns: INSERT INTO provider.service.resource(a).")
        names = tuple([each.name for each in tree.this.expressions])
        rows = _text(text, tokens, _behind_columns(tokens), end)
        as_text = _string_columns(tree.expression, names)
        return ChangeText(verb, path, _distinct(names), rows, (), returning, as_text)
    _check_conditions(tree)
    assignments: list[Assignment] = []
    if isinstance(tree, exp.Update):
        start = next(at for at, each in enumerate(tokens) if each.key == "SET") + 1
        for first, last in _pieces(tokens, start, parts.where or end, ","):
            assignments.append(_assignment(text, tokens, first, last))
    if parts.where:
        for first, last in _pieces(tokens, parts.where + 1, end, "AND"):
            assignments.append(_assignment(text, tokens, first, last, may_list=True))
    _distinct(tuple([each.name for each in assignments]))
    as_text = [each.name for each in assignments if _STRING.match(each.sql)]
    return ChangeText(verb, path, (), "", tuple(assignments), returning, frozenset(as_text))


def _string_columns(rows: Any, names: tuple[str, ...]) -> frozenset[str]:
    """The columns of which each row of an INSERT has the value in `string(…)`."""
    is_plain = isinstance(rows, exp.Values)
    listed = [each.expressions for each in rows.expressions] if is_plain else [rows.selects]
    return frozenset([
        name
        for at, name in enumerate(names)
        if all(at < len(each) and _is_string(each[at]) for each in listed)
    ])  # fmt: skip


def _is_string(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Alias) else node
    return isinstance(inner, exp.String)


def _check_conditions(tree: exp.Expr) -> None:
    """Refuse what is not `name = value` or `name IN (…)` with AND between. The parser refuses it
    too, and not the tokens: `id = 5 OR 1 = 1` begins like one. Raises: TidegateError
    SQL_UNREADABLE."""
    where = tree.args.get("where")
    waiting: list[Any] = [*tree.expressions, *([where.this] if where is not None else [])]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.And) and where is not None:
            waiting += [node.left, node.right]
        elif not isinstance(node, (exp.EQ, exp.In)) or not isinstance(node.this, exp.Column):
            raise _unreadable(_CONDITIONS)


class _Parts(NamedTuple):
    """Where the words WHERE and RETURNING are among the tokens; 0: they are not."""

    where: int
    returning: int


def _split(tokens: list[Token]) -> _Parts:
    found = dict.fromkeys(_ENDS, 0)
    depth = 0
    is_query = False
    for at, token in enumerate(tokens):
        depth += (token.key == "(") - (token.key == ")")
        is_query = is_query or (depth == 0 and token.key in ("SELECT", "VALUES", "WITH"))
        if depth == 0 and token.key in _ENDS and not (is_query and token.key == "WHERE"):
            found[token.key] = found[token.key] or at
    return _Parts(found["WHERE"], found["RETURNING"])


def _behind_columns(tokens: list[Token]) -> int:
    return next(at for at, each in enumerate(tokens) if each.key == ")") + 1


def _pieces(tokens: list[Token], start: int, end: int, between: str) -> list[tuple[int, int]]:
    """Ranges of tokens with `between` between them, outside of brackets."""
    pieces: list[tuple[int, int]] = []
    depth, first = 0, start
    for at in range(start, end):
        depth += (tokens[at].key == "(") - (tokens[at].key == ")")
        if depth == 0 and tokens[at].key == between:
            pieces.append((first, at))
            first = at + 1
    pieces.append((first, end))
    return pieces


def _assignment(
    text: str, tokens: list[Token], first: int, last: int, *, may_list: bool = False
) -> Assignment:
    """`name = value`, or in a condition `name IN (…)`."""
    at = first
    while at + 2 < last and tokens[at + 1].key == ".":
        at += 2  # the name of the resource, or its alias
    if at + 2 > last or tokens[at].kind not in ("word", "name"):
        raise _unreadable(f"`{_text(text, tokens, first, last)[:80]}` is no assignment.")
    name, sign = tokens[at].text, tokens[at + 1].key
    if sign in ("=", "=="):
        return Assignment(name, _text(text, tokens, at + 2, last))
    if may_list and sign == "IN" and tokens[last - 1].key == ")":
        inside = _text(text, tokens, at + 3, last - 1)
        is_query = tokens[at + 3].key in ("SELECT", "WITH", "VALUES")
        members = inside if is_query else f"VALUES {_values(text, tokens, at + 3, last - 1)}"
        return Assignment(name, members, is_list=True)
    raise _unreadable(_CONDITIONS)


def _values(text: str, tokens: list[Token], start: int, end: int) -> str:
    pieces = _pieces(tokens, start, end, ",")
    return ", ".join(f"({_text(text, tokens, *each)})" for each in pieces)


def _text(text: str, tokens: list[Token], start: int, end: int) -> str:
    """What the tokens from `start` to `end` are in the text."""
    if start >= end:
        raise _unreadable("The statement ends too early.")
    stop = tokens[end].at if end < len(tokens) else len(text)
    return text[tokens[start].at : stop].strip()


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    seen: set[str] = set()
    for name in names:
        if folded(name) in seen:
            raise _unreadable(f"The name {quoted(name)[:80]} is given twice.")
        seen.add(folded(name))
    return names


def _unreadable(problem: str) -> TidegateError:
    return TidegateError(Code.SQL_UNREADABLE, problem)
