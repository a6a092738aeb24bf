"""What PostgreSQL's clients write and ask, on a source of cloud providers."""

from __future__ import annotations

import psycopg
import pytest

from products.pgwire.contract.test_catalogs import shown
from support.cloud_surface import Desk
from support.wire_server import WireServer

pytestmark = pytest.mark.needs("cloud")


def test_spellings_of_postgresql_are_read(server: WireServer):
    with psycopg.connect(server.conninfo("cloud"), autocommit=True) as gate:
        rows = gate.execute(
            "SELECT id::int + 1, title::varchar(40), now()::text > '2000', open::boolean"
            ' FROM cloud."desk.tickets".tickets'
            " WHERE team = 'red'::text AND title ILIKE 'PRINTER%' AND id::int < now()::date::int"
        ).fetchall()
        assert rows == [(2, "Printer | on fire", 1, 1)]
        again = gate.execute(
            "SELECT id::int FROM desk.tickets.tickets WHERE team = %s AND title NOT ILIKE %s",
            ("red", "line%"),
        ).fetchall()
        assert again == [(1,)]
        with gate.cursor().copy(
            "COPY (SELECT id::int, title FROM \"desk.tickets\".tickets WHERE team = 'red'"
            " AND title ILIKE 'print%') TO STDOUT"
        ) as copy:
            assert list(copy.rows()) == [("1", "Printer | on fire")]
        gate.execute("BEGIN")
        gate.execute(
            'DECLARE c CURSOR FOR SELECT id::int FROM "desk.tickets".tickets'
            " WHERE team = 'red' ORDER BY 1"
        )
        assert gate.execute("FETCH ALL FROM c").fetchall() == [(1,), (2,)]
        gate.execute("COMMIT")


def test_a_change_is_judged_as_it_is_written_for_the_source(server: WireServer, desk: Desk):
    """A cast around the text of a change hides nothing of it from the gate."""
    before = list(desk.writes)
    with psycopg.connect(server.conninfo("cloud", "reader"), autocommit=True) as gate:
        for text in (
            "DELETE FROM desk.tickets.tickets WHERE team = 'red'::text AND id::int = 1",
            "DELETE FROM cloud.\"desk.tickets\".tickets WHERE team = 'red' AND id = '1'",
            "SELECT 1::int; DELETE FROM desk.tickets.tickets WHERE team = 'red' AND id = '1'",
        ):
            with pytest.raises(psycopg.Error) as caught:
                gate.execute(text)
            assert caught.value.sqlstate == "42501", text
    assert desk.writes == before


def test_parameters_that_a_resource_needs_are_named_in_its_comments(server: WireServer):
    described = shown(server, r'\d+ "desk.tickets".tickets', database="cloud")
    (line,) = [each for each in described.splitlines() if each.strip().startswith("team")]
    assert "Required by every SELECT: name it in WHERE." in line


def test_a_description_sends_no_request_and_what_lacks_fails_when_it_runs(
    server: WireServer, desk: Desk
):
    text = b"SELECT id, title FROM desk.tickets.tickets WHERE team = $1 AND id = $2"
    with psycopg.connect(server.conninfo("cloud"), autocommit=True) as gate:
        before = len(desk.requests)
        prepared = gate.pgconn.prepare(b"one", text)
        described = gate.pgconn.describe_prepared(b"one")
        assert not prepared.error_message
        assert [described.fname(at) for at in range(described.nfields)] == [b"id", b"title"]
        assert len(desk.requests) == before
        found = gate.pgconn.exec_prepared(b"one", [b"red", b"2"])
        assert found.get_value(0, 1) == b"Line one\nline two"
        gate.pgconn.prepare(b"two", b"SELECT id FROM desk.tickets.tickets WHERE title = $1")
        before = len(desk.requests)
        lacking = gate.pgconn.exec_prepared(b"two", [b"x"])
        assert b"missing required parameters" in lacking.error_message
        assert len(desk.requests) == before
