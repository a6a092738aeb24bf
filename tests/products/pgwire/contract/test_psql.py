"""psql, the program, on the wire protocol."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import mysql_server
from support.cloud_surface import Desk
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
        ("SELEC 1", "42601"),
        ("PREPARE p AS SELECT 1", "42501"),
        ("SELECT $1", "42P02"),
        ("COPY (SELECT $2) TO STDOUT", "42P02"),
        ("COPY item TO STDOUT (FORMAT parquet)", "22023"),
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


def processor_s(server: WireServer) -> float:
    """Seconds that the threads of the server, and of processes that it has started, have run."""
    own = Path(f"/proc/{server.process.process.pid}/task")
    children = {pid for each in own.glob("*/children") for pid in each.read_text().split()}
    files = [*own.glob("*/schedstat")]
    files += [each for pid in children for each in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(each.read_text().split()[0]) for each in files) / 1e9


ENDLESS = {
    "lite": "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9e15)"
    " SELECT count(*) FROM n",
    "duck": "SELECT count(*) FROM range(10000000) a, range(10000000) b"
    " WHERE (a.range + b.range) % 7 = 3",
}


@pytest.mark.parametrize("source", ENDLESS)
def test_control_c_ends_a_statement_that_runs_in_the_server(server: WireServer, source: str):
    """It takes processor time until then, and none afterwards."""
    before = processor_s(server)
    with endless_psql(server, source, ENDLESS[source]) as process:
        wait_until(lambda: processor_s(server) > before + 1, "a running statement")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=HANG_S)
    assert "57014" in said

    taken: list[float] = []

    def rests() -> bool:
        taken.append(processor_s(server))
        return len(taken) > 10 and taken[-1] - taken[-10] < 0.05

    wait_until(rests, "the end of the statement")
    assert psql(server, *commands("SELECT count(*) FROM item"), database=source).stdout == "3\n"


def test_control_c_ends_a_statement_in_mariadb(server: WireServer, needs_mariadb: None):
    endless = (
        "SELECT count(*) AS endless_for_psql FROM information_schema.columns a,"
        " information_schema.columns b, information_schema.columns c"
    )
    running = (
        "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%endless_for_psql%'"
        " AND id <> connection_id()"
    )

    def count() -> int:
        return int(mysql_server.shared().script(running)[0][0])

    with endless_psql(server, "maria", endless) as process:
        wait_until(count, "a running statement")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=HANG_S)
    assert "57014" in said
    wait_until(lambda: not count(), "the end of the statement")


def test_control_c_ends_a_statement_that_waits_for_a_provider(server: WireServer, desk: Desk):
    desk.hold.clear()
    desk.arrived.clear()
    try:
        text = "SELECT id FROM desk.tickets.tickets WHERE team = 'waiting'"
        with endless_psql(server, "cloud", text) as process:
            assert desk.arrived.wait(HANG_S)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=HANG_S)
        assert "57014" in said
    finally:
        desk.hold.set()


@contextmanager
def endless_psql(server: WireServer, source: str, text: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        ["psql", "-X", "-v", "VERBOSITY=verbose", "-c", text, server.conninfo(source)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


ITEMS = "SELECT id, name, price, made FROM item ORDER BY id"
TICKETS = "SELECT id, title FROM desk.tickets.tickets WHERE team = 'red' ORDER BY id"


@pytest.mark.parametrize(
    ("source", "table", "text", "first"),
    [
        ("pg", "item", ITEMS, "1|boots|79.50|2026-01-02"),
        ("lite", "item", ITEMS, "1|boots|79.5|2026-01-02"),
        ("duck", "item", ITEMS, "1|boots|79.50|2026-01-02"),
        ("maria", "item", ITEMS, "1|boots|79.50|2026-01-02"),
        ("cloud", '"desk.tickets".tickets', TICKETS, "1|Printer | on fire"),
    ],
)
def test_psql_reads_lists_describes_and_copies_on_every_kind_of_source(
    server: WireServer,
    source: str,
    table: str,
    text: str,
    first: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    asked = psql(server, *commands(text), database=source)
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.splitlines()[0] == first
    name = table.rpartition(".")[2]
    for command in (rf"\dt {table}", rf"\d {table}", rf"\d+ {table}"):
        shown = psql(server, *commands(command), database=source)
        assert shown.returncode == 0, shown.stderr
        assert (name if command.startswith(r"\dt") else "id|") in shown.stdout, shown.stdout
    gdesc = psql(server, given=f"{text} \\gdesc\n", database=source)
    assert gdesc.stdout.splitlines()[0].startswith("id|"), gdesc.stderr
    file = tmp_path / "rows.csv"
    copied = psql(server, *commands(rf"\copy ({text}) to '{file}' csv header"), database=source)
    assert copied.returncode == 0, copied.stderr
    assert len(file.read_text().splitlines()) >= 3
    wrong = psql(server, *commands("SELECT nope FROM nothing"), database=source)
    assert wrong.returncode == 1
    assert "ERROR:  " in wrong.stderr


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
