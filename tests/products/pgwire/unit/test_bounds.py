"""What one client can make the edge keep, or work on, is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidegate.errors import TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.products.pgwire.catalog.database import CatalogDatabase
from tidegate.products.pgwire.catalog.tables import catalog_rows
from tidegate.products.pgwire.catalog.translation import reads_catalogs, translate
from tidegate.products.pgwire.command_reader import read_command, split
from tidegate.products.pgwire.placeholders import place_parameters
from tidegate.products.pgwire.portals import RunningResult
from tidegate.products.pgwire.session_settings import SessionSettings
from tidegate.results.row_stream import RowChannel


@pytest.fixture(scope="module")
def database() -> Iterator[CatalogDatabase]:
    table = Table("main", "item", "table", (ColumnInfo("id", "integer"),))
    catalog = Catalog("shop", "main", ("main",), (table,), "1")
    rows = catalog_rows(catalog, ["shop"], "shop", "u", SessionSettings("u", None).items())
    session = {
        "current_user": "u", "current_schema": "public", "current_database": "shop",
        "version": "PostgreSQL",
    }  # fmt: skip
    found = CatalogDatabase(rows, session)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT hex(zeroblob(400000000)) FROM pg_class", "0A000"),
        ("SELECT hex(zeroblob(450000)) AS x FROM pg_class, pg_type, pg_type AS t", "54000"),
        (f"SELECT relname LIKE '{'%a' * 600}' AS x FROM pg_class", "0A000"),
        (f"SELECT {', '.join(['1'] * 600)} FROM pg_class", "0A000"),
        (f"SELECT 1 FROM pg_class WHERE '{'a' * 60}!' ~ '^(a|a)*$'", "0A000"),
    ],
)
def test_a_query_on_catalogs_cannot_fill_the_memory_or_take_for_ever(
    database: CatalogDatabase, text: str, sqlstate: str
):
    with pytest.raises(TidegateError) as caught:
        database.run(translate(text), ())
    assert caught.value.details["sqlstate"] == sqlstate


def test_patterns_and_operators_of_psql_are_answered(database: CatalogDatabase):
    query = translate(
        "SELECT relname OPERATOR(pg_catalog.~) '^(item.*)$' COLLATE pg_catalog.default AS x"
        " FROM pg_catalog.pg_class WHERE relname = 'item'"
    )
    assert database.run(query, ())[1] == [(1,)]


def test_a_text_that_is_too_long_is_left_to_the_gate():
    long = f"SELECT {'1,' * 60_000} 1 FROM pg_class"
    assert not reads_catalogs(long, has_information_schema=False)
    assert read_command(f"COPY ({long}) TO STDOUT") is None
    assert place_parameters(f"{long} WHERE $1", "sqlite", ()).most == 0
    many = "SELECT 1;" * 120_000
    assert split(many, "sqlite") == [many]


def test_the_settings_of_a_client_are_bounded():
    settings = SessionSettings("u", None)
    for name, value in (("my.name", "x" * 10_001), ("search_path", "x" * 10_001)):
        with pytest.raises(TidegateError, match="too long"):
            settings.set(name, value)
    with pytest.raises(TidegateError, match="settings at most"):
        for number in range(1_000):
            settings.set(f"my.name{number}", "x")
    large = SessionSettings("u", None)
    with pytest.raises(TidegateError, match="characters at most"):
        for number in range(100):
            large.set(f"my.name{number}", "x" * 9_000)
    large.set("my.name0", "y")  # shorter than what it replaces
    large.set("search_path", "public")
    assert settings.set("application_name", "a" * 100) == ("application_name", "a" * 63)


async def test_rows_are_read_in_chunks_however_many_are_asked_for():
    written: list[int] = []

    async def handle(channel: RowChannel) -> Any:
        channel.begin(())
        for number in range(100):
            written.append(number)
            await channel.write([(number, place) for place in range(5)])
        return SimpleNamespace(payload=None)

    result = RunningResult(cast("Any", handle), Cancellation())
    rows, more = await result.read(1_000_000_000)
    assert (list(rows), more) == ([(0, place) for place in range(5)], True)
    assert len(written) <= 3
    found = list(rows)
    while more:
        rows, more = await result.read(7)
        found += rows
    assert found == [(number, place) for number in range(100) for place in range(5)]
