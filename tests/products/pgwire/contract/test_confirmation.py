"""What cannot be undone is confirmed by a setting of the session, and approved by a person."""

from __future__ import annotations

import psycopg
import pytest

from support.wire_server import WireServer
from tidegate.approvals.approvals import Approvals
from tidegate.store.sqlite.state import SqliteState
from tidegate.surfaces.confirmation import PHRASE

CONFIRM = f"SET tidegate.confirm = '{PHRASE}'"
DELETE = "DELETE FROM sale"


def allow_all(server: WireServer) -> int:
    """Allow what waits, as an operator; how many questions that were."""
    state = SqliteState(server.folder / "state" / "state.db")
    try:
        approvals = Approvals(state.approvals)
        waiting = [each.id for each in approvals.list() if each.state == "pending"]
        for id in waiting:
            approvals.resolve(id, "allowed", "the test's operator")
        return len(waiting)
    finally:
        state.close()


def refusal(connection: psycopg.Connection, text: str) -> psycopg.errors.Diagnostic:
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
        connection.execute(text.encode())
    return refused.value.diag


def test_a_confirmation_counts_for_one_statement_which_a_person_must_approve(
    server: WireServer,
) -> None:
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("INSERT INTO sale VALUES (1, 1, 1), (2, 1, 5)")
        told = refusal(connection, DELETE)
        assert CONFIRM in str(told.message_hint)
        connection.execute(CONFIRM)
        assert "approve" in str(refusal(connection, DELETE).message_primary)
        assert allow_all(server) == 1
        assert CONFIRM in str(refusal(connection, DELETE).message_hint)
        assert server.rows("SELECT count(*) FROM sale") == [(2,)]
        connection.execute(CONFIRM)
        assert connection.execute(DELETE).rowcount == 2
        assert CONFIRM in str(refusal(connection, DELETE).message_hint)
    assert server.rows("SELECT count(*) FROM sale") == [(0,)]


@pytest.mark.parametrize("end", ["RESET tidegate.confirm", "DISCARD ALL", "SELECT 1"])
def test_a_confirmation_ends_with_the_next_statement_or_with_a_reset(
    server: WireServer, end: str
) -> None:
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(CONFIRM)
        try:
            connection.execute(end)
        except psycopg.Error as error:  # it needs none, and says so
            assert "confirmation" in str(error)
        assert CONFIRM in str(refusal(connection, DELETE).message_hint)


def test_only_the_exact_phrase_confirms(server: WireServer) -> None:
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        for wrong in ("on", PHRASE.lower(), f"{PHRASE}."):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match=PHRASE):
                connection.execute(f"SET tidegate.confirm = '{wrong}'".encode())
        assert CONFIRM in str(refusal(connection, DELETE).message_hint)
