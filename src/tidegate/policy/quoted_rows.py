"""Whether what a database says of a change that it refuses could quote rows of other tables than
those that the change names."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.model.schema import Catalog


def may_quote_others(tables: Sequence[str], catalog: Catalog) -> bool:
    """Whether the database's words on a change of `tables` could quote rows that are elsewhere: a
    trigger says what it wants, and a key that refers to a table changes rows with it, each of which
    may be refused with the whole row. True for a name that the catalog does not have."""
    names = {name.rpartition(".")[2].strip('"`[]').casefold() for name in tables}
    found = [table for table in catalog.tables if table.name.casefold() in names]
    if not names or len({table.name.casefold() for table in found}) < len(names):
        return True
    if any(table.kind != "table" or table.may_react or table.reads for table in found):
        return True
    return any(
        key.table.casefold() in names for table in catalog.tables for key in table.foreign_keys
    ) or any(name.casefold() in names for table in catalog.tables for _, name in table.reads)
