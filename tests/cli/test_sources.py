"""`tidegate source`: what is saved, what is found when it is opened, what is refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.command_line import Ended, tidegate

Run = Callable[..., Ended]


def test_sources_are_added_listed_and_removed(run: Run, database: Path) -> None:
    url = f"sqlite:///{database}"
    assert run("source", "add", "towns", url).status == 0
    (entry,) = run("source", "list", "--json").json["sources"]
    assert entry["name"] == "towns"
    assert entry["url"] == url
    assert (entry["engine"], entry["access"]) == ("sqlite", "read")
    assert "towns" in run("source", "list").out
    assert run("source", "remove", "towns").status == 0
    assert run("source", "list", "--json").json == {"sources": []}
    assert database.exists()


def test_masks_and_filters_are_saved_with_the_source(run: Run, database: Path) -> None:
    added = run(
        "source", "add", "towns", f"sqlite:///{database}", "--mask", "towns.name=hash",
        "--mask", "main.towns.id", "--filter", "towns: id > 1",
    )  # fmt: skip
    assert added.status == 0
    (entry,) = run("source", "list", "--json").json["sources"]
    assert [(mask["column"], mask["show"]) for mask in entry["masks"]] == [
        ("towns.name", "hash"), ("main.towns.id", "nothing"),
    ]  # fmt: skip
    assert [(rule["table"], rule["where"]) for rule in entry["filters"]] == [("towns", "id > 1")]


def test_a_rule_is_given_as_json_with_all_that_it_may_say(run: Run, database: Path) -> None:
    rule = '{"column": "towns.name", "show": "hash", "except_tokens": ["audit"]}'
    assert run("source", "add", "towns", f"sqlite:///{database}", "--mask", rule).status == 0
    (saved,) = run("source", "show", "towns", "--json").json["masks"]
    assert (saved["column"], saved["except_tokens"]) == ("towns.name", ["audit"])
    refused = run("source", "update", "towns", "--mask", '{"colunm": "towns.name"}')
    assert (refused.status, "colunm" in refused.err) == (2, True)


def test_a_color_and_a_group_are_saved_shown_and_taken_away_without_a_question(
    run: Run, towns: Path
) -> None:
    assert run("source", "update", "towns", "--color", "red", "--group", "live").status == 0
    saved = run("source", "show", "towns", "--json").json
    assert (saved["color"], saved["group"]) == ("red", "live")
    assert run("source", "update", "towns", "--color", "auto", "--group", "").status == 0
    saved = run("source", "show", "towns", "--json").json
    assert (saved["color"], saved["group"]) == ("auto", "")
    assert run("source", "update", "towns", "--color", "beige").status == 2
    refused = run("source", "update", "towns", "--group", "a\tb")
    assert (refused.status, "cannot be a group" in refused.err) == (78, True)


UNFIT = [
    (("--mask", "towns.nmae=hash"), "The mask `towns.nmae` names a column"),
    (("--mask", "twons.name=hash"), "names a table that is not there"),
    (("--filter", "twons: id > 1"), "names a table that is not there"),
    (("--filter", "towns: di > 1"), "there is no column `di`"),
]


@pytest.mark.parametrize(("words", "said"), UNFIT)
def test_a_rule_that_closes_the_source_is_named_when_it_is_saved(
    run: Run, database: Path, words: tuple[str, str], said: str
) -> None:
    added = run("source", "add", "towns", f"sqlite:///{database}", *words)
    assert (added.status, said in added.err) == (0, True)
    updated = run("source", "update", "towns", *words, "--mask", "visits.town_id")
    assert (updated.status, said in updated.err, "visits" in updated.err) == (0, True, False)
    assert run("query", "towns", "SELECT id FROM towns").status == 77
    mended = run("source", "update", "towns", "--clear", "filters", "--mask", "towns.name=hash")
    assert "note" not in mended.err


@pytest.mark.parametrize(
    "words",
    [("--mask", "name=hash"), ("--mask", "a.b=shown"), ("--filter", "towns"), ("--filter", ": 1")],
)
def test_a_rule_that_cannot_be_read_saves_no_source(
    run: Run, database: Path, words: tuple[str, str]
) -> None:
    assert run("source", "add", "towns", f"sqlite:///{database}", *words).status == 2
    assert run("source", "list", "--json").json == {"sources": []}


def test_an_update_changes_what_is_given_and_leaves_the_rest(run: Run, database: Path) -> None:
    run("source", "add", "towns", f"sqlite:///{database}", "--mask", "towns.name=hash")
    words = ("--access", "write", "--approval-for", "writes", "--tag", "prod")
    assert run("source", "update", "towns", *words).status == 0
    (entry,) = run("source", "list", "--json").json["sources"]
    assert (entry["access"], entry["approval_for"]) == ("write", "writes")
    assert (entry["tags"], entry["masks"][0]["show"]) == (["prod"], "hash")
    recorded = run("audit", "tail", "--json").out
    assert '"source.added"' in recorded and '"source.changed"' in recorded


@pytest.mark.parametrize(
    "words", [(), ("--url", "sqlite:///gone.db"), ("--approval-for", "loose"), ("--mask", "a")]
)
def test_an_update_that_does_not_fit_changes_nothing(
    run: Run, towns: Path, words: tuple[str, ...]
) -> None:
    before = run("source", "list", "--json").json
    assert run("source", "update", "towns", *words).status != 0
    assert run("source", "update", "twons", "--approval-for", "writes").status == 66
    assert run("source", "list", "--json").json == before


def test_only_answers_are_on_stdout(run: Run, database: Path) -> None:
    added = run("source", "add", "towns", f"sqlite:///{database}")
    assert added.out == "" and "towns" in added.err


def test_a_relative_file_is_saved_as_seen_from_where_it_was_added(
    run: Run, database: Path, tmp_path: Path
) -> None:
    assert run("source", "add", "towns", "sqlite:///small.db", cwd=database.parent).status == 0
    answered = run("query", "towns", "SELECT count(*) FROM towns", "--json", cwd=tmp_path)
    assert answered.json["rows"] == [[3]]


def test_a_name_that_is_taken_is_refused(run: Run, towns: Path) -> None:
    ended = run("source", "add", "towns", f"sqlite:///{towns}")
    assert (ended.status, ended.out) == (2, "")
    assert "towns" in ended.err


@pytest.mark.parametrize(
    ("name", "url", "status"),
    [
        ("to wns", "sqlite:///x.db", 78),
        ("towns", "sqlight:///x.db", 66),
        ("towns", "x.db", 66),
        ("towns", "postgresql://me:secret@localhost/x", 66),
        ("towns", "postgresql://me@db/x?ssh=me:secret@bastion", 66),
    ],
)
def test_an_unfit_name_or_url_is_refused(run: Run, name: str, url: str, status: int) -> None:
    ended = run("source", "add", name, url)
    assert (ended.status, ended.out) == (status, "")
    assert ended.err.count("\n") == 1
    assert "secret@" not in ended.err
    assert run("source", "list", "--json").json == {"sources": []}


def test_removing_an_unknown_source_suggests_the_nearest(run: Run, towns: Path) -> None:
    ended = run("source", "remove", "twons")
    assert (ended.status, ended.out) == (66, "")
    assert "'towns'" in ended.err


def test_a_source_is_tested_by_opening_it(run: Run, towns: Path) -> None:
    ended = run("source", "test", "towns", "--json")
    assert ended.status == 0
    report = ended.json
    assert (report["tables"], report["views"]) == (2, 1)
    assert report["server_version"]
    assert report["latency_ms"] >= 0
    assert [warning for warning in report["warnings"] if "SELECT 1 took" not in warning] == []
    assert "tables" in run("source", "test", "towns").out


def test_an_empty_database_is_tested_with_a_warning(run: Run, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "empty.db")) as connection:
        connection.execute("PRAGMA user_version = 1")
    run("source", "add", "empty", f"sqlite:///{tmp_path / 'empty.db'}")
    report = run("source", "test", "empty", "--json").json
    assert report["tables"] == 0
    assert any("no table" in warning for warning in report["warnings"])


def test_a_missing_file_is_named_not_made_and_not_saved(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "nowhere.db"
    ended = run("source", "add", "lost", f"sqlite:///{path}")
    assert (ended.status, ended.out) == (69, "")
    assert str(path) in ended.err
    assert not path.exists()
    assert "lost" not in run("source", "list").out


@pytest.mark.parametrize("command", [("source", "test"), ("query",)])
def test_a_file_that_went_away_is_named_and_not_made_again(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    path = tmp_path / "brief.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t(id)")
    run("source", "add", "lost", f"sqlite:///{path}")
    path.unlink()
    sql = ("SELECT 1",) if command == ("query",) else ()
    ended = run(*command, "lost", *sql)
    assert (ended.status, ended.out) == (69, "")
    assert str(path) in ended.err
    assert not path.exists()


def test_a_relative_file_is_saved_and_named_by_its_absolute_path(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with closing(sqlite3.connect(tmp_path / "here.db")) as connection:
        connection.execute("CREATE TABLE t(id)")
    tidegate("source", "add", "found", "sqlite:///here.db", state=state, cwd=tmp_path)
    assert tidegate("query", "found", "SELECT 1", state=state).status == 0
    ended = tidegate("source", "add", "lost", "sqlite:///nowhere.db", state=state, cwd=tmp_path)
    assert ended.status == 69
    assert str(tmp_path / "nowhere.db") in ended.err


def test_callers_are_mapped_only_where_the_database_knows_roles(run: Run, database: Path) -> None:
    mapped = ("--run-as-role", "{actor.name}", "--run-as-variable", "app.actor=x=y")
    refused = run("source", "add", "towns", f"sqlite:///{database}", *mapped)
    assert refused.status == 78 and "run_as" in refused.err
    assert run("source", "list", "--json").json == {"sources": []}
    assert (
        run(
            "source", "add", "shop", "postgresql://gate@db.example/shop", *mapped, "--anyway"
        ).status
        == 0
    )
    (entry,) = run("source", "list", "--json").json["sources"]
    assert entry["name"] == "shop"
    bad = run("source", "add", "more", "mysql://gate@db.example/shop", "--run-as-variable", "x")
    assert bad.status == 2 and "NAME=VALUE" in bad.err


SHOP = ("shop", "postgresql://gate@db.example/shop", "--anyway")


def mapping(run: Run) -> dict[str, object]:
    (entry,) = run("source", "list", "--json").json["sources"]
    return entry["run_as"]


def test_callers_are_mapped_to_roles_one_by_one(run: Run) -> None:
    run("token", "create", "alice", "--scope", "readOnly")
    added = run("source", "add", *SHOP, "--run-as", "alice=reader", "--run-as", "alise=b=c")
    assert added.status == 0
    assert "no active token is named alise; did you mean alice?" in added.err
    assert mapping(run) == {
        "role": None, "roles": [["alice", "reader"], ["alise", "b=c"]], "variables": [],
    }  # fmt: skip
    words = ("--run-as", "alise=", "--run-as", "cli=me", "--run-as-variable", "app.actor=x")
    changed = run("source", "update", "shop", *words)
    assert (changed.status, changed.err.count("\n")) == (0, 1)
    assert mapping(run) == {
        "role": None, "roles": [["alice", "reader"], ["cli", "me"]],
        "variables": [["app.actor", "x"]],
    }  # fmt: skip
    assert run("source", "update", "shop", "--run-as-role", "{actor.name}").status == 0
    assert mapping(run)["role"] == "{actor.name}"
    assert mapping(run)["variables"] == [["app.actor", "x"]]


def test_the_last_role_is_not_taken_away_by_the_way(run: Run) -> None:
    """Whoever had a role, or was refused for want of one, would be the account of the URL."""
    variable = ("--run-as-variable", "app.actor=x")
    run("source", "add", *SHOP, "--run-as", "cli=me", *variable)
    refused = run("source", "update", "shop", "--run-as", "cli=")
    assert refused.status == 2
    assert "--clear run-as" in refused.err
    assert run("source", "update", "shop", "--run-as-role", "reader").status == 0
    assert run("source", "update", "shop", "--run-as", "cli=").status == 0
    assert run("source", "update", "shop", "--run-as-role", "").status == 2
    assert mapping(run) == {"role": "reader", "roles": [], "variables": [["app.actor", "x"]]}
    assert run("source", "update", "shop", "--clear", "run-as", *variable).status == 0
    assert mapping(run) == {"role": None, "roles": [], "variables": [["app.actor", "x"]]}


def test_what_was_said_of_a_source_can_be_taken_away(run: Run) -> None:
    words = ("--run-as", "cli=me", "--tag", "eu", "--mask", "a.b", "--filter", "t: x = 1")
    run("source", "add", *SHOP, *words)
    assert run("source", "update", "shop", "--clear", "masks", "--clear", "filters").status == 0
    (entry,) = run("source", "list", "--json").json["sources"]
    assert (entry["masks"], entry["filters"], entry["tags"]) == ([], [], ["eu"])
    words = ("--clear", "run-as", "--run-as", "stdio=you", "--clear", "tags")
    assert run("source", "update", "shop", *words).status == 0
    assert mapping(run) == {"role": None, "roles": [["stdio", "you"]], "variables": []}
    assert run("source", "update", "shop", "--clear", "run-as").status == 0
    assert mapping(run) is None
    assert run("source", "list", "--json").json["sources"][0]["tags"] == []


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--run-as", "alice"), 2),
        (("--run-as", "=reader"), 2),
        (("--run-as-role", "{actor.nmae}"), 78),
        (("--run-as", "alice={actor.role}"), 78),
        (("--run-as-variable", "app.actor={actor}"), 78),
        (("--filter", "orders: owner = {actor.nmae}"), 78),
        (("--run-as-role", ""), 78),
        (("--clear", "mask"), 2),
        (("--tag", ""), 78),
        (("--tag", "x" * 65), 78),
    ],
)
def test_a_mapping_that_means_nothing_changes_nothing(
    run: Run, words: tuple[str, ...], status: int
) -> None:
    run("source", "add", *SHOP)
    before = run("source", "list", "--json").json
    ended = run("source", "update", "shop", *words)
    assert (ended.status, ended.out, ended.err.count("\n")) == (status, "", 1)
    assert run("source", "list", "--json").json == before
