"""SQLite's limits, errors, opinions and writes."""

import pytest

from support.engine_cases import CASES
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.sql.judge import judge


@pytest.mark.parametrize(
    "text",
    [
        "SELECT printf('%.*c', 900000000, 'x')",
        "SELECT hex(randomblob(400000000))",
        "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || '1')",
        "SELECT trim(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || '1')",
        "WITH RECURSIVE r(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM r) SELECT max(x) FROM r",
        "SELECT " + ", ".join(["hex(zeroblob(8000000))"] * 100),
    ],
)
async def test_giant_values_are_refused_before_they_are_made(shop, text):
    async with shop.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, text)
        assert caught.value.code is Code.LIMIT_BYTES
        assert await shop.ask(engine, "SELECT 1") == [(1,)]


async def test_ordinary_text_functions_work_on_large_values(shop, change):
    change("INSERT INTO void VALUES (1, printf('%.*c', 8000000, 'x'))")
    async with shop.opened() as engine:
        text = "SELECT length(replace(name, 'x', 'yy')), instr(name, 'z'), name LIKE '%x' FROM void"
        with pytest.raises(TidegateError):
            await shop.ask(engine, text)
        text = "SELECT instr(name, 'z'), name LIKE '%x' FROM void"
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, text)
        assert "7000000" in caught.value.message
        assert await shop.ask(engine, "SELECT instr(name, 'z') FROM void") == [(0,)]


async def test_text_that_is_not_utf8_is_shown_with_replacements_and_fails_no_row(shop, change):
    change("INSERT INTO void VALUES (1, 'plain'), (2, CAST(x'6361ff' AS TEXT)), (3, x'ff')")
    async with shop.opened() as engine:
        for text in (
            "SELECT id, name FROM void ORDER BY id",
            "SELECT id, name AS id FROM void ORDER BY 1 ; -- that is all",
            "WITH v AS (SELECT * FROM void) SELECT * FROM v -- all\n",
        ):
            rows = await shop.ask(engine, text)
            assert rows == [(1, "plain"), (2, "ca\ufffd"), (3, b"\xff")]
        text = "SELECT name FROM void WHERE id = ?"
        assert await shop.ask(engine, text, (2,)) == [("ca\ufffd",)]
        exact = "SELECT CAST(name AS BLOB) FROM void WHERE id = 2"
        assert await shop.ask(engine, exact) == [(b"ca\xff",)]


async def test_large_rows_among_small_ones_come_once_each_and_in_order(shop):
    text = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1400)"
        " SELECT i, CASE WHEN i BETWEEN 1001 AND 1007 OR i = 1400"
        " THEN zeroblob(700000) ELSE x'' END"
        " FROM n"
    )
    wanted = [(i, 700_000 if 1001 <= i <= 1007 or i == 1400 else 0) for i in range(1, 1401)]
    async with shop.opened() as engine:
        limits = Limits(max_rows=5_000, max_bytes=1 << 30)
        rows = await shop.ask(engine, text, limits=limits)
        assert [(number, len(large)) for number, large in rows] == wanted


async def test_replacements_begin_in_the_middle_of_a_result(shop, change):
    change(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000)"
        " INSERT INTO void SELECT i, CASE i WHEN 2000 THEN CAST(x'ff' AS TEXT) ELSE 'x' || i END"
        " FROM n"
    )
    async with shop.opened() as engine:
        cursor = await shop.start(engine, "SELECT * FROM void")
        rows = []
        while batch := await cursor.fetch(700):
            rows += batch
        await cursor.close()
    expected = [(i, "\ufffd" if i == 2000 else f"x{i}") for i in range(1, 3001)]
    assert [tuple(row) for row in rows] == expected


async def test_a_change_whose_rows_cannot_be_read_is_reported_and_undone(shop):
    async with shop.opened() as engine:
        before = await shop.digest(engine)
        with pytest.raises(TidegateError) as caught:
            text = "INSERT INTO void VALUES (1, CAST(x'ff' AS TEXT)) RETURNING name"
            await shop.ask(engine, text, effect=Effect.WRITE)
        assert "CAST" in caught.value.hint
        assert await shop.digest(engine) == before


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ((), Code.ARGUMENT_INVALID),
        ((1, 2), Code.ARGUMENT_INVALID),
        ((2**63,), Code.ARGUMENT_INVALID),
        (([1],), Code.ARGUMENT_INVALID),
        (("\ud800",), Code.SQL_UNREADABLE),
    ],
)
async def test_parameters_that_do_not_fit_are_reported(shop, params, code):
    async with shop.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, "SELECT ?", params)
    assert caught.value.code is code


@pytest.mark.parametrize("text", ["SELECT 1 \0", "SELECT '\ud800'"])
async def test_text_that_sqlite_cannot_read_is_reported(shop, text):
    async with shop.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, text)
    assert caught.value.code is Code.SQL_UNREADABLE


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT * FROM nowhere", "list the tables"),
        ("SELECT missing FROM items", "columns"),
        ("SELECT nope(1)", "function"),
    ],
)
async def test_an_unknown_name_hints_where_to_look(shop, text, hint):
    async with shop.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, text)
    assert caught.value.code is Code.SQL_FAILED
    assert caught.value.details["sqlite"] == "SQLITE_ERROR"
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("DROP TABLE void", Effect.DESTRUCTIVE),
        ("ALTER TABLE items DROP COLUMN name", Effect.DESTRUCTIVE),
        ("ALTER TABLE items RENAME TO things", Effect.WRITE),
        ("CREATE TABLE more (a)", Effect.WRITE),
        ("CREATE TEMP TABLE more (a)", Effect.SESSION),
        ("BEGIN", Effect.SESSION),
        ("ATTACH ':memory:' AS other", Effect.ADMIN),
        ("PRAGMA writable_schema = 1", Effect.ADMIN),
        ("VACUUM", Effect.ADMIN),
        ("EXPLAIN DELETE FROM items", Effect.READ),
        ("PRAGMA integrity_check", Effect.READ),
    ],
)
async def test_sqlites_opinion_of_an_effect(shop, text, effect):
    async with shop.opened() as engine:
        assert (await engine.inspect(Statement(text), judge(text, "sqlite"))).effect is effect


async def test_inspection_names_the_tables_behind_views_and_the_functions(shop, change):
    change("CREATE VIEW names AS SELECT name FROM items")
    async with shop.opened() as engine:
        judgement = await engine.inspect(
            Statement("SELECT upper(name) FROM names"),
            judge("SELECT upper(name) FROM names", "sqlite"),
        )
    assert judgement.tables == ("items", "names")
    assert judgement.functions == ("upper",)


async def test_inspection_tells_two_statements(shop):
    async with shop.opened() as engine:
        judgement = await engine.inspect(
            Statement("SELECT 1; DELETE FROM items"), judge("SELECT 1; DELETE FROM items", "sqlite")
        )
    assert judgement.effect is Effect.UNKNOWN
    assert judgement.code == Code.SQL_MULTIPLE.value


async def test_an_explained_write_changes_nothing(shop):
    async with shop.opened() as engine:
        before = await shop.digest(engine)
        assert await shop.ask(engine, "EXPLAIN DELETE FROM items")
        await shop.ask(engine, "EXPLAIN QUERY PLAN DELETE FROM items")
        assert await shop.explain(engine, "SELECT * FROM items WHERE id = ?")
        assert await shop.digest(engine) == before


async def test_a_permit_to_write_does_not_destroy(shop):
    async with shop.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, "DROP TABLE void", effect=Effect.WRITE)
        assert caught.value.code is Code.POLICY_DENIED
        await shop.ask(engine, "DROP TABLE void", effect=Effect.DESTRUCTIVE)
        catalog = await shop.browse(engine, "catalog")
    assert "void" not in [table.name for table in catalog.tables]


async def test_a_source_opened_read_only_is_never_written(shop):
    shop.source = Source("s1", "shop", f"{shop.url}?mode=ro", "sqlite", "sqlite")
    async with shop.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, "DELETE FROM items", effect=Effect.WRITE)
    assert caught.value.code is Code.POLICY_READ_ONLY


async def test_writes_keep_foreign_keys(shop):
    async with shop.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, "INSERT INTO parts VALUES (99, 99)", effect=Effect.WRITE)
        assert "FOREIGN KEY" in caught.value.message
        assert await shop.ask(engine, "SELECT count(*) FROM parts") == [(20,)]


async def test_affected_rows_leave_out_what_triggers_changed(shop, change):
    change(
        "CREATE TRIGGER copy AFTER INSERT ON void BEGIN UPDATE items SET name = 'touched'; END",
    )
    async with shop.opened() as engine:
        text = "INSERT INTO void VALUES (1, 'a'), (2, 'b')"
        cursor = await shop.start(engine, text, effect=Effect.WRITE)
        await cursor.fetch(1)
        assert cursor.affected == 2
        await cursor.close()
        cursor = await shop.start(engine, "CREATE TABLE more (a)", effect=Effect.WRITE)
        await cursor.fetch(1)
        assert cursor.affected == 0
        await cursor.close()


async def test_a_database_in_memory_is_one_for_all_its_connections():
    source = Source("s1", "scratch", "sqlite://", "sqlite", "sqlite")
    case = CASES["sqlite"]
    scratch = type(case)("scratch", case.make, case.spelling, case.digest_of)
    scratch.source = source
    async with scratch.opened() as engine, scratch.opened() as other:
        await scratch.ask(engine, "CREATE TABLE t (a)", effect=Effect.WRITE)
        await scratch.ask(engine, "INSERT INTO t VALUES (5)", effect=Effect.WRITE)
        assert await scratch.ask(engine, "SELECT a FROM t") == [(5,)]
        assert await scratch.ask(engine, "SELECT count(*) FROM t") == [(1,)]
        with pytest.raises(TidegateError):
            await scratch.ask(engine, "DELETE FROM t")
        with pytest.raises(TidegateError):
            await scratch.ask(other, "SELECT a FROM t")


async def test_a_statement_that_waits_for_a_worker_has_its_time_limit(shop):
    async with shop.opened() as engine:
        engine._readers._size = 1
        text = shop.spelling.rows.format(n=100_000)
        cursor = await shop.start(engine, text)
        text = shop.spelling.count.format(name="items")
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, text, limits=Limits(timeout_s=0.02))
        assert caught.value.code is Code.SOURCE_BUSY
        await cursor.close()
        assert await shop.ask(engine, text) == [(10,)]


async def test_a_long_text_is_studied_on_a_worker(shop):
    numbers = ", ".join(map(str, range(5000)))
    async with shop.opened() as engine:
        text = f"SELECT count(*) FROM items WHERE id IN ({numbers})"
        assert await shop.ask(engine, text) == [(10,)]
        assert (await engine.inspect(Statement(text), judge(text, "sqlite"))).effect is Effect.READ
