"""The state in PostgreSQL as a database of its own: its version, its bounds, and a COMMIT of which
the answer is lost."""

import asyncio
import threading

import psycopg
import pytest
from msgspec import structs

import support.postgres_server as postgres_server
from support.eventually import PATIENCE_S, wait_until
from support.postgres_state import KEY
from support.tcp_proxy import between
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.model.budgets import Budget
from tidegate.store.postgres import database, schema, versions
from tidegate.store.postgres.state import PostgresState
from tidegate.store.records import (
    ApprovalBounds,
    OperatorEntry,
    PendingApproval,
    Subject,
    TokenEntry,
)

SUBJECT = Subject("a", "", "core", "query", "shop", "s1", "DELETE", "write", "r", "")
CALLS = Budget("b1", "calls", "minute", 100)


@pytest.fixture
def url():
    """A database without a state."""
    server = postgres_server.shared()
    return server.url(server.new_database())


def refusal(act):
    with pytest.raises(TidegateError) as caught:
        act()
    assert caught.value.code is Code.STATE_FAILED
    return caught.value


def ask(url, text):
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(text)
        return cursor.fetchall() if cursor.description else []


def test_the_number_of_the_newest_script_is_known():
    numbers = [int(path.name[:4]) for path in schema.scripts()]
    assert numbers == list(range(1, schema.NEWEST + 1))
    assert 1 <= schema.OLDEST_READER <= schema.NEWEST


def test_gates_that_start_at_once_make_one_state(url, tmp_path):
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(PostgresState(url, tmp_path))) for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE_S)
    assert len(made) == 4 and ask(url, "SELECT count(*) FROM tidegate.about") == [(1,)]
    for each in made:
        each.close()


def test_a_state_that_this_program_cannot_read_is_refused_with_both_numbers(url, tmp_path):
    state = PostgresState(url, tmp_path)
    state.versions.follow()
    ask(url, "UPDATE tidegate.about SET version = 9, oldest_reader = 8")
    said = refusal(lambda: PostgresState(url, tmp_path)).message
    assert "8" in said and f"knows {schema.NEWEST}" in said
    assert refusal(state.read_versions).message == said  # and so is the gate that runs
    ask(url, "UPDATE tidegate.about SET oldest_reader = 1")
    PostgresState(url, tmp_path).close()  # of the next version, which this one can still read
    state.close()


def test_a_sealed_state_is_for_programs_that_seal_and_stays_so(url, tmp_path, monkeypatch):
    assert [int(each.name[:4]) for each in schema.scripts() if "seals" in each.name] == [
        schema.SEALED
    ]
    PostgresState(url, tmp_path, KEY).close()
    scripts = [*schema.scripts(), tmp_path / "next.sql"]
    scripts[-1].write_text("SELECT 1")
    newest = schema.NEWEST
    monkeypatch.setattr(schema, "scripts", lambda: scripts)
    monkeypatch.setattr(schema, "NEWEST", newest + 1)
    PostgresState(url, tmp_path, KEY).close()
    found = ask(url, "SELECT version, oldest_reader FROM tidegate.about")
    assert found == [(newest + 1, schema.SEALED)]
    monkeypatch.setattr(schema, "NEWEST", schema.SEALED - 1)
    assert str(schema.SEALED) in refusal(lambda: PostgresState(url, tmp_path, KEY)).message


def test_gates_of_two_versions_work_together_until_the_older_one_is_too_old(
    url, tmp_path, monkeypatch
):
    older = PostgresState(url, tmp_path / "a", KEY)
    older.versions.follow()
    script = tmp_path / "next.sql"
    script.write_text(
        "ALTER TABLE tidegate.tokens ADD COLUMN colour text NOT NULL DEFAULT '';"
        "CREATE TABLE tidegate.colours (name text PRIMARY KEY)"
    )
    scripts = [*schema.scripts(), script]
    monkeypatch.setattr(schema, "scripts", lambda: scripts)
    monkeypatch.setattr(schema, "NEWEST", schema.NEWEST + 1)
    newer = PostgresState(url, tmp_path / "b", KEY)
    newer.versions.follow()
    assert ask(url, "SELECT version FROM tidegate.about") == [(schema.NEWEST,)]

    # What one of them writes is there for the other, in both directions.
    token = TokenEntry("t1", "ann", "tg_", Scope.READ_ONLY, None, 1.0)
    older.tokens.add(token, b"1" * 32)
    newer.tokens.add(structs.replace(token, id="t2", name="bob"), b"2" * 32)
    assert newer.tokens.by_digest(b"1" * 32) == token
    assert older.tokens.by_digest(b"2" * 32) is not None
    assert older.tokens.revoke("bob", 5.0) is not None
    wait_until(lambda: newer.tokens.revoked(["t1", "t2"]) == {"t2"}, "the newer one has seen it")
    bounds = ApprovalBounds(0.0, 0.0, 99, 99)
    newer.approvals.admit(PendingApproval("a1", "d", "pending", "t1", SUBJECT, 1.0), bounds)
    assert older.approvals.resolve("a1", "allowed", "ada", "", 2.0)
    assert newer.approvals.answer("d", bounds, 6.0) is not None
    assert older.approvals.answer("d", bounds, 6.0) is None
    assert not older.concerns() and not newer.concerns()
    newer.close()

    # The version after that one removes what the older one needs.
    ask(url, f"UPDATE tidegate.about SET version = 99, oldest_reader = {schema.NEWEST}")
    wait_until(lambda: older.versions.is_stale, "the older one lets nothing through")
    with pytest.raises(TidegateError, match=f"knows version {schema.NEWEST}"):
        older.versions.check()
    older.close()


def test_a_role_that_may_not_make_the_tables_is_told_what_to_grant(tmp_path):
    server = postgres_server.shared()
    name = server.new_database()
    server.ask("DROP ROLE IF EXISTS keeper; CREATE ROLE keeper LOGIN")
    said = refusal(lambda: PostgresState(server.url(name, "keeper"), tmp_path))
    assert "GRANT CREATE ON DATABASE" in (said.hint or "")
    server.ask(f"GRANT CREATE ON DATABASE {name} TO keeper")
    PostgresState(server.url(name, "keeper"), tmp_path).close()


def test_an_answer_that_does_not_come_is_waited_for_no_longer_than_the_bound(url, tmp_path):
    state = PostgresState(url, tmp_path)
    with psycopg.connect(url) as holder:
        holder.execute("LOCK TABLE tidegate.operators IN ACCESS EXCLUSIVE MODE")
        with state._database.reading(0.3) as connection, pytest.raises(psycopg.OperationalError):
            connection.ask("SELECT count(*) FROM tidegate.operators")
    assert state.operators.list() == ()  # on another connection
    state.close()


def test_a_gate_whose_link_is_dead_sees_its_state_no_more_and_again_when_it_is_back(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(versions, "_LOOK_BOUND_S", 0.3)
    server = postgres_server.shared()
    name = server.new_database()
    password = postgres_server.PASSWORD.replace(" ", "%20")

    async def use_state():
        async with between("127.0.0.1", server.port) as proxy:
            url = f"postgresql://postgres:{password}@127.0.0.1:{proxy.port}/{name}"
            state = await asyncio.to_thread(PostgresState, url, tmp_path)
            await asyncio.to_thread(state.budgets.add, CALLS)
            proxy.stall()
            error = await asyncio.to_thread(refusal, state.read_versions)
            assert error.retry_after_s
            proxy.flow()
            assert await asyncio.to_thread(state.budgets.list) == (CALLS,)
            proxy.cut()
            await asyncio.to_thread(wait_until, lambda: lists(state) == (CALLS,), "an answer")
            await asyncio.to_thread(state.close)

    asyncio.run(use_state())


def lists(state):
    """The budgets; None as long as the state says to retry."""
    try:
        return state.budgets.list()
    except TidegateError as error:
        assert error.retry_after_s
        return None


class _Lost(psycopg.OperationalError):
    pass


@pytest.mark.parametrize("reached", [True, False])
def test_a_commit_without_an_answer_is_settled_by_what_is_there(
    url, tmp_path, monkeypatch, reached
):
    state = PostgresState(url, tmp_path)
    ask_it = database.StateConnection.ask

    def lose_the_answer(connection, sql, values=None):
        if not sql.endswith("COMMIT"):
            return ask_it(connection, sql, values)
        if reached:
            ask_it(connection, sql, values)
        connection.close()
        raise _Lost("the connection was closed")

    monkeypatch.setattr(database.StateConnection, "ask", lose_the_answer)
    if reached:
        assert state.budgets.add(CALLS)
    else:
        error = refusal(lambda: state.budgets.add(CALLS))
        assert error.details == {"outcome": "unknown"} and "not known" in error.message
    monkeypatch.undo()
    assert state.budgets.list() == ((CALLS,) if reached else ())
    state.close()


def test_the_time_is_that_of_the_database_whatever_this_clock_says(url, tmp_path, monkeypatch):
    import time

    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 60.0)
    state = PostgresState(url, tmp_path)
    assert abs(state.now() - real()) < 5.0
    monkeypatch.setattr(time, "time", lambda: real() - 60.0)
    state.read_versions()
    assert abs(state.now() - real()) < 5.0
    state.close()


def test_on_a_server_that_was_promoted_what_was_not_used_ends_and_revocations_stay(url, tmp_path):
    state, other = PostgresState(url, tmp_path), PostgresState(url, tmp_path)
    now = state.now()
    for id in ("t1", "t2"):
        entry = TokenEntry(id, id, "tg_", Scope.READ_ONLY, None, created_at=1.0)
        state.tokens.add(entry, id.encode())
    bounds = ApprovalBounds(0.0, 0.0, 99, 99)
    for id in ("given", "asked"):
        state.approvals.admit(PendingApproval(id, id, "pending", "tok", SUBJECT, 1.0), bounds)
    state.approvals.resolve("given", "allowed", "ada", "", 2.0)
    state.operators.add(OperatorEntry("o1", "ada", b"s", b"h", (), 1.0))
    state.operators.add_link(b"l", "o1", now + 600.0, now)
    state.tokens.revoke("t1", 5.0)
    other.read_versions()
    # As a standby that was promoted, and did not know of the revocation yet.
    ask(url, "ALTER TABLE tidegate.tokens DISABLE TRIGGER USER")
    ask(url, "UPDATE tidegate.tokens SET revoked_at = NULL")
    ask(url, "UPDATE tidegate.about SET timeline = timeline - 1")
    last = state._versions.epochs._last
    state._versions.epochs._last = last._replace(timeline=last.timeline - 1)
    state.read_versions()
    other.read_versions()
    assert [each.revoked_at for each in other.tokens.list()] == [5.0, None]
    assert {each.id: each.state for each in other.approvals.list()} == {
        "given": "expired", "asked": "pending",
    }  # fmt: skip
    assert state.operators.use_link(b"l", now) is None
    assert not state.shared.use_once("request state of core", "old", now + 590.0, now)
    assert state.shared.use_once("request state of core", "new", now + 700.0, now)
    ((before,),) = ask(url, "SELECT epoch_at FROM tidegate.about")
    other.read_versions()
    assert ask(url, "SELECT epoch_at FROM tidegate.about") == [(before,)]  # it began once

    # As the former primary, which comes back.
    state._versions.epochs._last = last._replace(timeline=last.timeline + 1)
    assert "was replaced" in refusal(state.read_versions).message
    state.close()
    other.close()


def test_a_gate_that_was_stopped_in_a_transaction_keeps_no_lock_for_ever(
    url, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        database, "_BEGIN", database._BEGIN.replace(
            "idle_in_transaction_session_timeout = 5000",
            "idle_in_transaction_session_timeout = 100",
        ),
    )  # fmt: skip
    stopped, other = PostgresState(url, tmp_path), PostgresState(url, tmp_path)
    with pytest.raises(TidegateError), stopped._database.changing("rights") as connection:
        assert other.budgets.add(CALLS)  # waits until the server has ended the other transaction
        connection.ask("SELECT 1")
    wait_until(lambda: other.budgets.list() == (CALLS,), "the budget to be there")
    stopped.close()
    other.close()
