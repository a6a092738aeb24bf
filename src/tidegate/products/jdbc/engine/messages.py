"""What travels between the engine and the JVM; the other end is `products/jdbc/engine/jvm/java`."""

from __future__ import annotations

from typing import Any

import msgspec


class Loaded(msgspec.Struct, frozen=True):
    """The driver that was loaded."""

    driver: str
    version: str
    java: str


class Greeting(msgspec.Struct, frozen=True):
    """What the database says of itself at a new connection."""

    product: str | None = None
    version: str | None = None
    driver_version: str | None = None
    catalog: str | None = None
    schema: str | None = None


class JdbcColumn(msgspec.Struct, frozen=True, array_like=True):
    """A result column as `ResultSetMetaData` describes it. `code` is of `java.sql.Types`, `form`
    says how its values travel (`Values.java`)."""

    label: str
    type_name: str
    code: int
    class_name: str
    precision: int
    scale: int
    nullable: bool
    form: str


class Portion(msgspec.Struct, frozen=True, array_like=True):
    """Rows, column by column; each column is an array of as many values as there are rows."""

    columns: list[msgspec.Raw]
    rows: int
    ended: bool
    affected: int


class Started(msgspec.Struct, frozen=True):
    """The first answer to a statement."""

    columns: list[JdbcColumn]
    portion: Portion


class Prepared(msgspec.Struct, frozen=True):
    """A statement before it runs."""

    columns: list[JdbcColumn]
    parameters: list[str]


class TableColumn(msgspec.Struct, frozen=True, array_like=True):
    """A column as `DatabaseMetaData.getColumns` describes it."""

    name: str
    code: int
    type_name: str
    size: int
    digits: int
    nullable: bool
    comment: str | None
    default: str | None


class KeyPart(msgspec.Struct, frozen=True, array_like=True):
    """One column of a foreign key. `update` and `delete` are rules of `DatabaseMetaData`."""

    schema: str
    table: str
    references: str
    column: str
    place: int
    update: int
    delete: int
    name: str


class IndexPart(msgspec.Struct, frozen=True, array_like=True):
    """One column of an index."""

    index: str
    column: str
    place: int
    unique: bool


class TableFacts(msgspec.Struct, frozen=True):
    """A table with what was asked of it."""

    schema: str
    name: str
    kind: str
    columns: list[TableColumn]
    comment: str | None = None
    primary: list[tuple[str, int]] = []
    foreign: list[KeyPart] = []
    indexes: list[IndexPart] = []


def fields(**values: Any) -> dict[str, Any]:
    """The body of a request: the values that are there."""
    return {name: value for name, value in values.items() if value is not None}
