"""A COMMIT of the state that waits for a standby which does not answer."""

import threading
import time

import psycopg
import pytest

import support.postgres_server as postgres_server
from support.eventually import PATIENCE_S, wait_until
from tidegate.errors import Code, TidegateError
from tidegate.model.budgets import Budget
from tidegate.store.postgres.state import PostgresState

WAITS = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
def server():
    """One whose COMMITs can wait for a standby."""
    own = postgres_server.Server(postgres_server.available()["wheel"])
    own.ask("ALTER SYSTEM SET wal_level = replica")
    own.ask("ALTER SYSTEM SET max_wal_senders = 2")
    own.restart()
    yield own
    own.close()


@pytest.fixture
def gate(server, tmp_path):
    """A state on it, which no standby follows."""
    url = server.url(server.new_database())
    state = PostgresState(url, tmp_path)
    follow(server, "'nobody'")
    yield state
    follow(server, "''")
    state.close()


def follow(server, names):
    server.ask(f"ALTER SYSTEM SET synchronous_standby_names = {names}")
    server.ask("SELECT pg_reload_conf()")
    wanted = names.strip("'")
    wait_until(
        lambda: server.ask("SHOW synchronous_standby_names") == [(wanted,)], "the setting to count"
    )


def add(state, id, refused):
    try:
        state.budgets.add(Budget(id, "calls", "minute", 100, token=id))
    except TidegateError as error:
        refused.append(error)


def test_it_is_given_up_in_time_and_is_neither_done_nor_failed(server, gate):
    refused: list[TidegateError] = []
    began = time.monotonic()
    add(gate, "b1", refused)
    assert time.monotonic() - began < 30.0
    (error,) = refused
    assert error.code is Code.STATE_FAILED and error.details == {"outcome": "unknown"}
    # What may wait for no standby goes on: use and history.
    gate.shared.add_failure("ip", 1.0, most=9, window_s=60.0)
    assert gate.budgets.list() == ()  # it is not visible before the standby has it
    follow(server, "''")
    wait_until(lambda: len(gate.budgets.list()) == 1, "the commit ends when it may")


@pytest.mark.parametrize("ends", ["pg_cancel_backend", "pg_terminate_backend"])
def test_one_that_a_person_ends_is_not_known_to_be_kept(server, gate, ends):
    refused: list[TidegateError] = []
    caller = threading.Thread(target=add, args=(gate, "b2", refused))
    caller.start()
    with psycopg.connect(server.conninfo(), autocommit=True) as watcher:
        wait_until(lambda: watcher.execute(WAITS).fetchone(), "the COMMIT to wait")
        watcher.execute(f"SELECT {ends}(pid) FROM ({WAITS}) AS waiting")
    caller.join(PATIENCE_S)
    assert not caller.is_alive()
    assert [error.details for error in refused] == [{"outcome": "unknown"}]
    assert len(gate.budgets.list()) == 1
