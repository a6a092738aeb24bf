"""What is extracted from a query. Every text is a part of the query as its client wrote it."""

from __future__ import annotations

import msgspec


class Field(msgspec.Struct, frozen=True):
    """One entry of the select list, without its alias."""

    text: str
    alias: str | None = None


class Condition(msgspec.Struct, frozen=True):
    """A comparison in WHERE, ON, HAVING, QUALIFY or FILTER.

    `operator` is as written, in upper case, but `!=` for `<>`; empty where a call or a column alone
    decides. `value` is what the field is compared with. `parameter_count` is 0 for one that holds
    no parameter. `negated`: it is under its own NOT.
    """

    field: str
    operator: str
    value: str
    clause: str
    parameter_count: int = 0
    negated: bool = False


class TableUse(msgspec.Struct, frozen=True):
    """A table of the database that the query reads, under an alias if it has one."""

    name: str
    alias: str | None = None


class Parameter(msgspec.Struct, frozen=True):
    """One `?`: the clause that it is in, and what it is compared with if it is compared."""

    clause: str
    field: str | None = None
    operator: str | None = None


class Extraction(msgspec.Struct, frozen=True):
    """The structure of a query. `source_text` is the query as its database reads it, and `dialect`
    the rules by which it was read."""

    fields: tuple[Field, ...]
    conditions: tuple[Condition, ...]
    filters: tuple[Condition, ...]
    parameters: tuple[Parameter, ...]
    tables: tuple[TableUse, ...]
    source_text: str
    dialect: str
