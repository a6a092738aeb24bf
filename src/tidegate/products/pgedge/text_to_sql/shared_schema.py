"""The part of a caller's catalog that may be shown to a model. Pure.

Masked columns are left out whole, and so is every key that names one. Comments are left out where
only names are shared. Descriptions of the knowledge file take the place of comments.
"""

from __future__ import annotations

from msgspec import structs

from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.products.pgedge.settings import Share
from tidegate.products.pgedge.text_to_sql.knowledge import Knowledge, KnownTable


def shared_catalog(catalog: Catalog, share: Share, knowledge: Knowledge) -> Catalog:
    """The catalog without what the model may not learn, and without the system's tables."""
    tables = [
        _shared(table, share, knowledge.table(table.schema, table.name))
        for table in catalog.tables
        if table.kind != "system table"
    ]
    return structs.replace(catalog, tables=tuple(tables))


def _shared(table: Table, share: Share, known: KnownTable | None) -> Table:
    masked = {column.name for column in table.columns if column.masked}
    with_comments = share != "names"
    columns = [
        _column(column, with_comments, known)
        for column in table.columns
        if column.name not in masked
    ]
    comment = (known.description if known and known.description else table.comment) or ""
    if known is not None and known.default_filter:
        comment = f"{comment} Only rows with {known.default_filter}, unless asked".strip()
    return structs.replace(
        table,
        columns=tuple(columns),
        indexes=tuple([each for each in table.indexes if masked.isdisjoint(each.columns)]),
        foreign_keys=tuple([key for key in table.foreign_keys if masked.isdisjoint(key.columns)]),
        comment=(comment or None) if with_comments else None,
        definition=None,
    )


def _column(column: ColumnInfo, with_comments: bool, known: KnownTable | None) -> ColumnInfo:
    comment = column.comment
    own = known.column(column.name) if known is not None else None
    if own is not None:
        unit = f"in {own.unit}" if own.unit else ""
        comment = ", ".join([part for part in (own.description or comment, unit) if part])
    return structs.replace(
        column, comment=(comment or None) if with_comments else None, default=None
    )
