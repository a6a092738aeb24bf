"""Which keys a diagram shows: those whose two tables its reader may see, and no guess too far."""

from __future__ import annotations

from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Table
from tidegate.products.console.diagrams import Links


def table(name: str, *columns: str, schema: str = "a", keys: tuple[ForeignKey, ...] = ()) -> Table:
    infos = [ColumnInfo(each, "integer", key=1 if not at else 0) for at, each in enumerate(columns)]
    return Table(schema, name, "table", tuple(infos), foreign_keys=keys)


def shown(*tables: Table) -> list[tuple[str, str, bool]]:
    schemas = tuple(dict.fromkeys(each.schema for each in tables))
    links = Links(Catalog("db", schemas[0], schemas, tables, "1"))
    return [(each.table[1], each.to[1], each.guessed) for each in (*links.declared, *links.guessed)]


ORDERS = table(
    "orders", "id", "customer_id", keys=(ForeignKey("k", ("customer_id",), "customers", ("id",)),)
)


def test_a_key_to_a_table_that_is_hidden_is_not_there() -> None:
    assert shown(ORDERS, table("customers", "id")) == [("orders", "customers", False)]
    assert shown(ORDERS) == []


def test_a_guess_joins_schemas_only_where_a_declared_key_does() -> None:
    far = table("parcels", "parcel_id", schema="b")
    near = table("visits", "visit_id", "parcel_id")
    assert shown(near, far) == []
    key = ForeignKey("k", ("order_id",), "parcels", ("parcel_id",), schema="b")
    bridge = table("bills", "bill_id", "order_id", keys=(key,))
    assert ("visits", "parcels", True) in shown(near, far, bridge)
