"""SHOW ALL, COPY TO STDOUT, switches of a start-up message, psql's commands and open cursors, as at
PostgreSQL itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import psycopg
import pytest

from support.eventually import HANG_S
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer

LATE = "timestamptz '2024-01-31 23:30:00+00'"
OF_CONNECTION = {
    "application_name", "client_encoding", "client_connection_check_interval", "DateStyle",
    "default_transaction_read_only", "extra_float_digits", "search_path", "TimeZone", "jit",
    "backslash_quote", "transaction_read_only", "transaction_isolation", "row_security",
    "log_timezone",
}  # fmt: skip
"""What our connection sets for itself, or the account of the test has otherwise."""


def test_show_all_has_the_settings_and_descriptions_of_postgresql(
    server: WireServer, postgres: PostgresShop
):
    found: list[dict[str, tuple[str, str]]] = []
    for info in (postgres.server.conninfo(postgres.database), server.conninfo("pg")):
        with psycopg.connect(info, autocommit=True) as connection:
            cursor = connection.execute("SHOW ALL")
            assert [each.name for each in cursor.description or ()] == [
                "name", "setting", "description",
            ]  # fmt: skip
            rows = cursor.fetchall()
            assert [name for name, _, _ in rows] == sorted([row[0] for row in rows], key=str.lower)
            found.append({name: (value, meaning) for name, value, meaning in rows})
    direct, gate = found
    assert direct.keys() <= gate.keys()
    assert {name: gate[name][1] for name in direct} == {name: direct[name][1] for name in direct}
    same = direct.keys() - OF_CONNECTION
    assert {name: gate[name] for name in same} == {name: direct[name] for name in same}


def test_show_all_of_another_source_has_three_columns(server: WireServer):
    with psycopg.connect(server.conninfo("lite"), autocommit=True) as gate:
        assert ("timezone", "UTC", "") in gate.execute("SHOW ALL").fetchall()


COPIES = [
    "COPY kinds (id, code) TO STDOUT DELIMITER ';' NULL 'n'",
    "COPY kinds (id, code) TO STDOUT WITH DELIMITER AS ';' NULL AS 'n' CSV HEADER",
    "COPY (SELECT NULL, '', 'a,b', E'x\\ny') TO STDOUT CSV",
    "COPY (SELECT NULL, '', 'a,b', E'x\\ny\\\\') TO STDOUT",
    "COPY (SELECT NULL, 'n', '') TO STDOUT CSV NULL 'n'",
    "COPY (SELECT 1/0) TO STDOUT",
    "COPY nowhere TO STDOUT",
    "COPY (VALUES (1, 2)) TO STDOUT (FORMAT csv, HEADER)",
    "COPY (SELECT 1, 'x'::text, NULL::int) TO STDOUT (FORMAT binary)",
    "COPY (SELECT FROM kinds WHERE id < 3) TO STDOUT",
]
OTHERS = [
    "COPY kinds TO STDOUT (FORMAT csv, FORCE_QUOTE *)",
    "COPY kinds TO STDOUT (FORMAT csv, QUOTE '''')",
    "COPY kinds TO STDOUT CSV QUOTE AS 'q'",
    "COPY kinds TO STDOUT (ENCODING 'LATIN1')",
]


def copied(connection: psycopg.Connection[Any], text: str) -> Any:
    try:
        with connection.cursor().copy(text) as copy:  # type: ignore[arg-type]
            return b"".join(bytes(part) for part in copy)
    except psycopg.Error as error:
        return error.sqlstate


def test_copies_are_those_of_postgresql(server: WireServer, postgres: PostgresShop):
    with (
        psycopg.connect(postgres.server.conninfo(postgres.database), autocommit=True) as direct,
        psycopg.connect(server.conninfo("pg"), autocommit=True) as gate,
    ):
        for text in COPIES:
            assert copied(gate, text) == copied(direct, text), text
        for text in OTHERS:
            assert copied(gate, text) == "0A000", text


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ("-c work_mem=77MB", "cannot be '77MB' here"),
        ("-c nonsense=1", 'unrecognized configuration parameter "nonsense"'),
        ("-c client_min_messages=bogus", 'Invalid value for parameter "client_min_messages"'),
        ("-c statement_timeout=5parsecs", "no time limit"),
        ("-c geqo=off", 'The parameter "geqo" cannot be'),
        ("-c DateStyle=German", "ISO format"),
        ("-s", "is not supported here"),
        ("-c", "is not supported here"),
        ("-cnope", "is not supported here"),
        ("-F", "is not supported here"),
        ("-c app.tenant=7", "cannot be set here"),
    ],
)
def test_a_switch_that_is_not_applied_ends_the_login_with_the_reason(
    server: WireServer, options: str, state: str
):
    with pytest.raises(psycopg.OperationalError, match=state):
        psycopg.connect(server.conninfo("pg"), options=options)


def test_a_cursor_is_not_read_on_under_other_settings(server: WireServer):
    with psycopg.connect(server.conninfo("pg")) as gate:
        rows = f"SELECT i, {LATE}::date::text FROM generate_series(1, 9) AS i"
        gate.execute(f"DECLARE c CURSOR FOR {rows}".encode())
        assert gate.execute("FETCH 1 FROM c").fetchall() == [(1, "2024-01-31")]
        gate.execute("SAVEPOINT s")
        gate.execute("SET TimeZone = 'Asia/Tokyo'")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="begin it again"):
            gate.execute("FETCH 1 FROM c")
        gate.execute("ROLLBACK TO s")
        assert gate.execute("FETCH 1 FROM c").fetchall() == [(2, "2024-01-31")]
        gate.execute("SET TimeZone = 'Asia/Tokyo'")
        gate.execute("CLOSE c")
        gate.execute(f"DECLARE c CURSOR FOR {rows}".encode())
        assert gate.execute("FETCH 1 FROM c").fetchall() == [(1, "2024-02-01")]


PSQL = [
    "\\d", "\\d+", "\\dt", "\\dt+", "\\di+", "\\dv", "\\dm", "\\ds", "\\df", "\\df+", "\\dn",
    "\\dn+", "\\d kinds", "\\d+ kinds", "\\d sale", "\\d+ item", "\\dT", "\\dD", "\\du", "\\dp",
    "\\dx", "\\dc", "\\da", "\\dL", "\\dF", "\\dd", "\\dP", "\\dy", "\\dl", "\\dconfig work_mem",
    "\\encoding", "\\d nowhere", "\\dt *.item", "\\copy (SELECT id FROM item) TO STDOUT CSV",
]  # fmt: skip


def test_the_commands_of_psql_print_what_they_print_at_postgresql(
    server: WireServer, postgres: PostgresShop
):
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("needs psql (the package postgresql-client)")
    words = [part for each in PSQL for part in ("-c", each)]
    printed: list[str] = []
    for info in (postgres.server.conninfo(postgres.database), server.conninfo("pg")):
        done = subprocess.run(
            [psql, "-X", "-A", "-d", info, *words],
            capture_output=True, text=True, timeout=HANG_S, check=False, env=dict(os.environ),
        )  # fmt: skip
        printed.append(done.stdout + done.stderr)
    assert printed[1] == printed[0]
    assert len(printed[0]) > 5_000
