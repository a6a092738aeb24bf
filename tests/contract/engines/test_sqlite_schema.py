"""SQLite's schema: changed by others, with views and virtual tables, as the catalog tells it."""

import pytest

from tidegate.errors import TidegateError
from tidegate.model.statements import Effect, Statement
from tidegate.sql.judge import judge

POINT = "SELECT * FROM items WHERE id = 3"


async def test_new_columns_are_seen_at_once(shop, change):
    async with shop.opened() as engine:
        for number in range(5):
            change(f"ALTER TABLE items ADD COLUMN c{number}")
            for text in (POINT, "SELECT * FROM items WHERE id = 0", "SELECT * FROM items"):
                cursor = await shop.start(engine, text)
                assert [column.name for column in cursor.columns][2:] == [
                    f"c{done}" for done in range(number + 1)
                ]
                await cursor.close()


async def test_a_renamed_column_is_seen_at_once(shop, change):
    async with shop.opened() as engine:
        assert (await shop.start(engine, POINT)).columns[1].name == "name"
        change("ALTER TABLE items RENAME name TO title")
        assert (await shop.start(engine, POINT)).columns[1].name == "title"


async def test_what_others_write_is_seen_at_once(shop, change):
    async with shop.opened() as engine:
        for number in range(100, 105):
            change(f"INSERT INTO items VALUES ({number}, 'new')")
            text = f"SELECT name FROM items WHERE id = {number}"
            assert await shop.ask(engine, text) == [("new",)]


async def test_the_stamp_changes_with_the_schema(shop, change):
    async with shop.opened() as engine:
        before = await engine.schema_version()
        change("CREATE TABLE more (a)")
        assert await engine.schema_version() != before
        catalog = await shop.browse(engine, "catalog")
        assert "more" in [table.name for table in catalog.tables]
        assert catalog.version == await engine.schema_version()


EXTRAS = """
CREATE VIRTUAL TABLE spots USING rtree (id, x0, x1);
INSERT INTO spots VALUES (1, 2, 3);
CREATE VIRTUAL TABLE notes USING fts5 (body);
INSERT INTO notes VALUES ('hello world');
CREATE VIRTUAL TABLE old_notes USING fts4 (body);
INSERT INTO old_notes VALUES ('hello world');
CREATE VIEW names AS SELECT name FROM items;
CREATE VIEW broken AS SELECT * FROM nowhere;
CREATE TABLE made (a, b AS (a + 1), c AS (a + 2) STORED, d TEXT DEFAULT 'x');
CREATE TABLE pairs (p, q, PRIMARY KEY (q, p)) WITHOUT ROWID;
CREATE TABLE kids (x, y, FOREIGN KEY (x, y) REFERENCES pairs ON DELETE CASCADE);
CREATE INDEX made_ab ON made (a, d);
CREATE UNIQUE INDEX made_low ON made (lower(d));
CREATE TABLE "odd 'name" (a);
"""


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("SELECT * FROM spots", (1, 2.0, 3.0)),
        ("SELECT body FROM notes WHERE notes MATCH 'hello'", ("hello world",)),
        ("SELECT highlight(notes, 0, '<', '>') FROM notes('hello')", ("<hello> world",)),
        ("SELECT body FROM old_notes WHERE old_notes MATCH 'world'", ("hello world",)),
        ("SELECT name FROM names LIMIT 1", ("item 1",)),
        ('SELECT count(*) FROM "odd \'name"', (0,)),
    ],
)
async def test_virtual_tables_and_views_are_read(shop, change, text, answer):
    change(EXTRAS)
    async with shop.opened() as engine:
        for _ in range(3):
            assert await shop.ask(engine, text) == [answer]
        assert (await engine.inspect(Statement(text), judge(text, "sqlite"))).effect is Effect.READ


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO notes (notes) VALUES ('optimize')",
        "DELETE FROM spots",
        "DELETE FROM spots_node",
        "UPDATE sqlite_schema SET sql = ''",
        "DELETE FROM names",
    ],
)
async def test_virtual_tables_are_not_written_by_a_read(shop, change, text):
    change(EXTRAS)
    async with shop.opened() as engine:
        before = await shop.digest(engine)
        with pytest.raises(TidegateError):
            await shop.ask(engine, text)
        assert await shop.digest(engine) == before


async def test_the_catalog_knows_every_kind_of_table(shop, change):
    change(EXTRAS)
    async with shop.opened() as engine:
        catalog = await shop.browse(engine, "catalog")
    tables = {table.name: table for table in catalog.tables}
    assert {name: table.kind for name, table in tables.items() if table.kind != "table"} == {
        "names": "view",
        "broken": "view",
        "spots": "virtual table",
        "notes": "virtual table",
        "old_notes": "virtual table",
    }
    assert tables["broken"].columns == ()
    assert [column.extra for column in tables["made"].columns] == [
        None,
        "generated virtual",
        "generated stored",
        None,
    ]
    assert tables["made"].columns[3].default == "'x'"
    assert [column.key for column in tables["pairs"].columns] == [2, 1]
    assert {(index.name, index.columns, index.unique) for index in tables["made"].indexes} == {
        ("made_ab", ("a", "d"), False),
        ("made_low", ("<expression>",), True),
    }
    (key,) = tables["kids"].foreign_keys
    assert (key.columns, key.references, key.on_delete) == (("x", "y"), ("q", "p"), "CASCADE")
    assert "odd 'name" in tables


async def test_ddl_brings_indexes_along_and_counts_skip_views(shop, change):
    change(EXTRAS)
    async with shop.opened() as engine:
        ddl = await shop.browse(engine, "ddl", table="made")
        counts = await shop.browse(engine, "counts")
    assert ddl.text.count("CREATE") == 3
    assert ("main", "names") not in counts.rows
    assert counts.rows["main", "notes"] == 1


async def test_after_analyze_the_catalog_estimates_rows(shop, change):
    change("ANALYZE")
    async with shop.opened() as engine:
        catalog = await shop.browse(engine, "catalog", table="parts")
    assert catalog.tables[0].approximate_rows == 20


async def test_one_table_is_described_as_in_the_whole_catalog(shop, change):
    change(EXTRAS)
    async with shop.opened() as engine:
        catalog = await shop.browse(engine, "catalog")
        for table in catalog.tables:
            alone = await shop.browse(engine, "catalog", table=table.name.upper())
            assert alone.tables == (table,)


@pytest.mark.parametrize(
    "text", ["PRAGMA integrity_check", "PRAGMA quick_check", "PRAGMA integrity_check(words)"]
)
async def test_a_database_with_a_full_text_index_can_be_checked(shop, change, text):
    change("CREATE VIRTUAL TABLE words USING fts5(t)")
    change("INSERT INTO words VALUES ('one two')")
    async with shop.opened() as engine:
        for _ in range(3):
            assert await shop.ask(engine, text) == [("ok",)]
