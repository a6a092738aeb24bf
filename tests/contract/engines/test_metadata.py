"""What an engine tells of its schema."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.schema import Catalog, Counts, Databases, Ddl, Status
from tidegate.model.statements import Effect


def table_of(catalog, name):
    return next(table for table in catalog.tables if table.name == name)


async def test_status_is_known_since_it_was_opened(case):
    async with case.opened() as engine:
        status = engine.status
        assert isinstance(status, Status)
        assert status.database
        assert status.server_version


async def test_databases_are_named(case):
    async with case.opened() as engine:
        databases = await case.browse(engine, "databases")
    assert isinstance(databases, Databases)
    assert databases.names


async def test_the_catalog_has_every_table_with_its_columns(case):
    async with case.opened() as engine:
        catalog = await case.browse(engine, "catalog")
    assert isinstance(catalog, Catalog)
    assert [table.name for table in catalog.tables] == ["items", "parts", "void"]
    assert [column.name for column in table_of(catalog, "items").columns] == ["id", "name"]
    assert catalog.default_schema in catalog.schemas


async def test_the_catalog_knows_keys_and_nulls(case):
    async with case.opened() as engine:
        columns = table_of(await case.browse(engine, "catalog"), "items").columns
        has_keys = engine.capabilities.primary_keys
    first = (1, False) if has_keys else (0, True)
    assert [(column.key, column.nullable) for column in columns] == [first, (0, True)]


async def test_the_catalog_knows_foreign_keys(case):
    async with case.opened() as engine:
        keys = table_of(await case.browse(engine, "catalog"), "parts").foreign_keys
        if not engine.capabilities.foreign_keys:
            assert keys == ()
            return
    assert [(key.columns, key.table, key.references) for key in keys] == [
        (("item_id",), "items", ("id",))
    ]


async def test_the_catalog_can_be_narrowed_to_a_table(case):
    async with case.opened() as engine:
        catalog = await case.browse(engine, "catalog", table="items")
    assert [table.name for table in catalog.tables] == ["items"]


async def test_a_table_is_found_whatever_its_case(case):
    async with case.opened() as engine:
        catalog = await case.browse(engine, "catalog", table="ITEMS")
    assert [table.name for table in catalog.tables] == ["items"]


async def test_ddl_names_the_table_and_its_columns(case):
    async with case.opened() as engine:
        ddl = await case.browse(engine, "ddl", table="items")
    assert isinstance(ddl, Ddl)
    assert "items" in ddl.text
    assert "name" in ddl.text


async def test_counts_are_exact(case):
    async with case.opened() as engine:
        counts = await case.browse(engine, "counts")
        schema = (await case.browse(engine, "catalog")).default_schema
        if not engine.capabilities.row_counts:
            return
    assert isinstance(counts, Counts)
    assert counts.rows == {(schema, "items"): 10, (schema, "parts"): 20, (schema, "void"): 0}


async def test_one_table_can_be_counted(case):
    async with case.opened() as engine:
        counts = await case.browse(engine, "counts", table="parts")
    assert list(counts.rows.values()) == [20]


@pytest.mark.parametrize("aspect", ["catalog", "ddl", "counts"])
async def test_an_unknown_table_is_reported_with_one_like_it(case, aspect):
    async with case.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await case.browse(engine, aspect, table="item")
    assert caught.value.code is Code.TABLE_UNKNOWN
    assert "items" in caught.value.hint


async def test_an_unknown_schema_is_reported(case):
    async with case.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await case.browse(engine, "catalog", schema="nowhere")
    assert caught.value.code is Code.TABLE_UNKNOWN


SYSTEM_SCHEMAS = {
    "postgres": {"information_schema": "tables", "pg_catalog": "pg_class"},
    "mysql": {"information_schema": "TABLES"},
}


async def test_a_schema_of_the_database_s_own_has_its_tables_where_it_is_asked_for(case):
    async with case.opened() as engine:
        for schema, table in SYSTEM_SCHEMAS.get(case.name.partition("-")[0], {}).items():
            catalog = await case.browse(engine, "catalog", schema=schema)
            assert table in [each.name for each in catalog.tables]
            assert schema not in (await case.browse(engine, "catalog")).schemas


async def test_the_stamp_stays_while_nothing_changes(case):
    async with case.opened() as engine:
        stamp = await engine.schema_version()
        await case.ask(engine, case.spelling.table.format(name="items"))
        if engine.capabilities.writes:
            await case.ask(engine, case.spelling.add, (1, "one"), effect=Effect.WRITE)
        assert await engine.schema_version() == stamp
        assert (await case.browse(engine, "catalog")).version == stamp


async def test_reading_the_schema_changes_nothing(case):
    async with case.opened() as engine:
        before = await case.digest(engine)
        for aspect in ("catalog", "counts", "databases"):
            await case.browse(engine, aspect)
        assert await case.digest(engine) == before
