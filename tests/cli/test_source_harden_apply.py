"""`tidegate source harden --apply`: makes the account on a real server with an administrator's
login, and the source gets it only if it works."""

from __future__ import annotations

import json
import os
from pathlib import Path

import psycopg
import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from cli.conftest import Run
from cli.test_source_harden import BINARIES, OFFER, REFUSED_ON_POSTGRES, role_of
from support.server_keeper import PASSWORD
from support.terminal import Terminal, terminal
from tidegate.sources.report import place_of

ON_MYSQL = pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")
VARIABLE = "ADMINISTRATOR_PASSWORD"
REFERENCE = f"${{ENV:{VARIABLE}}}"


def administrator() -> str:
    """An account of MariaDB that may make others."""
    server = mysql_server.shared()
    server.script(
        f"CREATE USER IF NOT EXISTS 'chief'@'%' IDENTIFIED BY '{PASSWORD}';"
        "GRANT ALL ON *.* TO 'chief'@'%' WITH GRANT OPTION"
    )
    return "chief"


def harden(state: Path, *words: str, variables: dict[str, str] | None = None):
    words = ("source", "harden", "shop", "--apply", *words)
    return terminal(words, state, variables={VARIABLE: PASSWORD, **(variables or {})})


def agree(person: Terminal) -> None:
    person.until("Type harden to agree: ")
    person.type("harden")


def url_of(run: Run) -> str:
    (entry,) = run("source", "list", "--json").json["sources"]
    return entry["url"]


def kept(state: Path) -> list[Path]:
    folder = state / "passwords"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def everything_written(state: Path) -> str:
    files = [path for path in state.rglob("*") if path.is_file() and "passwords" not in path.parts]
    return "\n".join(path.read_bytes().decode("latin-1") for path in files)


@pytest.fixture
def shop(run: Run, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """A PostgreSQL database and a role that owns its tables, saved as a source with a password."""
    monkeypatch.setenv("PGTEST_PASSWORD", PASSWORD)
    server = postgres_server.shared(request.param)
    name = server.new_database()
    server.ask(OFFER, name)
    saved = run("source", "add", "shop", server.tcp_url(name))
    assert saved.status == 0, saved.err
    return server, name


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://ana:${FILE:/var/lib/passwords/shop}@db:5433/shop", "db:5433"),
        ("mysql://ana:${FILE:/what?/shop}@db/shop?timeout=3", "db:3306"),
        ("postgresql:///shop?host=/tmp", "this machine"),
        ("postgresql://ana:p@hidden@db/shop", "the server"),
    ],
)
def test_the_place_of_a_source_is_its_host_whatever_refers_to_its_password(
    url: str, place: str
) -> None:
    assert place_of(url) == place


@pytest.mark.parametrize("shop", BINARIES, indirect=True)
def test_the_login_is_asked_for_and_the_source_gets_a_role_that_only_reads(
    run: Run, state: Path, shop
) -> None:
    server, name = shop
    role = role_of(name)
    with harden(state, "--role", role) as person:
        person.until("Administrator's account at 127.0.0.1")
        person.type("postgres")
        person.until("Password of postgres at 127.0.0.1")
        person.type(PASSWORD)
        person.until(f"make the account {role}")
        agree(person)
        status = person.end()
    said = person.said
    assert status == 0, said
    assert PASSWORD not in said and "tables          3" in said and "risk" not in said
    (file,) = kept(state)
    password = file.read_text()
    assert password not in said and str(file) in url_of(run) and f"//{role}:" in url_of(run)
    assert run("query", "shop", "SELECT name FROM towns").status == 0
    for text in REFUSED_ON_POSTGRES[:6]:
        with psycopg.connect(
            f"host=127.0.0.1 port={server.port} dbname={name} user={role} password={password}",
            autocommit=True,
        ) as connection:
            connection.execute("SET default_transaction_read_only = off")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(text)
    # What is written down names the administrator and holds no password.
    written = everything_written(state)
    assert PASSWORD not in written and password not in written
    files = sorted((state / "audit").glob("*.jsonl"))
    events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    (made,) = [event for event in events if event.get("name") == "source.hardened"]
    assert made["details"]["account"] == role and made["details"]["by"] == "postgres"


@pytest.mark.parametrize("shop", BINARIES, indirect=True)
def test_a_reference_gives_the_login_and_a_second_run_changes_nothing_but_rights(
    run: Run, state: Path, shop
) -> None:
    server, name = shop
    role = role_of(name)
    url = f"postgresql://postgres:{REFERENCE}@127.0.0.1:{server.port}/{name}"
    with harden(state, "--role", role, "--admin-url", url) as person:
        agree(person)
        assert person.end() == 0, person.said
    before, files = url_of(run), kept(state)
    server.ask(f"GRANT ALL ON towns TO {role}", name)
    with harden(state, "--role", role, "--admin-url", url) as person:
        agree(person)
        assert person.end() == 0, person.said
    assert (url_of(run), kept(state)) == (before, files)
    assert not server.ask(
        f"SELECT 1 FROM pg_class WHERE relname = 'towns' AND has_table_privilege('{role}', oid,"
        " 'INSERT')",
        name,
    )


@pytest.mark.parametrize("shop", BINARIES, indirect=True)
@pytest.mark.parametrize(
    "case", ["not agreed", "wrong password", "no right", "taken", "no login", "fails in the end"]
)
def test_a_failure_leaves_the_old_login_and_no_account(
    run: Run, state: Path, shop, case: str
) -> None:
    server, name = shop
    role = role_of(name)
    before, digest = url_of(run), None
    login, password, words = "postgres", PASSWORD, ()
    if case == "wrong password":
        password = "wrong"
    elif case == "no right":
        login = f"{role}_small"
        server.ask(f"CREATE ROLE {login} LOGIN PASSWORD '{PASSWORD}'", name)
    elif case == "taken":
        server.ask(f"CREATE ROLE {role} LOGIN PASSWORD 'of another'", name)
    elif case == "no login":
        # The account is made, and the server does not let it in.
        server.ask(f"ALTER DATABASE {name} CONNECTION LIMIT 0", name)
    elif case == "fails in the end":
        words = ("--schema", "public", "--schema", "not_there")
    url = f"postgresql://{login}:{REFERENCE}@127.0.0.1:{server.port}/{name}"
    digest = server.ask("SELECT rolname, rolpassword FROM pg_authid ORDER BY 1", name)
    with harden(
        state, "--role", role, "--admin-url", url, *words, variables={VARIABLE: password}
    ) as person:
        if case == "not agreed":
            person.until("agree: ")
            person.type("no")
        else:
            agree(person)
        assert person.end() != 0
    server.ask(f"ALTER DATABASE {name} CONNECTION LIMIT -1", name)
    assert "Traceback" not in person.said and PASSWORD not in person.said
    assert url_of(run) == before
    assert run("query", "shop", "SELECT name FROM towns").status == 0
    after = server.ask("SELECT rolname, rolpassword FROM pg_authid ORDER BY 1", name)
    if case == "no login":
        assert "keeps the one it has" in person.said and len(kept(state)) == 1
        assert server.ask(f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'", name)
    else:
        assert after == digest and kept(state) == []


@ON_MYSQL
def test_the_source_gets_an_account_of_mariadb_that_only_reads(
    run: Run, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYTEST_PASSWORD", PASSWORD)
    server = mysql_server.shared()
    name = server.new_database()
    server.script("CREATE TABLE towns (id INT PRIMARY KEY, name VARCHAR(20))", name)
    role = role_of(name)
    assert run("source", "add", "shop", server.tcp_url(name), "--access", "write").status == 0
    with harden(state, "--role", role) as person:
        person.until("Administrator's account at 127.0.0.1")
        person.type(administrator())
        person.until("Password of chief at 127.0.0.1")
        person.type(PASSWORD)
        person.until("changes will fail")
        agree(person)
        assert person.end() == 0, person.said
    (file,) = kept(state)
    assert str(file) in url_of(run) and f"//{role}:" in url_of(run)
    assert file.read_text() not in person.said + everything_written(state)
    assert run("query", "shop", "SELECT name FROM towns").status == 0
    with pytest.raises(Exception, match="denied"):
        server.script("INSERT INTO towns VALUES (1, 'x')", name, role)


@ON_MYSQL
@pytest.mark.parametrize("case", ["no right", "taken"])
def test_a_failure_on_mariadb_leaves_the_old_login(
    run: Run, state: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setenv("MYTEST_PASSWORD", PASSWORD)
    server = mysql_server.shared()
    name = server.new_database()
    server.script("CREATE TABLE towns (id INT PRIMARY KEY)", name)
    role = role_of(name)
    small = f"{role}_small"
    server.script(
        f"CREATE USER '{small}'@'%' IDENTIFIED BY '{PASSWORD}';"
        f"GRANT CREATE USER ON *.* TO '{small}'@'%'"
    )
    if case == "taken":
        server.script(f"CREATE USER '{role}'@'%' IDENTIFIED BY 'of another'")
    assert run("source", "add", "shop", server.tcp_url(name)).status == 0
    before = url_of(run)
    login = small if case == "no right" else administrator()
    url = f"mariadb://{login}:{REFERENCE}@127.0.0.1:{server.port}/"
    with harden(state, "--role", role, "--admin-url", url) as person:
        agree(person)
        assert person.end() != 0
    assert "Traceback" not in person.said
    assert url_of(run) == before and run("query", "shop", "SELECT * FROM towns").status == 0
    if case == "taken":
        assert "already an account" in person.said and kept(state) == []
    else:
        # The account without rights is left, and its password, so that a second run goes on.
        assert "statements before it have run" in person.said and len(kept(state)) == 1
        again = url.replace(small, administrator())
        with harden(state, "--role", role, "--admin-url", again) as person:
            agree(person)
            assert person.end() == 0, person.said


def test_what_cannot_be_applied_is_refused_before_anything_is_asked(
    run: Run, state: Path, towns: Path, tmp_path: Path
) -> None:
    refused = run("source", "harden", "towns", "--apply")
    assert refused.status != 0 and "operating system" in refused.err
    settings = tmp_path / "tidegate.toml"
    settings.write_text('[[sources]]\nname = "set"\nurl = "postgresql://u@127.0.0.1:1/x"\n')
    settings.chmod(0o600)
    refused = run("source", "harden", "set", "--apply", "--config", str(settings))
    assert refused.status == 2 and str(settings) in refused.err


@pytest.mark.parametrize("shop", BINARIES[:1], indirect=True)
def test_without_a_terminal_a_login_and_consent_are_missing(run: Run, state: Path, shop) -> None:
    server, name = shop
    role = role_of(name)
    words = ("source", "harden", "shop", "--apply", "--role", role)
    refused = run(*words, stdin="")
    assert refused.status == 2 and "--admin-url" in refused.err
    literal = run(*words, "--admin-url", f"postgresql://postgres:{PASSWORD}@127.0.0.1/x", stdin="")
    assert literal.status != 0 and PASSWORD not in literal.err and "literal" in literal.err
    url = f"postgresql://postgres:{REFERENCE}@127.0.0.1:{server.port}/{name}"
    unasked = run(*words, "--admin-url", url, stdin="")
    assert unasked.status != 0 and "person must agree" in unasked.err
    assert not server.ask(f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'", name)
    assert kept(state) == [] and os.environ["PGTEST_PASSWORD"] == PASSWORD
