"""What databases say of themselves: names, columns, keys, and the current one. The same for every
engine. Frozen; imports nothing of ours.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class ColumnInfo(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A table's column; `key` is its 1-based place in the primary key, 0 if it is not in it.
    `masked` says what is shown of its values (`nothing`, `hash`, `partial`) to a caller from whom
    they are hidden. `driver_type_code` is the type's code where the engine's driver has its own.
    `type_definition` says what a type that a user made, or that of an array's elements, consists of
    (`enum('a', 'b')`, `domain over text CHECK (…)`, `composite (x integer)`), where its name does
    not; `labels` are all values that such an enum has.

    A schema has tens of thousands, and no field can refer back: the collector need not look.
    """

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    key: int = 0
    comment: str | None = None
    extra: str | None = None
    masked: Literal["nothing", "hash", "partial"] | None = None
    driver_type_code: int | None = None
    type_definition: str | None = None
    labels: tuple[str, ...] = ()

    @property
    def is_generated(self) -> bool:
        """Whether the table computes its values itself, and takes none."""
        return (self.extra or "").startswith("generated")


class Index(msgspec.Struct, frozen=True):
    """An index; an entry of `columns` is an expression where it is over one.

    `operators` are the operator classes of its columns and `options` its storage options
    (`lists=100`), where the database has such and the index is not an ordinary one. `usable` is
    false for one that is partial, or that was never finished. `included` are columns that it holds
    besides those that it is ordered by.
    """

    name: str
    columns: tuple[str, ...]
    unique: bool = False
    primary: bool = False
    kind: str = "btree"
    operators: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    usable: bool = True
    included: tuple[str, ...] = ()


class Uniqueness(msgspec.Struct, frozen=True):
    """What a unique index or an exclusion constraint compares, where `Index` does not say all.

    `index` is its name. `columns`: those on which it depends whether two rows conflict, in its
    parts and its condition; None if that is unknown. `with_null`: rows can conflict although
    one of these is NULL.
    """

    index: str
    columns: tuple[str, ...] | None
    with_null: bool = True


class ForeignKey(msgspec.Struct, frozen=True):
    name: str
    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]
    schema: str | None = None
    on_update: str = "NO ACTION"
    on_delete: str = "NO ACTION"


class Table(msgspec.Struct, frozen=True):
    """A table or view: kind is `table`, `view`, `materialized view`, `foreign table`,
    `virtual table` or `system table`.

    `definition` is the query of a view, None if it is unknown. `reads` are tables (schema,
    name) of which it holds rows itself: those that it inherits from or is a partition of.
    `may_react`: triggers or rules run when its rows change, or it cannot be seen whether they do.
    `may_call`: a change of its rows may run functions of users, or queries, of its columns,
    constraints, indexes or policies.
    `filtered`: a row filter applies to the reader, so rows may be hidden; the gateway sets it.
    `stored_by`: the columns by which the database stores the rows in order, where it does.
    `parted_by`: the columns that could decide in which of its partitions, or of those of a
    view, a row is.
    `uniqueness`: what is compared by exclusion constraints, and by unique indexes that are partial,
    of expressions, or take NULLs for equal. Any other compares the columns of its `Index`.
    """

    schema: str
    name: str
    kind: str
    columns: tuple[ColumnInfo, ...] = ()
    indexes: tuple[Index, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    comment: str | None = None
    approximate_rows: int | None = None
    definition: str | None = None
    reads: tuple[tuple[str, str], ...] = ()
    may_react: bool = False
    may_call: bool = False
    filtered: bool = False
    stored_by: tuple[str, ...] = ()
    parted_by: tuple[str, ...] = ()
    uniqueness: tuple[Uniqueness, ...] = ()


class Catalog(msgspec.Struct, frozen=True):
    """Everything named in one database; `version` changes when it may have changed.

    `macros` are functions that users defined, in lower case, where the database calls them instead
    of its own of the same name. `dialect` is the source's; the gateway sets it.
    """

    database: str
    default_schema: str
    schemas: tuple[str, ...]
    tables: tuple[Table, ...]
    version: str
    macros: tuple[str, ...] = ()
    dialect: str = ""


class Ddl(msgspec.Struct, frozen=True):
    text: str


class Counts(msgspec.Struct, frozen=True):
    """Exact row counts by (schema, table); a table that could not be counted is left out."""

    rows: dict[tuple[str, str], int]


class Databases(msgspec.Struct, frozen=True):
    names: tuple[str, ...]


class DatabaseSettings(msgspec.Struct, frozen=True):
    """Settings of the database's session, as (name, value). `meanings` says in the same order what
    each is for; empty where it was not asked."""

    values: tuple[tuple[str, str], ...]
    meanings: tuple[str, ...] = ()


class Status(msgspec.Struct, frozen=True):
    """What an open source says of itself; `warnings` are for the operator alone. `session` are the
    settings, as (name, value), that the account's own sessions begin with there. `identity` tells
    the database from every other, by what its server says of itself; empty if it says nothing.
    `driver` is the class of the JDBC driver that was loaded."""

    database: str
    schema: str | None
    server_version: str
    warnings: tuple[str, ...] = ()
    session: tuple[tuple[str, str], ...] = ()
    identity: str = ""
    driver: str = ""


Description = Catalog | Ddl | Counts | Databases | DatabaseSettings
