"""TRIALS D7: what the command line says of a failed connection names host, port, user, cause."""

from __future__ import annotations

from pathlib import Path

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from cli.conftest import Run
from support.free_ports import claim_port
from support.server_keeper import PASSWORD

USES = (
    ("query", "shop", "SELECT 1"),
    ("tables", "shop"),
    ("source", "test", "shop"),
    ("source", "harden", "shop"),
)


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SHOP_PASSWORD", f"not {PASSWORD}")
    return "${ENV:SHOP_PASSWORD}"


def said(run: Run, url: str) -> list[str]:
    """What each command says of a source that cannot be used."""
    assert run("source", "add", "shop", url, "--anyway").status == 0
    ends = [run(*words) for words in USES]
    assert all(end.status == 69 and end.out == "" for end in ends), ends
    return [end.err for end in ends]


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_server_that_is_not_there_is_named_by_host_and_port(run: Run, scheme: str) -> None:
    port = claim_port()
    for text in said(run, f"{scheme}://ann@127.0.0.1:{port}/shop"):
        assert f"127.0.0.1:{port}: " in text and "refused" in text and "login" not in text
        assert "`tidegate source update shop`" in text


@pytest.mark.parametrize("kind", sorted(postgres_server.available()))
@pytest.mark.parametrize("user", ["postgres", "no_such_role"])
def test_postgresql_refuses_the_login_of_a_user(run: Run, wrong: str, kind: str, user: str) -> None:
    port = postgres_server.shared(kind).port
    for text in said(run, f"postgresql://{user}:{wrong}@127.0.0.1:{port}/postgres"):
        assert f"127.0.0.1:{port}, user {user}: PostgreSQL refused the login" in text
        assert "password authentication failed" in text and "cannot be reached" not in text
        assert "`tidegate source update shop --ask-password`" in text
        assert PASSWORD not in text


@pytest.mark.parametrize("kind", sorted(postgres_server.available()))
def test_a_role_that_is_not_there_is_a_refused_login(run: Run, kind: str) -> None:
    server = postgres_server.shared(kind)
    for text in said(run, server.url(user="no_such_role")):
        assert "this machine, user no_such_role: PostgreSQL refused the login" in text


@pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")
def test_mariadb_refuses_the_login_of_a_user(run: Run, wrong: str) -> None:
    port = mysql_server.shared().port
    for text in said(run, f"mariadb://word:{wrong}@127.0.0.1:{port}/mysql"):
        assert f"127.0.0.1:{port}, user word: The server refused the login" in text
        assert PASSWORD not in text


def test_a_file_that_may_not_be_read_is_named(run: Run, tmp_path: Path, towns: Path) -> None:
    towns.unlink()
    ended = run("query", "towns", "SELECT 1")
    assert ended.status != 0 and towns.name in ended.err
