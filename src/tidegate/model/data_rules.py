"""The rules that hide parts of one source from one actor. Frozen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tidegate.model.schema import Catalog, Table

Show = Literal["nothing", "hash", "partial"]


class DataRules(msgspec.Struct, frozen=True):
    """The rules that bind one actor on one source.

    `masks` are (column, show), the column as `table.column` or `schema.table.column`. `filters`
    are (table, condition), the condition in the source's language. `only` lists the tables that
    the actor may use, as `table` or `schema.table`; None means all tables.
    """

    masks: tuple[tuple[str, Show], ...] = ()
    filters: tuple[tuple[str, str], ...] = ()
    only: tuple[str, ...] | None = None


class EngineRules(msgspec.Struct, frozen=True):
    """Data rules for an engine that applies them itself to the rows that it reads. `key` is the
    secret of hashes."""

    rules: DataRules
    key: str


def admitted(only: Sequence[str], catalog: Catalog) -> list[Table]:
    """The tables on the list. Names without a schema are searched in the catalog's default
    schema and, where it has none, in all; in any case of letters if that is one table."""
    found: list[Table] = []
    for path in only:
        schema, _, name = path.rpartition(".")
        wanted = (schema or catalog.default_schema).lower()
        alike = [
            table
            for table in catalog.tables
            if table.name.lower() == name.lower() and wanted in ("", table.schema.lower())
        ]
        exact = [
            table
            for table in alike
            if table.name == name and (not schema or table.schema == schema)
        ]
        meant = exact or alike
        if len(meant) == 1:
            found += meant
    return found
