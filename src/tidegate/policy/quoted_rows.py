"""Whether what a database says of a change that it refuses could quote rows of other tables than
those that the change names."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.model.schema import Catalog, Table


def may_quote_others(tables: Sequence[str], catalog: Catalog) -> bool:
    """Whether the database's words on a change of `tables` could quote rows that are elsewhere: a
    trigger or a function of users says what it wants, and a key that refers to a table changes rows
    with it, each of which may be refused with the whole row. True for a name that the catalog does
    not have."""
    names = {name.casefold() for name in tables}
    meant = [(name, table) for table in catalog.tables for name in names if _may_be(name, table)]
    if not names or len({name for name, _ in meant}) < len(names):
        return True
    found = [table for _, table in meant]
    if any(each.kind != "table" or each.may_react or each.may_call or each.reads for each in found):
        return True
    own = {table.name.casefold() for table in found}
    return any(
        key.table.casefold() in own for table in catalog.tables for key in table.foreign_keys
    ) or any(name.casefold() in own for table in catalog.tables for _, name in table.reads)


def _may_be(name: str, table: Table) -> bool:
    """Whether a name, in folded case, may be the table's. Names are without quotes, so a dot may
    part a schema from a table or belong to either: all that it may mean is checked."""
    own = table.name.casefold()
    if not name.endswith(own):
        return False
    place = f"{table.schema.casefold()}.{own}"
    return name in (own, place) or name.endswith("." + place)
