"""Compares the names that a statement does not explain itself with the columns that its driver
knows. Any other call may call a function, and is refused. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from tidegate.errors import Code
from tidegate.model.statements import Effect, Judgement
from tidegate.products.jdbc.engine.known_databases import KnownDatabase
from tidegate.products.jdbc.engine.messages import TableFacts
from tidegate.sql.bare_names import BareName, TableName


def places_of(
    names: Sequence[BareName], product: KnownDatabase
) -> tuple[tuple[str | None, str | None], ...]:
    """Which tables to ask the driver for, each by schema and name; None for all. It takes names as
    they are kept, and only of Oracle it is known how that is."""
    tables = dict.fromkeys([table for name in names for table in name.tables])
    if not tables:
        return ()
    if product.dialect != "oracle":
        return ((None, None),)
    return tuple([(table.schema or None, table.name) for table in tables])


def unexplained(
    judgement: Judgement,
    names: Sequence[BareName],
    found: Sequence[TableFacts],
    product: KnownDatabase,
    schema: str | None,
) -> Judgement | None:
    """The refusal of the first name that is no column of its tables; None if there is none.
    `schema` is where tables are that are named without one."""
    for name in names:
        known = [_columns(table, found, product, schema) for table in name.tables]
        exact = name.quoted or product.dialect == "oracle"
        if any(name.name in (each if exact else map(str.upper, each)) for each in known):
            continue
        absent = [
            ".".join(filter(None, table))
            for table, columns in zip(name.tables, known, strict=True)
            if not columns
        ]
        if absent:
            hint = (
                f"The driver lists no columns of {', '.join(absent[:3])}: name the table itself in"
                " place of a synonym, with its owner."
            )
        else:
            hint = (
                "Correct the name of the column. A function is called with brackets, and only if it"
                " is a built-in one that reads."
            )
        return refused(
            judgement,
            Code.SQL_FUNCTION,
            f"{name.shown} is no column of the tables that the statement names there, so it may"
            " call a function or name a variable of a package",
            hint,
        )
    return None


def refused(judgement: Judgement, code: Code, reason: str, hint: str) -> Judgement:
    """The judgement with the effect unknown, for a reason."""
    return structs.replace(
        judgement,
        effect=Effect.UNKNOWN,
        rule="names.unexplained",
        reason=reason,
        code=code.value,
        hint=hint,
    )


def _columns(
    table: TableName, found: Sequence[TableFacts], product: KnownDatabase, schema: str | None
) -> frozenset[str]:
    """The columns of a table: of several that it may be, those that all have."""
    exact = product.dialect == "oracle"
    fold = str if exact else str.upper
    called = [each for each in found if fold(each.name) == fold(table.name)]
    if table.schema:
        fitting = [each for each in called if fold(each.schema) == fold(table.schema)]
    else:
        fitting = [each for each in called if each.schema == schema]
        if not fitting and exact:
            fitting = [each for each in called if each.schema == product.system_schema]
        elif not fitting:
            fitting = called
    columns = [frozenset([column.name for column in each.columns]) for each in fitting]
    return frozenset[str]().union(*columns[:1]).intersection(*columns)
