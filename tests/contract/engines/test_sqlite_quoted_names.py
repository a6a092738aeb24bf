"""Names in double quotes that nothing has: errors in a caller's text, texts in a user's schema."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect

OLD_SCHEMA = """
CREATE VIEW labelled AS SELECT id, "old label" AS label FROM items WHERE name <> "none";
CREATE TABLE log (line);
CREATE TRIGGER noted AFTER INSERT ON items BEGIN INSERT INTO log VALUES ("came"); END;
CREATE INDEX some ON items (name) WHERE name <> "some";
"""


@pytest.mark.parametrize(
    "text",
    [
        'SELECT "nmae" FROM items',
        'SELECT id FROM items WHERE name = "item 3"',
        'SELECT id FROM items ORDER BY "nmae"',
        'SELECT "nm""ae`" FROM items',
        'SELECT id, label FROM labelled WHERE label = "old lable"',
        'SELECT "old label" FROM labelled',
        'WITH v AS (SELECT "nmae" AS x FROM labelled) SELECT * FROM v',
        'EXPLAIN SELECT "nmae" FROM items',
    ],
)
async def test_a_quoted_name_that_is_not_there_is_an_error(shop, change, text):
    change(OLD_SCHEMA)
    async with shop.opened() as engine:
        for _ in range(2):
            with pytest.raises(TidegateError) as caught:
                await shop.ask(engine, text)
            assert caught.value.code is Code.SQL_FAILED
            assert "no such column" in caught.value.message
            assert "single quotes" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        'UPDATE items SET name = "nmae"',
        'DELETE FROM items WHERE name <> "nmae"',
        'INSERT INTO items SELECT 900, "nmae" FROM items LIMIT 1',
        'CREATE INDEX more ON items (name) WHERE name <> "nmae"',
    ],
)
async def test_a_change_with_a_quoted_name_that_is_not_there_changes_nothing(shop, change, text):
    change(OLD_SCHEMA)
    async with shop.opened() as engine:
        before = await shop.ask(engine, "SELECT * FROM items ORDER BY id")
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, text, effect=Effect.DESTRUCTIVE)
        assert "no such column" in caught.value.message
        assert await shop.ask(engine, "SELECT * FROM items ORDER BY id") == before
        assert await shop.ask(engine, "SELECT name FROM sqlite_schema WHERE name = 'more'") == []


async def test_texts_in_double_quotes_of_a_users_schema_go_on(shop, change):
    async with shop.opened() as engine:
        change(OLD_SCHEMA)
        for _ in range(2):
            rows = await shop.ask(engine, 'SELECT "label" FROM labelled AS "l" WHERE "l"."id" = 3')
            assert rows == [("old label",)]
            assert await shop.ask(engine, 'SELECT "id" FROM "items" WHERE "id" = 3') == [(3,)]
        assert await shop.ask(engine, "SELECT name FROM pragma_table_info('labelled')") == [
            ("id",), ("label",),
        ]  # fmt: skip
        insert = "INSERT INTO items VALUES (901, 'new')"
        await shop.ask(engine, insert, effect=Effect.WRITE)
        assert await shop.ask(engine, "SELECT line FROM log") == [("came",)]
        catalog = await shop.browse(engine, "catalog")
        assert "labelled" in [table.name for table in catalog.tables]


async def test_a_view_that_gets_a_quoted_text_later_is_read(shop, change):
    change("CREATE VIEW v AS SELECT id, 'plain' AS label FROM items")
    text = "SELECT label FROM v WHERE id = 3"
    async with shop.opened() as engine:
        assert await shop.ask(engine, text) == [("plain",)]
        change('DROP VIEW v; CREATE VIEW v AS SELECT id, "quoted" AS label FROM items')
        assert await shop.ask(engine, text) == [("quoted",)]


async def test_a_quoted_column_that_is_dropped_later_is_no_text(shop, change):
    change("ALTER TABLE items ADD COLUMN extra")
    text = 'SELECT "extra" FROM items WHERE id = 3'
    async with shop.opened() as engine:
        assert await shop.ask(engine, text) == [(None,)]
        change("ALTER TABLE items DROP COLUMN extra")
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, text)
        assert "no such column" in caught.value.message
