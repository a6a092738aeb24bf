"""SQLAlchemy reflects every kind of source as it reflects PostgreSQL itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import inspect

from support.cloud_surface import Desk
from support.wire_server import WireServer


def engine(server: WireServer, database: str) -> sqlalchemy.Engine:
    address = f"writer:{server.secrets['writer']}@127.0.0.1:{server.port}/{database}"
    url = f"postgresql+psycopg://{address}"
    return sqlalchemy.create_engine(
        url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool
    )


@pytest.fixture(params=["pg", "shop", "duck", "maria"])
def source(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "maria":
        request.getfixturevalue("needs_mariadb")
    yield request.param


def test_tables_keys_indexes_and_comments_are_reflected(server: WireServer, source: str):
    found = inspect(engine(server, source))
    assert {"item", "sale"} <= set(found.get_table_names())
    assert found.has_table("item")
    assert not found.has_table("nothing")
    columns = {each["name"]: each for each in found.get_columns("item")}
    assert [str(columns[name]["nullable"]) for name in ("id", "name", "price")] == [
        "False", "False", "True",
    ]  # fmt: skip
    assert str(columns["made"]["type"]) == "DATE"
    assert found.get_pk_constraint("item")["constrained_columns"] == ["id"]
    (key,) = found.get_foreign_keys("sale")
    assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (
        ["item"], "item", ["id"],
    )  # fmt: skip
    indexes = {each["name"]: each for each in found.get_indexes("sale")}
    assert indexes["sale_item"]["column_names"] == ["item"]
    assert not indexes["sale_item"]["unique"]
    if source != "shop":  # SQLite has no comments
        assert found.get_table_comment("item") == {"text": "What is sold"}
        assert columns["price"]["comment"] == "In euros"
        assert str(columns["price"]["type"]) == "NUMERIC(10, 2)"
        unique = {each["name"]: each for each in found.get_indexes("item")}["item_code"]
        assert unique["unique"]
    else:
        assert found.get_table_comment("item") == {"text": None}
        assert found.get_view_names() == ["dear"]
    for nothing in (found.get_enums, found.get_sequence_names, found.get_materialized_view_names):
        assert nothing() == []


def test_a_reflected_table_is_joined_with_the_one_it_refers_to(server: WireServer, source: str):
    gate = engine(server, source)
    described = sqlalchemy.MetaData()
    sale = sqlalchemy.Table("sale", described, autoload_with=gate)
    item = described.tables["item"]
    if source == "shop":
        assert sorted(described.tables) == ["item", "sale"]
        return
    text = sqlalchemy.select(item.c.name).join(sale).order_by(item.c.id)
    with gate.connect() as connection:
        assert connection.scalars(text).all() == ["boots", "it's"]


def test_the_whole_of_a_source_is_reflected_at_once(server: WireServer, source: str):
    described = sqlalchemy.MetaData()
    described.reflect(engine(server, source), views=True)
    assert {"item", "sale"} <= set(described.tables)
    assert ("dear" in described.tables) == (source == "shop")


def test_resources_of_a_provider_are_listed_when_their_service_is_named(
    server: WireServer, desk: Desk
):
    sent = len(desk.requests)
    found = inspect(engine(server, "cloud"))
    assert "desk.tickets" in found.get_schema_names()
    assert found.get_table_names() == []
    assert found.get_table_names("desk.tickets") == ["tickets"]
    columns: list[Any] = found.get_columns("tickets", "desk.tickets")
    types = [(each["name"], str(each["type"])) for each in columns]
    assert types == [("id", "TEXT"), ("title", "TEXT"), ("open", "BOOLEAN"), ("team", "TEXT")]
    assert len(desk.requests) == sent
