"""Tables of other sources in a statement over resources: found in its text, and put into SQLite.

The first name of `source.schema.table` is no provider: of two that have one name, the provider is
meant. Here they are tables of SQLite, so its planner makes an index where a join needs one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

from sqlglot import exp

from tidegate.errors import Code, TidegateError
from tidegate.model.joined_tables import Condition, JoinedTable, OtherTable, TableNames
from tidegate.model.results import ColumnKind
from tidegate.products.cloud.documents.document_catalog import DocumentCatalog
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.engine.resource_table import quoted
from tidegate.products.cloud.engine.statement_text import other_name
from tidegate.products.cloud.engine.text_change import parsed, path_of

_MOST_MEMBERS: Final = 1_000
"""Members of an IN list that another database is asked for."""
_MOST_TABLES: Final = 32
_MOST_INTEGER: Final = 2**63
_BATCH: Final = 2_000
_DECIMAL: Final = re.compile(r"-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?")
_AFFINITIES: Final[dict[ColumnKind, str]] = {
    "boolean": "BOOLEAN", "integer": "INTEGER", "decimal": "", "float": "REAL",
    "bytes": "BLOB", "other": "",
}  # fmt: skip
_OPERATORS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def find_other_tables(
    text: str, documents: DocumentCatalog, is_source: Callable[[str], bool]
) -> tuple[OtherTable, ...]:
    """The tables of other sources that a SELECT names, each once.

    Raises: TidegateError TABLE_UNKNOWN if there are some, and another name is of nothing;
    ARGUMENT_INVALID if there are too many.
    """
    tree = parsed(text)
    found: dict[tuple[str, TableNames], list[exp.Table]] = {}
    others: list[tuple[str, ...]] = []
    for table in tree.find_all(exp.Table):
        path = path_of(table)
        if len(path) < 2:
            continue
        key = other_name(table)
        if (len(path) == 2 or not _is_provider(path[0], documents)) and is_source(path[0]):
            if key is not None:
                found.setdefault(key, []).append(table)
        else:
            others.append(path)
    if not found:
        return ()
    if len(found) > _MOST_TABLES:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The statement names {len(found)} tables of other sources, and may name"
            f" {_MOST_TABLES}.",
        )
    for path in others:  # before anything is read, since they may be of nothing
        if len(path) == 3:
            documents.resource(path)
    columns = _column_names(tree)
    return tuple(
        [
            # What one reference leaves out, another may need.
            OtherTable(*key, columns, _conditions(tables[0]) if len(tables) == 1 else ())
            for key, tables in found.items()
        ]
    )


def _is_provider(name: str, documents: DocumentCatalog) -> bool:
    try:
        documents.provider(name)
    except TidegateError as error:
        if error.code is not Code.TABLE_UNKNOWN:
            raise
        return False
    return True


def _column_names(tree: exp.Expr) -> frozenset[str] | None:
    """The names of columns in a statement, in lower case; None if it takes all that there are."""
    for star in tree.find_all(exp.Star):
        if not isinstance(star.parent, exp.Count):
            return None
    names = {column.name.lower() for column in tree.find_all(exp.Column)}
    for join in tree.find_all(exp.Join):
        if join.args.get("method"):  # NATURAL
            return None
        names |= {each.name.lower() for each in join.args.get("using") or ()}
    return frozenset(names)


def _conditions(table: exp.Table) -> tuple[Condition, ...]:
    """What must be true of a row of the table for it to have a part in the result.

    Each is false for NULL, so rows that an outer join adds do not meet it either.
    """
    select = table.find_ancestor(exp.Select)
    if select is None or not isinstance(table.parent, (exp.From, exp.Join)):
        return ()
    if table.parent.parent is not select:
        return ()
    joins: list[exp.Join] = select.args.get("joins") or []
    where = select.args.get("where")
    parts = list(_conjuncts(where.this)) if where is not None else []
    for join in joins:
        on = join.args.get("on")
        if join.this is table and on is not None and join.side in ("", "LEFT"):
            parts += _conjuncts(on)
    is_alone = not joins and isinstance(table.parent, exp.From)
    return tuple(
        [
            condition
            for part in parts
            for condition in _read(part, folded(table.alias or table.name), is_alone=is_alone)
        ]
    )


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    elif isinstance(node, exp.Paren):
        yield from _conjuncts(node.this)
    else:
        yield node


def _read(node: exp.Expr, alias: str, *, is_alone: bool) -> list[Condition]:
    """The conditions on a column of the table in a comparison with literals."""

    def column_of(side: Any) -> str:
        if not isinstance(side, exp.Column) or len(side.parts) > 2:
            return ""
        return side.name.lower() if folded(side.table) == alias or is_alone else ""

    if isinstance(node, exp.In):
        values = [_literal(each) for each in node.expressions]
        column = column_of(node.this)
        if not column or not 0 < len(values) <= _MOST_MEMBERS or None in values:
            return []
        return [Condition(column, "IN", tuple([each for each in values if each is not None]))]
    if isinstance(node, exp.Between):
        column = column_of(node.this)
        low, high = _literal(node.args["low"]), _literal(node.args["high"])
        if not column or low is None or high is None:
            return []
        return [Condition(column, ">=", (low,)), Condition(column, "<=", (high,))]
    operator = _OPERATORS.get(type(node))
    if operator is None:
        return []
    for side, other, way in (
        (node.this, node.expression, operator),
        (node.expression, node.this, _MIRRORED[operator]),
    ):
        column, value = column_of(side), _literal(other)
        if column and value is not None:
            return [Condition(column, way, (value,))]  # type: ignore[arg-type]
    return []


def _literal(node: Any) -> int | str | None:
    """The value of an integer or a text in the statement; None for anything else."""
    sign = 1
    if isinstance(node, exp.Neg):
        sign, node = -1, node.this
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return node.name if sign == 1 else None
    if not (node.name.isascii() and node.name.isdigit() and len(node.name) < 20):
        return None
    value = sign * int(node.name)
    return value if -_MOST_INTEGER <= value < _MOST_INTEGER else None


def load_table(
    connection: Any, name: str, table: JoinedTable, check_stopped: Callable[[], None]
) -> None:
    """Make the table `name` of the rows. Blocks; `check_stopped` raises if it is to end early."""
    declared = [
        f"{quoted(each.name)} {_AFFINITIES.get(each.kind, 'TEXT')}" for each in table.columns
    ]
    connection.execute(f"CREATE TABLE main.{quoted(name)}({', '.join(declared)})")
    if not table.rows:
        return
    marks = ", ".join("?" * len(declared))
    read = [_decimal if each.kind == "decimal" else _cell for each in table.columns]
    with connection:
        for at in range(0, len(table.rows), _BATCH):
            check_stopped()
            rows = table.rows[at : at + _BATCH]
            cells = [[make(cell) for make, cell in zip(read, row, strict=True)] for row in rows]
            connection.executemany(f"INSERT INTO main.{quoted(name)} VALUES ({marks})", cells)
    # The planner then knows how many rows there are: it makes an index of the larger side.
    connection.execute(f"ANALYZE main.{quoted(name)}")


def _cell(value: Any) -> Any:
    """A value as SQLite keeps it: what is too large for its integers becomes text."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, int):
        return int(value) if -_MOST_INTEGER <= value < _MOST_INTEGER else str(value)
    return value


def _decimal(value: Any) -> Any:
    """A decimal as a number, if SQLite has the very same one; else as text. The column has no
    affinity, which would round it."""
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value):
        return _cell(value)
    exact = Decimal(value)
    if exact == exact.to_integral_value() and -_MOST_INTEGER <= exact < _MOST_INTEGER:
        return int(exact)
    shortest = repr(float(exact))
    return float(shortest) if Decimal(shortest) == exact else value
