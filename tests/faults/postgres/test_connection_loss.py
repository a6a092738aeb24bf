"""The line to the server is cut, stalled or corrupted, or the server goes: each ends in a coded
error, nothing runs twice, and the next call works."""

import asyncio

import psycopg
import pytest

from support.eventually import HANG_S, until
from support.tcp_proxy import between
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Limits
from tidegate.model.statements import Effect

RUNAWAY = "SELECT count(*) FROM generate_series(1, 100000000000) AS i"


async def failure(work):
    with pytest.raises(TidegateError) as caught:
        await work
    return caught.value


async def at_rest(engine):
    """Wait for a connection that no one uses and no one makes ready."""
    await until(lambda: engine._server.home._idle, "a connection at rest")


async def end_seen(engine):
    """Wait until the end of the connections at rest can be seen from here."""
    await until(
        lambda: not any(session.line.check() for session, _ in engine._server.home._idle),
        "the end of the connections at rest",
    )


async def test_a_line_cut_while_a_statement_runs_is_reported_and_the_next_call_works(
    by_tcp, server, activity
):
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port)
        async with case.opened() as engine:
            task = asyncio.ensure_future(case.ask(engine, RUNAWAY))
            await until(
                lambda: any(query == RUNAWAY for _, query in activity()),
                "the statement in the server",
            )
            proxy.cut()
            assert (await failure(task)).code is Code.SOURCE_UNREACHABLE
            assert await case.ask(engine, "SELECT 1") == [(1,)]
            await until(
                lambda: all(state != "active" for state, _ in activity()),
                "the statement's end in the server",
            )


async def test_a_line_cut_in_the_middle_of_a_result_is_reported(by_tcp, server):
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port)
        async with case.opened() as engine:
            text = "SELECT i, repeat('x', 1000) FROM generate_series(1, 100000) AS i"
            cursor = await case.start(engine, text)
            assert len(await cursor.fetch(10)) == 10
            proxy.cut()
            error = None
            try:
                while await cursor.fetch(1000):
                    pass
            except TidegateError as caught:
                error = caught
            await cursor.close()
            assert error is not None
            assert error.code is Code.SOURCE_UNREACHABLE
            assert await case.ask(engine, "SELECT 1") == [(1,)]


async def test_an_idle_line_that_was_cut_is_replaced_unnoticed(by_tcp, server):
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port)
        async with case.opened() as engine:
            await case.ask(engine, "SELECT 1")
            await at_rest(engine)
            opened = proxy.accepted
            proxy.cut()
            await end_seen(engine)
            assert await case.ask(engine, "SELECT 2") == [(2,)]
            assert proxy.accepted == opened + 1


async def test_a_change_whose_line_was_cut_did_not_run_twice(by_tcp, server, database):
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port)
        async with case.opened() as engine:
            text = "INSERT INTO void SELECT i, 'x' FROM generate_series(1, 5) AS i RETURNING id"
            cursor = await case.start(engine, text, effect=Effect.WRITE)
            proxy.cut()
            with pytest.raises(TidegateError):
                while await cursor.fetch(1000):
                    pass
            await cursor.close()
            count = server.ask("SELECT count(*) FROM void", database)
            assert count == [(0,)]


async def test_a_stalled_line_ends_by_the_time_limit(by_tcp, server):
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port, "?connect_timeout=60")
        async with case.opened() as engine:
            await case.ask(engine, "SELECT 1")
            await at_rest(engine)
            proxy.stall()
            limits = Limits(timeout_s=0.1)
            error = await failure(case.ask(engine, "SELECT 2", limits=limits))
            assert error.code is Code.LIMIT_TIME
            proxy.flow()
            assert await case.ask(engine, "SELECT 3") == [(3,)]


@pytest.mark.parametrize("after", [0, 1, 3, 7, 30, 60, 90])
async def test_a_corrupted_line_is_reported_and_the_next_call_works(by_tcp, server, after):
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port)
        async with case.opened() as engine:
            await case.ask(engine, "SELECT 1")
            proxy.corrupt(after)
            limits = Limits(timeout_s=1)
            text = "SELECT i, 'abcdefghijklmnopqrstuvwxyz' FROM generate_series(1, 3) AS i"
            try:
                await case.ask(engine, text, limits=limits)
            except TidegateError as error:
                assert error.code in (Code.SOURCE_UNREACHABLE, Code.LIMIT_TIME, Code.SQL_FAILED)
            assert await case.ask(engine, "SELECT 2") == [(2,)]


async def test_a_server_that_restarts_is_found_again(case, server):
    async with case.opened() as engine:
        assert await case.ask(engine, "SELECT 1") == [(1,)]
        await asyncio.to_thread(server.restart)
        assert await case.ask(engine, "SELECT 2") == [(2,)]


async def test_a_server_that_restarted_while_the_event_loop_was_busy_is_found_again(case, server):
    """Its farewell and the end of the line are seen at once, when the connection is next taken."""
    async with case.opened() as engine:
        assert await case.ask(engine, "SELECT 1") == [(1,)]
        server.restart()
        assert await case.ask(engine, "SELECT 2") == [(2,)]


async def test_a_server_killed_in_the_middle_of_a_statement_is_reported(case, server, activity):
    async with case.opened() as engine:
        task = asyncio.ensure_future(case.ask(engine, RUNAWAY))
        await until(
            lambda: any(query == RUNAWAY for _, query in activity()), "the statement in the server"
        )
        await asyncio.to_thread(server.kill)
        assert (await failure(task)).code is Code.SOURCE_UNREACHABLE
        down = await failure(case.ask(engine, "SELECT 1"))
        assert down.code is Code.SOURCE_UNREACHABLE
        assert str(server.directory) not in down.message
        await asyncio.to_thread(server.start)
        assert await case.ask(engine, "SELECT 1") == [(1,)]


async def test_a_session_that_the_operator_ends_is_reported_and_replaced(case, server, database):
    async with case.opened() as engine:
        await case.ask(engine, "SELECT 1")
        await at_rest(engine)
        server.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE datname = '{database}' AND application_name = 'tidegate'"
        )
        await end_seen(engine)
        assert await case.ask(engine, "SELECT 2") == [(2,)]


async def test_a_server_that_refuses_is_reported_with_no_address(by_tcp, server):
    async with between("127.0.0.1", server.port) as proxy:
        proxy.refusing = True
        case = by_tcp(proxy.port)
        with pytest.raises(TidegateError) as caught:
            async with case.opened():
                pass
    assert caught.value.code is Code.SOURCE_UNREACHABLE


async def test_a_server_that_says_nothing_is_given_up(by_tcp, server):
    async with between("127.0.0.1", server.port) as proxy:
        proxy.stall()
        case = by_tcp(proxy.port, "?connect_timeout=1")
        with pytest.raises(TidegateError) as caught:
            async with case.opened():
                pass
    assert caught.value.code is Code.SOURCE_UNREACHABLE
    assert "1 s" in caught.value.message


async def test_a_line_cut_at_any_step_of_opening_is_reported(by_tcp, server):
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port)
        reported = 0
        for portions in range(1, 40):
            proxy.cut_after(portions)
            try:
                async with case.opened():
                    break
            except TidegateError as error:
                assert error.code is Code.SOURCE_UNREACHABLE
                reported += 1
        assert 4 < reported < 39


async def test_a_wrong_password_is_reported_without_it(by_tcp, monkeypatch):
    monkeypatch.setenv("PGTEST_PASSWORD", "battery staple")
    with pytest.raises(TidegateError) as caught:
        async with by_tcp().opened():
            pass
    reported = caught.value.message + caught.value.hint
    assert caught.value.code is Code.SOURCE_UNREACHABLE
    assert "battery" not in reported
    assert "password" in reported


async def test_a_stalled_look_at_the_catalog_ends_by_the_callers_limit(by_tcp, server, monkeypatch):
    """Our own limit is longer than the patience of the test."""
    monkeypatch.setattr("tidegate.engines.postgres.inspect.FRESH_S", 0.0)
    monkeypatch.setattr("tidegate.engines.postgres.engine.OWN_S", 600.0)
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port, "?connect_timeout=600&pool=1")
        async with case.opened() as engine:
            await case.ask(engine, "SELECT 1")
            proxy.stall()
            for _ in range(2):  # the second one finds no connection
                error = await failure(case.ask(engine, "SELECT 2", limits=Limits(timeout_s=0.1)))
                assert error.code in (Code.LIMIT_TIME, Code.SOURCE_UNREACHABLE)
            proxy.flow()
            assert await case.ask(engine, "SELECT 3") == [(3,)]


async def test_a_connection_that_cannot_be_made_ready_again_is_given_up(
    by_tcp, server, monkeypatch
):
    """Behind a change a connection is reset; if no one answers, another takes its place."""
    monkeypatch.setattr("tidegate.engines.common.pool.RESET_S", 0.05)
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port, "?pool=1")
        async with case.opened() as engine:
            await case.ask(engine, "INSERT INTO void VALUES (1, 'x')", effect=Effect.WRITE)
            proxy.stall()
            error = await failure(case.ask(engine, "SELECT 1", limits=Limits(timeout_s=0.5)))
            assert error.code is Code.SOURCE_UNREACHABLE  # not SOURCE_BUSY: there is room
            proxy.flow()
            assert await case.ask(engine, "SELECT id FROM void") == [(1,)]


SLOW_COMMIT = """
CREATE TABLE kept (id int);
CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON kept
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle();
"""


@pytest.mark.parametrize(("fault", "timeout_s"), [("cut", HANG_S), ("stall", 5.0)])
async def test_a_change_whose_line_breaks_during_the_commit_has_an_unknown_outcome(
    by_tcp, server, database, fault, timeout_s, monkeypatch
):
    monkeypatch.setattr("tidegate.engines.postgres.connection.PostgresSession.grace_s", 0.2)
    server.ask(SLOW_COMMIT, database)
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port)
        held = psycopg.connect(server.conninfo(database), autocommit=True)
        async with case.opened() as engine:
            with held:
                held.execute("SELECT pg_advisory_lock(1)")  # the commit waits for it
                write = asyncio.create_task(
                    failure(
                        case.ask(
                            engine,
                            "INSERT INTO kept VALUES (1)",
                            effect=Effect.WRITE,
                            limits=Limits(timeout_s=timeout_s),
                        )
                    )
                )
                waiting = "SELECT 1 FROM pg_stat_activity WHERE query = 'COMMIT' AND datname ="
                waiting += f" '{database}' AND wait_event = 'advisory'"
                await until(lambda: held.execute(waiting).fetchall(), "the commit to wait")
                getattr(proxy, fault)()
                error = await write
            assert error.code is Code.SQL_OUTCOME
            assert "before you send it again" in error.hint
