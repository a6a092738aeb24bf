"""The form of a table, and the statements that make a table as a form has it. Frozen."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Name = Annotated[str, Meta(max_length=256)]
Text = Annotated[str, Meta(max_length=4_000)]
Names = Annotated[tuple[Name, ...], Meta(max_length=64)]
Action = Literal["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"]

Feature = Literal[
    "identity", "column.comment", "table.comment", "foreign_key", "foreign_key.name",
    "foreign_key.actions", "foreign_key.schema", "column.add", "column.drop", "column.rename",
    "column.type", "column.nullable", "column.default", "primary_key", "foreign_key.add",
    "foreign_key.drop", "index", "table.rename",
]  # fmt: skip
"""What a dialect may lack: up to `foreign_key.schema` in a new table, the rest in one there is."""


class Default(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a column gets that is not given: a text that is the value, or an expression."""

    kind: Literal["literal", "expression"]
    text: Text


class ColumnForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column. `identity`: the database numbers it. `fixed` is what the database knows of it that
    no form can say; such a column is not made and not changed by a form. `was` is its name before,
    empty for a new one."""

    name: Name
    type: Name
    nullable: bool = True
    default: Default | None = None
    identity: bool = False
    comment: Text = ""
    fixed: Text = ""
    was: Name = ""


class KeyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A foreign key. `schema` is empty where it is that of the table itself."""

    columns: Names
    table: Name
    references: Names
    name: Name = ""
    schema: Name = ""
    on_delete: Action = "NO ACTION"
    on_update: Action = "NO ACTION"


class IndexForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An index over columns. `fixed`: it has more to it than a form can say, or belongs to a
    constraint, and is neither made nor dropped by one."""

    name: Name
    columns: Names
    unique: bool = False
    fixed: bool = False


class TableForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table. Indexes and foreign keys are in the order of their names and columns."""

    name: Name
    schema: Name = ""
    columns: Annotated[tuple[ColumnForm, ...], Meta(max_length=1_000)] = ()
    primary_key: Names = ()
    foreign_keys: Annotated[tuple[KeyForm, ...], Meta(max_length=200)] = ()
    indexes: Annotated[tuple[IndexForm, ...], Meta(max_length=200)] = ()
    comment: Text = ""


class Step(msgspec.Struct, frozen=True):
    """One statement, and what a person should know before it runs: what it locks, rewrites or
    loses."""

    text: str
    warnings: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True):
    """The statements in order. `lacks` are what the form asks for and the database cannot do, each
    with the reason: then there are no statements."""

    steps: tuple[Step, ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def stays(self) -> str:
        """What is left where a later statement fails."""
        if len(self.steps) < 2:
            return ""
        return (
            f"These are {len(self.steps)} statements. If one fails, those before it stay done and"
            " those after it are not run."
        )
