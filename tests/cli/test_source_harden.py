"""`tidegate source harden`: what it prints is run on real servers, and the account that comes of it
can read and do nothing else; and `tidegate source test`, which says what an account could do."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
from pathlib import Path

import duckdb
import psycopg
import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from cli.conftest import Run
from support.server_keeper import PASSWORD

ON_MYSQL = pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")
BINARIES = sorted(postgres_server.available())
OFFER = (
    "CREATE TABLE towns (id int PRIMARY KEY, name text); INSERT INTO towns VALUES (1, 'Köln');"
    "CREATE TABLE log (id int);"
    "CREATE VIEW seen AS SELECT name FROM towns;"
    "CREATE FUNCTION note_it() RETURNS int LANGUAGE sql SECURITY DEFINER"
    " AS 'INSERT INTO log VALUES (1) RETURNING 1';"
    "CREATE PROCEDURE clear_it() LANGUAGE sql AS 'DELETE FROM log';"
    "CREATE SCHEMA sales; CREATE TABLE sales.orders (id int); INSERT INTO sales.orders VALUES (7);"
)
REFUSED_ON_POSTGRES = [
    "INSERT INTO towns VALUES (2, 'x')",
    "UPDATE towns SET name = 'x'",
    "DELETE FROM sales.orders",
    "TRUNCATE towns",
    "DROP TABLE towns",
    "CREATE TABLE public.mine (a int)",
    "CREATE TABLE sales.mine (a int)",
    "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE SCHEMA mine",
    "SELECT note_it()",
    "CALL clear_it()",
    "SELECT later()",
    "SELECT pg_read_file('/etc/passwd')",
    "COPY towns TO '/tmp/tidegate-should-not-be'",
    "COPY towns FROM PROGRAM 'id'",
    "SELECT pg_ls_dir('/')",
    "CREATE ROLE mine",
    "SET ROLE postgres",
    "ALTER ROLE {role} SUPERUSER",
]


@pytest.fixture
def offered(run: Run, request: pytest.FixtureRequest):
    """A PostgreSQL database, saved as a source with its superuser's account."""
    server = postgres_server.shared(request.param)
    name = server.new_database()
    server.ask(OFFER, name)
    assert run("source", "add", "shop", server.url(name)).status == 0
    return server, name


def risks(run: Run, source: str) -> str:
    tested = run("source", "test", source, "--json")
    assert tested.status == 0, tested.err
    return "\n".join(f"{each['could']} | {each['remedy']}" for each in tested.json["risks"])


def role_of(name: str) -> str:
    return f"reader_{re.sub(r'[^0-9]', '', name)}"


@pytest.mark.parametrize("offered", BINARIES, indirect=True)
def test_the_role_of_postgresql_can_read_and_do_nothing_else(run: Run, offered) -> None:
    server, name = offered
    role = role_of(name)
    server.ask(f"CREATE ROLE {role}_app LOGIN; GRANT USAGE ON SCHEMA public TO {role}_app", name)
    printed = run("source", "harden", "shop", "--role", role)
    assert printed.status == 0, printed.err
    assert not server.ask(f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'", name)
    for _ in range(2):  # a second run finds all in place
        server.ask(printed.out, name)
    server.ask(
        "CREATE TABLE public.newer (a int); INSERT INTO newer VALUES (5);"
        "CREATE FUNCTION later() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        name,
    )
    for text, rows in (
        ("SELECT name FROM towns", [("Köln",)]),
        ("SELECT name FROM seen", [("Köln",)]),
        ("SELECT id FROM sales.orders", [(7,)]),
        ("SELECT a FROM newer", [(5,)]),
        ("SHOW default_transaction_read_only", [("on",)]),
        ("SHOW temp_file_limit", [("1GB",)]),
        ("SHOW statement_timeout", [("2min",)]),
    ):
        assert server.ask(text, name, role) == rows
    for text in REFUSED_ON_POSTGRES:
        with psycopg.connect(server.conninfo(name, role), autocommit=True) as connection:
            # It may, so that setting is no fence.
            connection.execute("SET default_transaction_read_only = off")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(text.format(role=role))
    assert server.ask("SELECT count(*) FROM log", name) == [(0,)]
    # Others keep what they could.
    assert server.ask("SELECT note_it()", name, f"{role}_app") == [(1,)]


@pytest.mark.parametrize("offered", BINARIES, indirect=True)
def test_the_printed_role_has_the_kept_password_and_the_source_takes_it(
    run: Run, offered, state: Path
) -> None:
    server, name = offered
    role = role_of(name)
    first = run("source", "harden", "shop", "--role", role)
    again = run("source", "harden", "shop", "--role", role)
    (kept,) = (state / "passwords").iterdir()
    password = kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0
    for printed in (first, again):
        assert password not in printed.out + printed.err and str(kept) in printed.err
    server.ask(first.out, name)
    with psycopg.connect(
        f"host=127.0.0.1 port={server.port} dbname={name} user={role} password={password}"
    ) as connection:
        assert connection.execute("SELECT name FROM towns").fetchall() == [("Köln",)]
    (command,) = re.findall(r"source update shop --url '([^']+)'", first.err)
    updated = run("source", "update", "shop", "--url", command)
    assert updated.status == 0, updated.err
    assert run("query", "shop", "SELECT name FROM towns").status == 0
    left = risks(run, "shop")
    assert left == ""
    # Once the source has it, a further run leaves its password alone.
    assert "PASSWORD" not in run("source", "harden", "shop", "--role", role).out


@pytest.mark.parametrize("offered", BINARIES, indirect=True)
def test_a_role_with_too_many_rights_is_cut_back(run: Run, offered) -> None:
    server, name = offered
    role = role_of(name)
    server.ask(
        f"CREATE ROLE {role} LOGIN CREATEROLE; GRANT ALL ON towns TO {role};"
        f"GRANT EXECUTE ON FUNCTION note_it() TO {role}; GRANT CREATE ON SCHEMA public TO {role}",
        name,
    )
    server.ask(run("source", "harden", "shop", "--role", role).out, name)
    for text in REFUSED_ON_POSTGRES[:10]:
        with psycopg.connect(server.conninfo(name, role), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(text)


@pytest.mark.parametrize("offered", BINARIES, indirect=True)
def test_source_test_says_what_an_account_of_postgresql_could_do(run: Run, offered) -> None:
    server, name = offered
    role = role_of(name)
    assert "superuser" in risks(run, "shop") and "source harden shop" in risks(run, "shop")
    server.ask(
        f"CREATE ROLE {role} LOGIN CREATEROLE CREATEDB; GRANT pg_read_server_files TO {role};"
        f"GRANT pg_execute_server_program TO {role}; GRANT INSERT ON towns TO {role};"
        f"GRANT CREATE ON SCHEMA sales TO {role}; GRANT SELECT ON towns TO {role}",
        name,
    )
    run("source", "add", "wide", server.url(name, role))
    said = risks(run, "wide")
    for word in (
        *("CREATEROLE", "CREATEDB", "read files of the server", "run programs on the server"),
        *("could change 1 table |", "execute 2 functions", "1 run with the rights of their owner"),
        *("could create tables", "temp_file_limit", "tidegate source harden wide"),
    ):
        assert word in said, word
    assert "superuser:" not in said
    shown = run("source", "test", "wide").out
    assert "risk " in shown and "to do: tidegate source harden wide" in shown


# MariaDB.

REFUSED_ON_MARIADB = [
    "INSERT INTO towns VALUES (2, 'x')",
    "UPDATE towns SET name = 'x'",
    "DELETE FROM towns",
    "DROP TABLE towns",
    "CREATE TABLE mine (a INT)",
    "SELECT noted()",
    "CALL clear_it()",
    "SELECT * FROM towns INTO OUTFILE '/tmp/tidegate-should-not-be'",
    "CREATE USER mine",
    "SET GLOBAL general_log = 1",
    "SELECT * FROM mysql.user",
    "SELECT * FROM {other}.vault",
    "GRANT SELECT ON towns TO mine",
]


@ON_MYSQL
def test_the_account_of_mariadb_can_read_and_do_nothing_else(
    run: Run, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYTEST_PASSWORD", PASSWORD)
    server = mysql_server.shared()
    name, other = server.new_database(), server.new_database()
    # The `_` of one name must not stand for any letter in a grant.
    lookalike = name.replace("_", "x")
    server.script(f"CREATE DATABASE {lookalike}; CREATE TABLE {lookalike}.vault (a INT)")
    server.script("CREATE TABLE vault (a INT)", other)
    server.script(
        "CREATE TABLE towns (id INT PRIMARY KEY, name VARCHAR(20)); INSERT INTO towns VALUES"
        " (1, 'Koeln'); CREATE TABLE log (id INT);"
        "CREATE FUNCTION noted() RETURNS INT DETERMINISTIC RETURN 1;"
        "CREATE PROCEDURE clear_it() DELETE FROM log",
        name,
    )
    role = role_of(name)
    run("source", "add", "shop", server.tcp_url(name))
    printed = run("source", "harden", "shop", "--role", role)
    assert printed.status == 0, printed.err
    (kept,) = (state / "passwords").iterdir()
    assert kept.read_text() not in printed.out + printed.err
    for _ in range(2):
        server.script(printed.out)
    (command,) = re.findall(r"source update shop --url '([^']+)'", printed.err)
    updated = run("source", "update", "shop", "--url", command)
    assert updated.status == 0, updated.err
    assert run("query", "shop", "SELECT name FROM towns").status == 0
    assert risks(run, "shop") == ""
    text = kept.read_text()
    for statement in [*REFUSED_ON_MARIADB, f"SELECT * FROM {lookalike}.vault"]:
        ended = subprocess.run(
            ["mariadb", f"-u{role}", "-h127.0.0.1", f"-P{server.port}", name, "-e",
             statement.format(other=other)],
            env={**os.environ, "MYSQL_PWD": text}, capture_output=True, text=True, check=False,
            timeout=60,
        )  # fmt: skip
        assert ended.returncode != 0 and "denied" in ended.stderr, (statement, ended.stderr)
    server.script(f"DROP DATABASE {lookalike}")


@ON_MYSQL
def test_source_test_says_what_an_account_of_mariadb_could_do(run: Run) -> None:
    server = mysql_server.shared()
    name = server.new_database()
    server.script("CREATE TABLE towns (id INT PRIMARY KEY)", name)
    role = role_of(name)
    server.script(
        f"CREATE USER '{role}'@'%'; GRANT FILE, PROCESS ON *.* TO '{role}'@'%';"
        f"GRANT SELECT, INSERT, EXECUTE ON {name}.* TO '{role}'@'%' WITH GRANT OPTION"
    )
    run("source", "add", "wide", server.url(name, role))
    said = risks(run, "wide")
    for word in ("FILE on *.*", "read and write files", "INSERT on", "EXECUTE on", "GRANT OPTION",
                 "see the statements of others", "tidegate source harden wide"):  # fmt: skip
        assert word in said, word
    run("source", "add", "root", server.url(name))
    assert "ALL PRIVILEGES on *.*" in risks(run, "root")


# Files.


def test_source_test_says_who_may_write_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as made:
        made.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    made.close()
    file.chmod(0o666)
    run("source", "add", "shop", f"sqlite:///{file}")
    said = risks(run, "shop")
    assert "may write shop.db" in said and "every account of this machine may write" in said
    file.chmod(0o600)
    assert "every account" not in risks(run, "shop")


def test_source_test_says_what_duckdb_could_reach(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "shop.duckdb"
    duckdb.connect(str(file)).close()
    run("source", "add", "shop", f"duckdb:///{file}")
    assert "every file that this account may" in risks(run, "shop")


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_the_commands_for_a_file_leave_it_readable_by_the_gates_account_alone(
    run: Run, tmp_path: Path, engine: str
) -> None:
    file = tmp_path / "with space" / f"shop.{engine}"
    file.parent.mkdir()
    if engine == "sqlite":
        sqlite3.connect(file).executescript("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    else:
        duckdb.connect(str(file)).close()
    run("source", "add", "shop", f"{engine}:///{file}")
    printed = run("source", "harden", "shop", "--role", "nobody")
    assert printed.status == 0, printed.err
    assert "nothing was changed" in printed.err and "--url" not in printed.err
    if os.geteuid() != 0:
        pytest.skip("only root can run what is printed")
    group = "nogroup"
    script = printed.out.replace(":nobody", f":{group}").replace("chgrp nobody", f"chgrp {group}")
    subprocess.run(["/bin/sh", "-ec", script], check=True, timeout=60)
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.stat().st_uid == 0
    assert file.parent.stat().st_mode & 0o027 == 0


def test_a_source_that_is_not_there_and_a_name_that_is_none_are_refused(
    run: Run, towns: Path
) -> None:
    assert run("source", "harden", "nowhere").status == 66
    refused = run("source", "harden", "towns", "--role", "x'; DROP TABLE towns; --")
    assert refused.status == 2 and "no name for an account" in refused.err
