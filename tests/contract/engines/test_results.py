"""What comes back from a statement, on every engine."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Limits
from tidegate.results.page import PageBuilder


async def test_n_rows_are_n_rows(case):
    async with case.opened() as engine:
        for count in (1, 2, 31, 32, 33, 511, 512, 513, 3000):
            rows = await case.ask(engine, case.spelling.rows.format(n=count))
            assert [row[0] for row in rows] == list(range(1, count + 1)), count


async def test_a_result_without_rows_has_columns(case):
    async with case.opened() as engine:
        cursor = await case.start(engine, case.spelling.nothing)
        assert await cursor.fetch(10) == []
        assert tuple(column.name for column in cursor.columns) == case.spelling.columns
        await cursor.close()


async def test_columns_are_named_and_as_many_as_values(case):
    async with case.opened() as engine:
        cursor = await case.start(engine, case.spelling.table.format(name="items"))
        (row,) = await cursor.fetch(1)
        assert tuple(column.name for column in cursor.columns) == case.spelling.columns
        assert len(row) == len(cursor.columns)
        await cursor.close()


async def test_columns_know_the_type_that_the_database_names(case):
    async with case.opened() as engine:
        cursor = await case.start(engine, case.spelling.table.format(name="items"))
        types = [case.spelling.integer_type, case.spelling.text_type]
        assert [column.type.lower() for column in cursor.columns] == types
        await cursor.close()


async def test_values_come_as_they_are(case):
    async with case.opened() as engine:
        (row,) = await case.ask(engine, case.spelling.values)
    assert row == case.spelling.expected
    assert [type(value) for value in row] == [type(value) for value in case.spelling.expected]


async def test_null_is_not_the_empty_text(case):
    async with case.opened() as engine:
        (row,) = await case.ask(engine, case.spelling.values)
    assert None in row
    assert "" in row


async def test_parameters_come_back_as_they_were_given(case):
    async with case.opened() as engine:
        rows = await case.ask(engine, case.spelling.echo, (7, "it's -- 'quoted'", None))
    assert rows == [(7, "it's -- 'quoted'", None)]


async def test_fetch_never_gives_more_than_asked(case):
    async with case.opened() as engine:
        cursor = await case.start(engine, case.spelling.rows.format(n=700))
        sizes = []
        while rows := await cursor.fetch(300):
            sizes.append(len(rows))
        await cursor.close()
    assert sizes == [300, 300, 100]


async def test_fetch_behind_the_end_gives_nothing(case):
    async with case.opened() as engine:
        cursor = await case.start(engine, case.spelling.rows.format(n=3))
        assert len(await cursor.fetch(10)) == 3
        assert await cursor.fetch(10) == []
        assert await cursor.fetch(10) == []
        await cursor.close()


async def page_of(case, engine, text, limits):
    cursor = await case.start(engine, text, limits=limits)
    builder = PageBuilder(cursor.columns, limits)
    await cursor.fetch_into(builder)
    await cursor.close()
    return builder.page()


async def test_a_page_of_exactly_n_rows_is_not_truncated(case):
    async with case.opened() as engine:
        for count in (0, 1, 10, 600, 5000):
            text = case.spelling.rows.format(n=count) if count else case.spelling.nothing
            page = await page_of(case, engine, text, Limits(max_rows=count or 1))
            assert (page.row_count, page.truncations) == (count, ())


async def test_one_row_too_many_is_reported(case):
    async with case.opened() as engine:
        for most in (1, 10, 511, 600):
            text = case.spelling.rows.format(n=most + 1)
            page = await page_of(case, engine, text, Limits(max_rows=most))
            assert page.row_count == most
            assert [(cut.kind, cut.limit) for cut in page.truncations] == [("rows", most)]


async def test_pour_and_fetch_build_the_same_page(case):
    text, limits = case.spelling.rows.format(n=2500), Limits(max_rows=2000)
    async with case.opened() as engine:
        built = await page_of(case, engine, text, limits)
        cursor = await case.start(engine, text, limits=limits)
        fetched = PageBuilder(cursor.columns, limits)
        while wanted := fetched.remaining:
            fetched.write(await cursor.fetch(wanted))
        await cursor.close()
    assert built == fetched.page()


async def test_what_is_left_behind_a_page_can_be_fetched(case):
    limits = Limits(max_rows=1000)
    async with case.opened() as engine:
        cursor = await case.start(engine, case.spelling.rows.format(n=3000), limits=limits)
        builder = PageBuilder(cursor.columns, limits)
        await cursor.fetch_into(builder)
        rest = [*builder.rest]
        while rows := await cursor.fetch(700):
            rest += rows
        await cursor.close()
    assert [row[0] for row in rest] == list(range(1001, 3001))


async def test_large_rows_are_cut_by_bytes_without_reading_them_all(case):
    limits = Limits(max_rows=100_000, max_bytes=100_000)
    text = case.spelling.wide_rows.format(n=1_000_000, width=10_000)
    async with case.opened() as engine:
        page = await page_of(case, engine, text, limits)
    assert page.row_count == 9
    assert [cut.kind for cut in page.truncations] == ["bytes"]
    assert len(page.rows) <= 100_000


async def test_a_read_affects_nothing(case):
    async with case.opened() as engine:
        cursor = await case.start(engine, case.spelling.one)
        await cursor.fetch(10)
        assert cursor.affected == 0
        await cursor.close()


async def test_a_closed_cursor_gives_nothing_more(case):
    async with case.opened() as engine:
        cursor = await case.start(engine, case.spelling.rows.format(n=5000))
        await cursor.fetch(10)
        await cursor.close()
        await cursor.close()
        assert await case.ask(engine, case.spelling.one)


async def test_a_statement_runs_again_with_the_same_answer(case):
    async with case.opened() as engine:
        answers = [await case.ask(engine, case.spelling.table.format(name="items")) for _ in "abc"]
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) == 10


async def test_an_explanation_has_rows_and_runs_nothing(case):
    async with case.opened() as engine:
        before = await case.digest(engine)
        rows = await case.explain(engine, case.spelling.table.format(name="items"))
        assert rows
        if engine.capabilities.explains_changes:
            await case.explain(engine, case.spelling.add, (1, "one"))
        else:
            with pytest.raises(TidegateError) as caught:
                await case.explain(engine, case.spelling.add, (1, "one"))
            assert caught.value.code is Code.UNSUPPORTED
        assert await case.digest(engine) == before


async def test_metadata_is_no_statement(case):
    async with case.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await case.browse(engine, "ddl", table="no such table")
    assert caught.value.code is Code.TABLE_UNKNOWN
