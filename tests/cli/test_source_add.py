"""`tidegate source add` and `update`: what can never work is refused, what does not work now is
saved on demand alone, and a password that is typed is seen by no one."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.command_line import Ended, environment, tidegate
from support.free_ports import claim_port
from support.terminal import terminal

Run = Callable[..., Ended]
SECRET = postgres_server.PASSWORD


@pytest.fixture(scope="module")
def server() -> postgres_server.Server:
    return postgres_server.shared("wheel")


@pytest.fixture
def name(server: postgres_server.Server) -> str:
    database = server.new_database()
    server.ask(
        "CREATE TABLE towns (id int PRIMARY KEY); INSERT INTO towns VALUES (1), (2)", database
    )
    return database


def url(server: postgres_server.Server, name: str, password: str = "") -> str:
    """By TCP, where the server wants a password."""
    return f"postgresql://postgres{password}@127.0.0.1:{server.port}/{name}"


def saved(run: Run) -> list[str]:
    return [entry["url"] for entry in run("source", "list", "--json").json["sources"]]


def everything_in(state: Path) -> bytes:
    """All that the state directory holds but the passwords themselves."""
    files = [
        path for path in state.rglob("*") if path.is_file() and path.parent.name != "passwords"
    ]
    return b"".join(path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("postgresql://me:${env:PW}@db/x", "${ENV:PW}"),
        ("postgresql://me:${PW}@db/x", "${ENV:PW}"),
        ("postgresql://me:${VAULT:shop/pw}@db/x", "${VAULT:shop/pw}"),
        ("postgresql://me:${ENV:}@db/x", "names no secret"),
        ("postgresql://me:${COMMAND:pass show x}@db/x", '${COMMAND:["pass","show","x"]}'),
        ("postgresql://me:${ENV:PW@db/x", "has no `}`"),
        ("postgresql://me@127.0.0.1:1/x?sslmod=require", "`sslmode`"),
        ("postgresql://me@127.0.0.1:1/x?sslmode=requir", "sslmode"),
        ("postgresql://me@127.0.0.1:99999/x", "99999"),
        ("postgresql://me@127.0.0.1:port/x", "port"),
        ("postgresql://me@[::1/x", "cannot be read"),
        ("mysql://me@127.0.0.1:99999/x", "port"),
        ("mysql://me@127.0.0.1:1/x?tsl=off", "`tls`"),
        ("postgrse://me@db/x", "`postgres"),
    ],
)
@pytest.mark.parametrize("words", [(), ("--anyway",)])
def test_a_source_that_can_never_work_is_refused(
    run: Run, text: str, said: str, words: tuple[str, ...]
) -> None:
    refused = run("source", "add", "shop", text, *words)
    assert refused.status in (66, 78), refused.err
    assert said in refused.err and "Traceback" not in refused.err
    assert saved(run) == []


@pytest.mark.needs("duckdb")
def test_a_file_of_rows_is_not_taken_for_a_database(run: Run, tmp_path: Path) -> None:
    import duckdb

    rows, lines = tmp_path / "rows.parquet", tmp_path / "rows.csv"
    duckdb.sql(f"COPY (SELECT 1 AS a) TO '{rows}' (FORMAT parquet)")
    lines.write_text("a,b\n1,2\n3,4\n5,6\n")
    refused = run("source", "add", "rows", f"duckdb:///{rows}", "--anyway")
    assert refused.status == 66
    assert "a Parquet file, not a DuckDB database" in refused.err and str(rows) in refused.err
    assert run("source", "add", "rows", f"duckdb:///{lines}", "--anyway").status == 66
    assert saved(run) == []


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_a_file_that_is_no_database_is_refused_as_a_url_to_correct(
    run: Run, tmp_path: Path, scheme: str
) -> None:
    letter = tmp_path / "letter.db"
    letter.write_text("Dear Sir or Madam, " * 100)
    refused = run("source", "add", "letter", f"{scheme}:///{letter}", "--anyway")
    assert refused.status == 66
    assert "not a " in refused.err and "database" in refused.err
    assert saved(run) == []
    assert letter.read_text() == "Dear Sir or Madam, " * 100


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_server_that_is_down_is_named_and_added_on_demand_alone(run: Run, scheme: str) -> None:
    text = f"{scheme}://me@127.0.0.1:{claim_port()}/shop"
    place = text.partition("@")[2].partition("/")[0]
    refused = run("source", "add", "shop", text)
    assert refused.status == 69
    assert place in refused.err and "Connection refused" in refused.err
    assert "was not added" in refused.err and "--anyway" in refused.err
    assert saved(run) == []
    added = run("source", "add", "shop", text, "--anyway")
    assert added.status == 0 and "does not work now" in added.err and place in added.err
    assert saved(run) == [text]


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_host_without_an_address_is_named(run: Run, scheme: str) -> None:
    refused = run("source", "add", "shop", f"{scheme}://me@gone.invalid/shop")
    assert refused.status == 69
    assert "gone.invalid" in refused.err and "no address is known" in refused.err
    assert saved(run) == []


def test_a_variable_that_is_not_set_is_named(run: Run, server: postgres_server.Server) -> None:
    text = server.tcp_url().replace("PGTEST_PASSWORD", "NO_SUCH_VARIABLE")
    refused = run("source", "add", "shop", text)
    assert refused.status == 66 and "`NO_SUCH_VARIABLE` is not set" in refused.err
    assert saved(run) == []
    assert run("source", "add", "shop", text, "--anyway").status == 0
    assert saved(run) == [text]


@pytest.mark.needs("mysql")
def test_a_missing_driver_is_named_with_the_command_that_installs_it(
    state: Path, tmp_path: Path
) -> None:
    (tmp_path / "asyncmy.py").write_text("raise ModuleNotFoundError(name='asyncmy')")
    words = ("source", "add", "shop", "mysql://me@127.0.0.1/shop")
    import subprocess

    ended = subprocess.run(
        [sys.executable, "-m", "tidegate", *words],
        capture_output=True, text=True, check=False,
        env={**environment(state), "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert ended.returncode == 69
    assert f"{sys.prefix}/bin/python -m pip install" in ended.stderr and "mysql" in ended.stderr


def test_a_password_is_asked_for_and_kept_where_no_one_else_reads_it(
    run: Run, state: Path, server: postgres_server.Server, name: str
) -> None:
    with terminal(("source", "add", "shop", url(server, name)), state) as screen:
        screen.until(f"Password of postgres at 127.0.0.1:{server.port}: ")
        screen.type("wrong")
        screen.until("password authentication failed")
        screen.until("Password of")
        screen.type(SECRET)
        assert screen.end() == 0, screen.said
        assert "added shop" in screen.said
        assert SECRET not in screen.said and "wrong" not in screen.said
    (text,) = saved(run)
    (kept,) = (state / "passwords").iterdir()
    assert text == url(server, name, f":${{FILE:{kept}}}")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert run("query", "shop", "SELECT count(*) AS n FROM towns", "--json").json["rows"] == [[2]]
    assert SECRET.encode() not in everything_in(state)
    assert SECRET not in run("source", "list", "--json").out + run("audit", "tail", "--json").out
    assert run("source", "remove", "shop").status == 0
    assert list((state / "passwords").iterdir()) == []


def test_a_wrong_password_saves_nothing(
    run: Run, state: Path, server: postgres_server.Server, name: str
) -> None:
    refused = run(
        "source", "add", "shop", url(server, name), "--password-stdin", stdin="not-the-one\n"
    )
    assert refused.status == 69 and "password authentication failed" in refused.err
    assert "not-the-one" not in refused.err
    with terminal(("source", "add", "shop", url(server, name)), state) as screen:
        for _ in range(3):
            screen.until("Password of")
            screen.type("not-the-one")
        assert screen.end() == 69
        assert "was not added" in screen.said
    assert saved(run) == [] and not any((state / "passwords").glob("*"))
    assert b"not-the-one" not in everything_in(state)


def test_a_password_comes_on_standard_input_too(
    run: Run, state: Path, server: postgres_server.Server, name: str
) -> None:
    words = ("source", "add", "shop", url(server, name), "--password-stdin")
    assert run(*words, stdin=SECRET + "\n").status == 0
    assert run("query", "shop", "SELECT 1").status == 0
    assert run("source", "add", "shop", "sqlite://", "--password-stdin", stdin="x\n").status == 2


def test_a_server_that_wants_a_password_says_so_where_no_one_can_be_asked(
    run: Run, server: postgres_server.Server, name: str
) -> None:
    refused = run("source", "add", "shop", url(server, name))
    assert refused.status == 69 and "no password supplied" in refused.err
    assert "--password-stdin" in refused.err
    assert saved(run) == []


def test_a_new_password_takes_the_place_of_the_old_one(
    run: Run, state: Path, server: postgres_server.Server, name: str
) -> None:
    server.ask("DROP ROLE IF EXISTS clerk; CREATE ROLE clerk LOGIN PASSWORD 'first'")
    text = url(server, name).replace("postgres@", "clerk@")
    assert run("source", "add", "shop", text, "--password-stdin", stdin="first\n").status == 0
    before = saved(run)
    server.ask("ALTER ROLE clerk PASSWORD 'second'")
    words = ("source", "update", "shop", "--password-stdin")
    refused = run(*words, stdin="third\n")
    assert refused.status == 69 and "Nothing was changed" in refused.err
    assert saved(run) == before
    assert run(*words, stdin="second\n").status == 0
    (kept,) = (state / "passwords").iterdir()
    assert kept.read_text() == "second"
    assert run("query", "shop", "SELECT 1").status == 0


@pytest.mark.needs("mysql")
def test_the_password_of_mysql_is_asked_for_as_well(run: Run, state: Path) -> None:
    server = mysql_server.shared()
    server.script("CREATE OR REPLACE USER clerk IDENTIFIED BY 'sesame'")
    text = f"mysql://clerk@127.0.0.1:{server.port}/"
    with terminal(("source", "add", "shop", text), state) as screen:
        screen.until("Password of clerk")
        screen.type("sesame")
        assert screen.end() == 0, screen.said
    assert run("query", "shop", "SELECT 1").status == 0


def test_a_process_list_never_shows_the_password(
    state: Path, server: postgres_server.Server, name: str
) -> None:
    with terminal(("source", "add", "shop", url(server, name)), state) as screen:
        screen.until("Password of")
        screen.type(SECRET)
        screen.until("added shop")
        folder = Path("/proc") / str(screen.process.pid)
        if os.path.exists(folder):
            assert SECRET.encode() not in (folder / "cmdline").read_bytes()
        assert screen.end() == 0
    assert tidegate("source", "test", "shop", state=state).status == 0


def test_a_password_that_is_still_named_is_kept(
    run: Run, state: Path, server: postgres_server.Server, name: str
) -> None:
    words = ("source", "add", "shop", url(server, name), "--password-stdin")
    assert run(*words, stdin=SECRET + "\n").status == 0
    (text,) = saved(run)
    assert run("source", "update", "shop", "--url", f"{text}?connect_timeout=3").status == 0
    assert run("source", "add", "same", text).status == 0
    assert run("source", "remove", "shop").status == 0
    assert run("query", "same", "SELECT 1").status == 0
    assert run("source", "remove", "same").status == 0
    assert list((state / "passwords").iterdir()) == []
