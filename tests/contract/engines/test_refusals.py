"""What an engine refuses, and that nothing changed by it."""

import pytest

from support.engine_cases import CASES
from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect


async def refusal(case, engine, text, params=None, **options):
    with pytest.raises(TidegateError) as caught:
        await case.ask(engine, text, params, **options)
    return caught.value


async def test_nonsense_is_an_error_with_the_databases_own_word(case):
    async with case.opened() as engine:
        error = await refusal(case, engine, case.spelling.nonsense)
    assert error.code is Code.SQL_FAILED
    assert error.details
    assert error.hint


async def test_an_error_while_running_is_coded(case):
    async with case.opened() as engine:
        error = await refusal(case, engine, case.spelling.broken)
    assert error.code is Code.SQL_FAILED


async def test_a_failed_statement_leaves_the_engine_well(case):
    async with case.opened() as engine:
        for _ in range(12):
            await refusal(case, engine, case.spelling.broken)
        assert await case.ask(engine, case.spelling.one)


async def test_two_statements_are_refused_and_neither_runs(case):
    async with case.opened() as engine:
        error = await refusal(case, engine, case.spelling.two)
    assert error.code is Code.SQL_MULTIPLE


async def test_a_semicolon_and_a_comment_behind_are_no_second_statement(case):
    async with case.opened() as engine:
        assert len(await case.ask(engine, case.spelling.comment_behind)) == 1


async def test_no_statement_is_reported_as_such(case):
    async with case.opened() as engine:
        error = await refusal(case, engine, case.spelling.empty)
    assert error.code is Code.SQL_EMPTY


async def test_an_error_names_no_path_of_this_machine(case, tmp_path):
    async with case.opened() as engine:
        for text in (case.spelling.nonsense, case.spelling.broken, *case.spelling.refused_reads):
            error = await refusal(case, engine, text)
            assert str(tmp_path) not in error.message + error.hint + repr(error.details)


async def _refused(case, engine, text, **options):
    """The error that `text` was refused with; what it says of itself if it was not."""
    try:
        await case.ask(engine, text, **options)
    except TidegateError as error:
        return error
    raise AssertionError(f"it ran: {text}")


async def test_the_database_refuses_every_write_under_a_permit_to_read(case):
    async with case.opened() as engine:
        await case.ask(engine, case.spelling.one)
        before = await case.digest(engine)
        assert case.spelling.writes
        for text in (*case.spelling.writes, *case.spelling.refused_reads):
            error = await _refused(case, engine, text)
            assert error.code in (Code.POLICY_READ_ONLY, Code.SQL_FUNCTION), text
            assert await case.digest(engine) == before, text


@pytest.mark.parametrize(
    "case", [name for name in sorted(CASES) if CASES[name].spelling.refused_reads], indirect=True
)
async def test_what_no_one_may_do_is_refused_under_every_permit(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with case.opened() as engine:
        await case.ask(engine, case.spelling.one)
        before = await case.digest(engine)
        for text in case.spelling.refused_reads:
            await _refused(case, engine, text, effect=Effect.ADMIN)
            assert await case.digest(engine) == before, text


async def test_inspection_sees_every_write_and_runs_nothing(case):
    async with case.opened() as engine:
        before = await case.digest(engine)
        assert case.spelling.writes
        for text in case.spelling.writes:
            judgement = await case.inspect(engine, text)
            if engine.capabilities.inspects:
                assert judgement is not None, text
                assert judgement.effect >= Effect.WRITE, text
            else:
                assert judgement is None, text
            assert await case.digest(engine) == before, text


async def test_inspection_calls_a_read_a_read_and_names_its_tables(case):
    async with case.opened() as engine:
        judgement = await case.inspect(engine, case.spelling.table.format(name="items"))
        if engine.capabilities.inspects:
            assert judgement is not None
            assert judgement.effect is Effect.READ
            assert judgement.tables == ("items",)
        else:
            assert judgement is None


async def test_inspection_has_no_opinion_on_nonsense(case):
    async with case.opened() as engine:
        assert await case.inspect(engine, case.spelling.nonsense) is None


async def test_metadata_cannot_be_run(case):
    async with case.opened() as engine:
        from tidegate.model.cancellation import NEVER
        from tidegate.model.requests import Browse

        with pytest.raises(TidegateError) as caught:
            await engine.run(case.permit(Browse("catalog")), NEVER)
    assert caught.value.code is Code.UNSUPPORTED
