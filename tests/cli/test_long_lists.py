"""Lists of 10,000 sources, tokens and approvals, and the status of a server with as many."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import Run
from support.command_line import serving
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.model.actors import Scope
from tidegate.model.sources import Source
from tidegate.store.records import TokenRights

MANY = 10_000


def fill(state: Path, add: Callable[[App], None]) -> None:
    app = App.open(Config(state=str(state)))
    try:
        add(app)
    finally:
        app.tokens.close()
        app.audit.close()
        app.state.close()


@pytest.fixture
def many_sources(state: Path) -> None:
    def add(app: App) -> None:
        sources = app.state.sources
        rest = "url, engine, dialect, access, agents, approval_for, tags, rules"
        sources.add(Source("id-first", "first", "sqlite:////x", "sqlite", "sqlite"))
        with sources._rights.changing() as connection:
            connection.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                f" INSERT INTO sources (id, name, {rest}) SELECT 'id' || i, printf('s%05d', i),"
                f" {rest} FROM sources, n",
                (MANY - 1,),
            )

    fill(state, add)


@pytest.mark.usefixtures("many_sources")
def test_a_list_of_sources_is_cut_with_a_note_and_can_be_searched(run: Run) -> None:
    listed = run("source", "list")
    assert listed.status == 0 and listed.out.count("\n") == 202
    assert f"200 of {MANY} sources" in listed.err and "--limit" in listed.err
    assert run("source", "list", "--limit", str(MANY)).out.count("\n") == MANY + 2
    found = run("source", "list", "--like", "S0998")
    assert found.out.count("\n") == 12 and found.err == ""
    assert len(run("source", "list", "--json").json["sources"]) == MANY
    assert len(run("source", "list", "--json", "--limit", "3").json["sources"]) == 3
    none = run("source", "list", "--like", "nothing")
    assert (none.status, none.out) == (0, "") and "no source" in none.err


@pytest.mark.usefixtures("many_sources")
def test_the_status_of_a_server_names_some_sources_and_counts_the_others(
    run: Run, state: Path
) -> None:
    with serving(["serve", "--http", "127.0.0.1:0"], state) as server:
        server.until("serving")
        status = run("status")
        assert status.status == 0, status.err
        assert status.out.count("\nsource") == 100
        assert f"and {MANY - 100} further sources" in status.out
        assert run("status", "--json").json["source_count"] == MANY


def test_a_list_of_tokens_is_cut_with_a_note(run: Run, state: Path) -> None:
    def add(app: App) -> None:
        app.tokens.create("first", TokenRights(Scope.READ_ONLY))
        with app.state.sources._rights.changing() as connection:
            connection.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                " INSERT INTO tokens (id, name, prefix, digest, scope, created_at)"
                " SELECT 'tok_' || i, printf('t%05d', i), prefix, randomblob(32), scope, created_at"
                " FROM tokens, n",
                (MANY - 1,),
            )

    fill(state, add)
    listed = run("token", "list")
    assert listed.status == 0 and listed.out.count("\n") == 202
    assert f"200 of {MANY} tokens" in listed.err
    assert run("token", "list", "--like", "t0999").out.count("\n") == 12
    assert len(run("token", "list", "--json").json["tokens"]) == MANY
