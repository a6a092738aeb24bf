"""The part of a source's metadata that an actor may see under its data rules."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from tidegate.model.data_rules import DataRules, Show, admitted
from tidegate.model.schema import Catalog, ColumnInfo, Counts, Databases, Description, Table
from tidegate.policy.data_rules import is_filtered


def visible_metadata(
    described: Description,
    data_rules: DataRules | None,
    schema: str | None,
    catalog: Catalog | None = None,
) -> Description:
    """Metadata as the actor may see it: of the tables on its list, in the schema it switched to,
    with no count of rows where rows are hidden from it, and no default of a masked column.
    `catalog` is the whole one, which a list is read by."""
    if data_rules is not None and data_rules.only is not None:
        whole = described if isinstance(described, Catalog) else catalog
        described = _listed(described, data_rules.only, whole)
    if schema is not None and isinstance(described, Catalog):
        described = structs.replace(described, default_schema=schema)
    if data_rules is not None and data_rules.masks and isinstance(described, Catalog):
        described = _without_hints(described, data_rules, catalog or described)
    if data_rules is None or not data_rules.filters:
        return described
    if isinstance(described, Counts):
        return Counts({})
    if isinstance(described, Catalog):
        return structs.replace(
            described,
            tables=tuple(
                [
                    structs.replace(
                        table,
                        approximate_rows=None,
                        filtered=is_filtered(data_rules, table.schema, table.name),
                    )
                    for table in described.tables
                ]
            ),
        )
    return described


def _without_hints(catalog: Catalog, data_rules: DataRules, whole: Catalog) -> Catalog:
    """The catalog without the defaults of masked columns: rows of which nothing else is said have
    them; and without what their types admit. Copies of a masked table have its columns, and a view
    may have them under other names."""
    masked = {(table, column) for table, column in map(_table_and_column, data_rules.masks)}
    parents = {(table.schema, table.name): table.reads for table in whole.tables}

    def is_masked(place: tuple[str, str], column: ColumnInfo) -> bool:
        waiting, seen = [place], {place}
        while waiting:
            at = waiting.pop()
            if (at[1].lower(), column.name.lower()) in masked:
                return True
            new = [up for up in parents.get(at, ()) if up not in seen]
            seen.update(new)
            waiting += new
        return False

    def without_hints(table: Table, column: ColumnInfo) -> ColumnInfo:
        if column.default is None and column.type_definition is None:
            return column
        is_view = "view" in table.kind
        if not is_view and not is_masked((table.schema, table.name), column):
            return column
        keeps_default = column.is_generated and not is_view
        return structs.replace(
            column,
            default=column.default if keeps_default else None,
            type_definition=None,
            labels=(),
        )

    def shown(table: Table) -> Table:
        return structs.replace(
            table, columns=tuple([without_hints(table, column) for column in table.columns])
        )

    return structs.replace(catalog, tables=tuple([shown(table) for table in catalog.tables]))


def _table_and_column(mask: tuple[str, Show]) -> tuple[str, str]:
    path, _, column = mask[0].rpartition(".")
    return path.rpartition(".")[2].lower(), column.lower()


def _listed(described: Description, only: Sequence[str], catalog: Catalog | None) -> Description:
    """Metadata of the tables on a list; empty if the list cannot be read."""
    tables = admitted(only, catalog) if catalog is not None else []
    places = frozenset((table.schema, table.name) for table in tables)
    if isinstance(described, Catalog):
        schemas = {described.default_schema, *(table.schema for table in tables)}
        return structs.replace(
            described,
            schemas=tuple([schema for schema in described.schemas if schema in schemas]),
            tables=tuple(
                [
                    _alone(table, places)
                    for table in described.tables
                    if (table.schema, table.name) in places
                ]
            ),
        )
    if isinstance(described, Counts):
        return Counts({place: rows for place, rows in described.rows.items() if place in places})
    if isinstance(described, Databases):
        return Databases((catalog.database,) if catalog is not None else ())
    return described


def _alone(table: Table, places: frozenset[tuple[str, str]]) -> Table:
    """The table without the names of those that are not in `places`."""
    return structs.replace(
        table,
        foreign_keys=tuple(
            [key for key in table.foreign_keys if (key.schema or table.schema, key.table) in places]
        ),
        definition=None,
        reads=tuple([place for place in table.reads if place in places]),
    )
