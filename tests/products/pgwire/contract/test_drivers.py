"""psycopg and asyncpg on the wire protocol: values as PostgreSQL itself gives them, pipelines,
cursors, parameters."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg import pq

from support.postgres_surface import PostgresShop
from support.wire_server import WireServer


def reached(value: Any) -> Any:
    """What can be compared: NaN is not equal to itself."""
    if isinstance(value, (float, Decimal)) and value != value:
        return "NaN"
    return value


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopg_reads_what_postgresql_itself_gives(
    server: WireServer, postgres: PostgresShop, binary: bool
):
    direct = psycopg.connect(postgres.server.conninfo(postgres.database))
    gate = psycopg.connect(server.conninfo("pg"), autocommit=True)
    with direct, gate:
        text = "SELECT * FROM kinds WHERE id <= 40 ORDER BY id"  # psycopg reads no infinite times
        expected = direct.execute(text, binary=binary)
        found = gate.execute(text, binary=binary)
        assert found.fetchall() == expected.fetchall()
        types = [(each.name, each.type_code) for each in expected.description or ()]
        assert [(each.name, each.type_code) for each in found.description or ()] == types
        rest = "SELECT amount, ratio FROM kinds WHERE id > 40 ORDER BY id"
        rows = [list(map(reached, row)) for row in gate.execute(rest, binary=binary)]
        assert rows == [list(map(reached, row)) for row in direct.execute(rest, binary=binary)]


async def test_asyncpg_reads_what_postgresql_itself_gives(
    server: WireServer, postgres: PostgresShop
):
    direct = await asyncpg.connect(
        host=str(postgres.server.directory), port=postgres.server.port, user="postgres",
        database=postgres.database,
    )  # fmt: skip
    gate = await asyncpg.connect(
        host="127.0.0.1", port=server.port, user="writer", password=server.secrets["writer"],
        database="pg",
    )  # fmt: skip
    try:
        text = "SELECT * FROM kinds WHERE id <= $1 OR code = ANY($2::text[]) ORDER BY id"
        expected = await direct.fetch(text, 30, ["n40", None])
        assert await gate.fetch(text, 30, ["n40", None]) == expected
        ends = "SELECT at FROM kinds WHERE id IN (41, 42) ORDER BY id"
        assert await gate.fetch(ends) == await direct.fetch(ends)
        async with gate.transaction(readonly=True):
            seen = [row["id"] async for row in gate.cursor("SELECT id FROM kinds", prefetch=7)]
        assert len(seen) == 44
        made = "INSERT INTO kinds (id, code) VALUES ($1, $2) RETURNING id, code"
        assert tuple(await gate.fetchrow(made, 900, "x")) == (900, "x")
        assert await gate.execute("DELETE FROM kinds WHERE id = $1", 900) == "DELETE 1"
        with pytest.raises(asyncpg.UndefinedColumnError):
            await gate.fetch("SELECT nope FROM kinds")
        await gate.reset()
        assert await gate.fetchval("SELECT count(*) FROM kinds") == 44
    finally:
        await direct.close()
        await gate.close()


def test_parameters_of_every_driver_type_reach_a_source_without_types(server: WireServer):
    with psycopg.connect(server.conninfo(), autocommit=True) as gate:
        row = gate.execute(
            "SELECT %s, %s, %s, %s, %s", (7, 2.5, "it's", None, b"\0\xff")
        ).fetchone()
        assert row == (7, 2.5, "it's", None, b"\0\xff")
        found = gate.execute("SELECT id FROM item WHERE id = %s AND name = %s", (1, "boots"))
        assert found.fetchall() == [(1,)]
        again = [gate.execute("SELECT %s", (n,), prepare=True).fetchone() for n in range(7)]
        assert again == [(n,) for n in range(7)]


def test_a_pipeline_gives_each_result_and_an_error_spoils_only_what_follows(server: WireServer):
    with psycopg.connect(server.conninfo(), autocommit=True) as gate:
        with gate.pipeline():
            first, second = gate.execute("SELECT 1"), gate.execute("SELECT %s", (2,))
            assert (first.fetchone(), second.fetchone()) == ((1,), (2,))
        with pytest.raises(psycopg.errors.UndefinedColumn), gate.pipeline():
            gate.execute("SELECT nope FROM item")
            gate.execute("SELECT 1")
        assert gate.execute("SELECT 3").fetchone() == (3,)


def test_a_cursor_of_the_server_gives_rows_in_parts(server: WireServer):
    with psycopg.connect(server.conninfo("pg")) as gate, gate.cursor(name="some") as cursor:
        cursor.itersize = 7
        cursor.execute("SELECT id FROM kinds ORDER BY id")
        assert [row[0] for row in cursor] == list(range(1, 45))


def test_a_block_that_a_driver_opens_by_itself_is_kept_by_its_commit(server: WireServer):
    made = "INSERT INTO item (id, name) VALUES (%s, 'made')"
    with psycopg.connect(server.conninfo()) as gate:
        assert gate.execute("SELECT count(*) FROM item").fetchone() == (3,)
        gate.execute(made, (90,))
        with pytest.raises(psycopg.Error, match="UNIQUE"), gate.transaction():
            gate.execute(made, (91,))
            gate.execute(made, (90,))
        assert gate.execute("SELECT count(*) FROM item").fetchone() == (4,)
        assert server.rows("SELECT count(*) FROM item") == [(3,)]
        gate.commit()
        assert server.rows("SELECT id FROM item WHERE id >= 90") == [(90,)]
        gate.execute("DELETE FROM item WHERE id = 90")
        gate.rollback()
        gate.read_only = True
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            gate.execute("DELETE FROM item WHERE id = 90")
        gate.rollback()
        gate.read_only = None
        gate.execute("DELETE FROM item WHERE id = 90")
    assert server.rows("SELECT count(*) FROM item") == [(3,)]


def test_copy_out_streams_to_a_driver(server: WireServer):
    text = "COPY (SELECT id, name FROM item ORDER BY id) TO STDOUT"
    with (
        psycopg.connect(server.conninfo(), autocommit=True) as gate,
        gate.cursor().copy(text) as copy,
    ):
        assert list(copy.rows()) == [("1", "boots"), ("2", "hat"), ("3", "it's")]


@pytest.mark.parametrize(
    ("source", "types"),
    [
        ("pg", ["int4", "varchar", "numeric", "date"]),
        ("lite", ["int8", "text", "numeric", "date"]),
        ("duck", ["int8", "text", "numeric", "date"]),
        ("maria", ["int8", "text", "numeric", "date"]),
    ],
)
def test_copy_out_in_binary_has_the_types_that_the_query_is_described_with(
    server: WireServer, source: str, types: list[str], request: pytest.FixtureRequest
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    text = "SELECT id, name, price, made FROM item ORDER BY id"
    with psycopg.connect(server.conninfo(source), autocommit=True) as gate:
        described = gate.execute(text).description or ()
        assert [gate.adapters.types[each.type_code].name for each in described] == types
        with gate.cursor().copy(f"COPY ({text}) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(types)
            rows = list(copy.rows())
        assert rows == [
            (1, "boots", Decimal("79.5"), date(2026, 1, 2)),
            (2, "hat", None, None),
            (3, "it's", Decimal("3.25"), date(2026, 3, 4)),
        ]


def test_copy_out_in_binary_is_what_postgresql_itself_sends(
    server: WireServer, postgres: PostgresShop
):
    asked = "COPY (SELECT * FROM kinds ORDER BY id) TO STDOUT (FORMAT binary)"

    def sent(connection: psycopg.Connection) -> bytes:
        with connection.cursor().copy(asked) as copy:
            return b"".join(copy)

    with (
        psycopg.connect(server.conninfo("pg"), autocommit=True) as gate,
        psycopg.connect(postgres.server.conninfo(postgres.database), autocommit=True) as direct,
    ):
        assert sent(gate) == sent(direct)
        with gate.cursor().copy("COPY (SELECT id FROM kinds WHERE false) TO STDOUT BINARY") as copy:
            assert b"".join(copy) == b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\xff\xff"


def test_settings_are_reported_noted_and_reset(server: WireServer):
    notes: list[str] = []
    with psycopg.connect(server.conninfo(), autocommit=True) as gate:
        gate.add_notice_handler(lambda note: notes.append(note.sqlstate or ""))
        gate.execute("COMMIT")
        assert notes == ["25P01"]
        assert gate.info.parameter_status("TimeZone") == "UTC"
        gate.execute("SET application_name = 'tests'")
        assert gate.info.parameter_status("application_name") == "tests"
        gate.execute("SET statement_timeout = '90s'")
        assert gate.execute("SHOW statement_timeout").fetchone() == ("90s",)
        gate.execute("DISCARD ALL")
        assert gate.execute("SHOW statement_timeout").fetchone() == ("0",)


async def test_asyncpg_gives_numbers_to_a_source_without_types_by_casts(server: WireServer):
    gate = await asyncpg.connect(
        host="127.0.0.1", port=server.port, user="writer", password=server.secrets["writer"],
        database="shop",
    )  # fmt: skip
    try:
        asked = "SELECT name FROM item WHERE id = $1::int8 AND price < $2::float8 AND name = $3"
        assert await gate.fetchval(asked, 1, 80.5, "boots") == "boots"
        kinds = "SELECT typeof($1::int4), typeof($2::bool), typeof($3::float8), typeof($4)"
        row = await gate.fetchrow(kinds, 7, True, 2.5, "7")
        assert tuple(row) == ("integer", "integer", "real", "text")
        assert await gate.fetchval("SELECT $1::int8 + 1", 2**40) == str(2**40 + 1)  # untyped
    finally:
        await gate.close()


def test_a_text_that_is_cast_reaches_a_source_without_types_as_what_it_is_cast_to(
    server: WireServer,
):
    with psycopg.connect(server.conninfo(), autocommit=True) as gate:
        raw = gate.pgconn
        for declared in (0, 25, 1043):
            for form in (pq.Format.TEXT, pq.Format.BINARY):
                if form and not declared:
                    continue
                found = raw.exec_params(b"SELECT typeof($1::int8)", [b"7"], [declared], [form])
                assert found.get_value(0, 0) == b"integer"
        found = raw.exec_params(b"SELECT typeof($1::int8)", [b"seven"], [25])
        assert found.error_field(pq.DiagnosticField.SQLSTATE) == b"22P02"


OTHERS = {
    "lite": ("SELECT name FROM item WHERE id = {}", 1, "int8", "boots"),
    "duck": ("SELECT name FROM item WHERE id = {}", 1, "int8", "boots"),
    "maria": ("SELECT name FROM item WHERE id = {}", 1, "int8", "boots"),
    "cloud": (
        "SELECT title FROM desk.tickets.tickets WHERE team = 'red' AND id = {}",
        "2", "text", "Line one\nline two",
    ),
}  # fmt: skip
"""A query, the value of its parameter, its type, and what it gives."""


@pytest.mark.parametrize("source", OTHERS)
async def test_psycopg_and_asyncpg_send_parameters_to_each_kind_of_source(
    server: WireServer, source: str, request: pytest.FixtureRequest
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    text, value, kind, found = OTHERS[source]
    with psycopg.connect(server.conninfo(source), autocommit=True) as gate:
        for binary in (False, True):
            cursor = gate.execute(text.format("%s"), (value,), binary=binary, prepare=binary)
            assert cursor.fetchall() == [(found,)]
    gate = await asyncpg.connect(
        host="127.0.0.1", port=server.port, user="writer", password=server.secrets["writer"],
        database=source,
    )  # fmt: skip
    try:
        assert await gate.fetchval(text.format(f"$1::{kind}"), value) == found
        assert await gate.fetchval(text.format(f"$1::{kind}"), value) == found
    finally:
        await gate.close()
