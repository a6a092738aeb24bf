"""psql, the program, on the wire protocol."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess

import pytest

from support.eventually import HANG_S, wait_until
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer

pytestmark = pytest.mark.skipif(
    shutil.which("psql") is None, reason="needs psql (the package postgresql-client)"
)


def psql(
    server: WireServer,
    *words: str,
    database: str = "shop",
    user: str = "writer",
    password: str = "",
    given: str = "",
) -> subprocess.CompletedProcess[str]:
    command = ["psql", "-X", "-A", "-t", "-v", "VERBOSITY=verbose"]
    command += ["-h", "127.0.0.1", "-p", str(server.port), "-U", user, "-d", database, *words]
    secret = password or server.secrets.get(user, "none")
    return subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=HANG_S, check=False,
        env={**os.environ, "PGPASSWORD": secret},
    )  # fmt: skip


def commands(*texts: str) -> list[str]:
    return [word for text in texts for word in ("-c", text)]


def test_a_query_shows_rows_nulls_and_the_types_of_expressions(server: WireServer):
    found = psql(server, *commands("SELECT id, name, price FROM item ORDER BY id"))
    assert found.stdout == "1|boots|79.5\n2|hat|\n3|it's|3.0\n", found.stderr
    assert psql(server, *commands("SELECT count(*), 1.5, 'x' FROM item")).stdout == "3|1.5|x\n"


def test_several_statements_of_one_text_run_in_order_and_give_their_results(server: WireServer):
    found = psql(server, *commands("SELECT 1; SELECT ';' ; -- no\nSELECT 2"))
    assert found.stdout == "1\n;\n2\n", found.stderr


def test_psql_without_a_language_reads_utf8(server: WireServer):
    words = ["psql", "-X", "-A", "-t", "-c", "SHOW client_encoding", "-c", "SELECT 'ü'"]
    found = subprocess.run(
        [*words, server.conninfo()], capture_output=True, timeout=HANG_S, check=False,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", "PGCLIENTENCODING": "SQL_ASCII"},
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (0, "UTF8\nü\n".encode()), found.stderr


def test_two_changes_in_one_text_are_refused_before_the_first_runs(server: WireServer):
    first = "INSERT INTO item VALUES (50, 'a', 1, NULL)"
    second = "INSERT INTO item VALUES (51, 'b', 1, NULL)"
    for text in (f"{first}; {second}", f"{first}; COPY ({second} RETURNING id) TO STDOUT"):
        found = psql(server, *commands(text))
        assert found.returncode == 1
        assert "0A000" in found.stderr
    assert server.rows("SELECT count(*) FROM item WHERE id >= 50") == [(0,)]


def test_a_refused_statement_in_a_text_keeps_the_others_from_running(server: WireServer):
    refused = "ATTACH DATABASE '/tmp/x' AS x"
    for last in (refused, f"COPY ({refused}) TO STDOUT"):
        found = psql(server, *commands(f"INSERT INTO item VALUES (52, 'a', 1, NULL); {last}"))
        assert "42501" in found.stderr, found.stderr
    assert server.rows("SELECT count(*) FROM item WHERE id = 52") == [(0,)]


def test_a_change_commits_and_its_tag_says_how_many_rows(server: WireServer):
    made = psql(server, *commands("INSERT INTO item VALUES (60, 'x', 1, NULL) RETURNING id"))
    assert made.stdout == "60\nINSERT 0 1\n", made.stderr
    assert server.rows("SELECT name FROM item WHERE id = 60") == [("x",)]
    gone = psql(server, *commands("DELETE FROM item WHERE id = 60"))
    assert gone.stdout == "DELETE 1\n", gone.stderr


def test_a_token_for_reading_changes_nothing(server: WireServer):
    found = psql(server, *commands("DELETE FROM item WHERE id = 1"), user="reader")
    assert "42501" in found.stderr or "25006" in found.stderr, found.stderr
    assert server.rows("SELECT count(*) FROM item WHERE id = 1") == [(1,)]


def test_a_table_is_not_made_in_a_block_and_what_came_before_ends_with_it(server: WireServer):
    script = (
        "BEGIN;\nSELECT 1;\nINSERT INTO item VALUES (61, 'x', 1, NULL);\n"
        "CREATE TABLE more (id INTEGER);\nSELECT 2;\nCOMMIT;\nSELECT 3;\n"
    )
    found = psql(server, given=script)
    assert found.stdout == "BEGIN\n1\nINSERT 0 1\nROLLBACK\n3\n", found.stderr
    assert "0A000" in found.stderr
    assert "25P02" in found.stderr
    assert server.rows("SELECT count(*) FROM item WHERE id = 61") == [(0,)]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("SELECT nope FROM item", "42"),
        ("SELEC 1", "42"),
        ("SET no_such_thing = 1", "42704"),
        ("SHOW no_such_thing", "42704"),
        ("SET client_encoding = 'LATIN1'", "22023"),
        ("FETCH 1 FROM nothing", "34000"),
        ("COPY item FROM STDIN", "42"),
    ],
)
def test_an_error_has_a_state_a_code_of_ours_and_a_hint(server: WireServer, text: str, state: str):
    found = psql(server, *commands(text), database="pg" if "thing" in text else "shop")
    assert found.returncode == 1
    assert f"ERROR:  {state}" in found.stderr, found.stderr
    assert "DETAIL:" in found.stderr
    assert "HINT:" in found.stderr


def test_the_database_is_a_source_and_the_user_a_token(server: WireServer):
    wrong = psql(server, "-c", "SELECT 1", database="nothing")
    assert "nothing" in wrong.stderr
    assert "shop" in wrong.stderr
    refused = psql(server, "-c", "SELECT 1", password="tg_wrong")
    unknown = psql(server, "-c", "SELECT 1", user="nobody-here")
    for each in (refused, unknown):
        assert each.returncode == 2
        assert "The token's name or its secret is wrong." in each.stderr


def test_copy_writes_csv_and_text(server: WireServer):
    text = "COPY (SELECT id, name, price FROM item ORDER BY id) TO STDOUT (FORMAT csv, HEADER)"
    assert (
        psql(server, *commands(text)).stdout == "id,name,price\n1,boots,79.5\n2,hat,\n3,it's,3.0\n"
    )
    plain = psql(server, *commands("COPY item (id, price) TO STDOUT"))
    assert plain.stdout == "1\t79.5\n2\t\\N\n3\t3.0\n", plain.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (r"\sf nothing", "not emulated: the oid of a function"),
        (r"\sv nothing", 'The relation "nothing" does not exist'),
        (r"\password", "the password is a token"),
        ("SHOW nothing", 'Unrecognized configuration parameter "nothing"'),
        (r"\copy item from /dev/null", "Send rows by INSERT"),
    ],
)
def test_what_psql_asks_in_vain_is_refused_in_words(server: WireServer, command: str, said: str):
    found = psql(server, *commands(command))
    assert found.returncode == 1
    assert said in found.stderr


def test_columns_are_described_without_a_run(server: WireServer):
    for given, shown in (
        (r"SELECT id, name FROM item \gdesc", "id|bigint\nname|text\n"),
        (r"SELECT 1 AS x \gdesc", "x|text\n"),
    ):
        assert psql(server, given=given).stdout == shown


def test_databases_are_listed_with_their_sizes(server: WireServer):
    found = psql(server, *commands(r"\l+"))
    assert "shop|writer|UTF8" in found.stdout, found.stderr


@pytest.mark.parametrize("command", [r"\d kinds", r"\dt", r"\di", r"\dn", r"\d+ kinds"])
def test_commands_of_psql_show_a_postgresql_source(server: WireServer, command: str):
    found = psql(server, "-c", command, database="pg")
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip()


def test_control_c_ends_the_statement_in_the_source(server: WireServer, postgres: PostgresShop):
    endless = "SELECT count(*) FROM generate_series(1, 1000000000000)"
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%{}%'"
    running = running.format("generate_series(1, 10000000" + "00000)")
    process = subprocess.Popen(
        ["psql", "-X", "-v", "VERBOSITY=verbose", "-c", endless, server.conninfo("pg")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_until(
            lambda: postgres.ask(running)[0][0] > 1, "a running statement"
        )  # the question itself is one
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=HANG_S)
    finally:
        process.kill()
        process.wait()
    assert "57014" in said
    wait_until(lambda: postgres.ask(running)[0][0] == 1, "the end of the statement")
