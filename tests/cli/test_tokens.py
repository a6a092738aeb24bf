"""`tidegate token`: the secret is shown once, alone, and nothing keeps it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.command_line import Ended

Run = Callable[..., Ended]


def test_the_token_alone_is_on_stdout(run: Run) -> None:
    ended = run("token", "create", "laptop", "--scope", "readOnly")
    assert ended.status == 0
    assert re.fullmatch(r"tg_[\w-]{43}\n", ended.out)
    assert ended.out.strip() not in ended.err


def test_the_token_is_kept_nowhere(run: Run, state: Path) -> None:
    secret = run("token", "create", "laptop", "--scope", "readOnly").out.strip().encode()
    for path in state.rglob("*"):
        assert not path.is_file() or secret not in path.read_bytes()


def test_tokens_are_listed_without_their_secrets(run: Run) -> None:
    words = ("token", "create", "a", "--scope", "readWrite", "--source", "shop", "--tag", "eu")
    words += ("--allow-unknown",)
    first = run(*words).out.strip()
    run("token", "create", "b", "--scope", "fullAccess", "--expires", "30d")
    listed = run("token", "list", "--json")
    assert first not in listed.out
    a, b = listed.json["tokens"]
    assert (a["name"], a["scope"], a["sources"], a["tags"], a["state"]) == (
        "a", "readWrite", ["shop"], ["eu"], "active",
    )  # fmt: skip
    assert (b["scope"], b["sources"], b["tags"]) == ("fullAccess", None, None)
    assert a["expires_at"] is None and b["expires_at"] > b["created_at"]
    table = run("token", "list").out
    assert first not in table
    assert "shop, #eu" in table


def test_tables_of_a_token_are_listed(run: Run) -> None:
    words = ("token", "create", "a", "--scope", "readOnly", "--source", "shop")
    words += ("--allow-unknown",)
    ended = run(*words, "--table", "orders", "--table", "sales.customers")
    assert "shop (only orders, sales.customers)" in ended.err
    assert run("token", "list", "--json").json["tokens"][0]["tables"] == [
        "orders", "sales.customers",
    ]  # fmt: skip
    assert "shop (only orders, sales.customers)" in run("token", "list").out


def test_a_revoked_token_is_listed_as_such(run: Run) -> None:
    run("token", "create", "laptop", "--scope", "readOnly")
    assert run("token", "revoke", "laptop").status == 0
    (entry,) = run("token", "list", "--json").json["tokens"]
    assert entry["state"] == "revoked"


@pytest.mark.parametrize(
    "words",
    [
        ("create", "laptop", "--scope", "readOnly"),
        ("create", "other", "--scope", "readOnly", "--expires", "tomorrow"),
        ("create", "other", "--scope", "readOnly", "--expires", "0d"),
        ("create", " ", "--scope", "readOnly"),
        ("revoke", "labtop"),
    ],
)
def test_what_cannot_be_done_leaves_everything_as_it_was(run: Run, words: tuple[str, ...]) -> None:
    run("token", "create", "laptop", "--scope", "readOnly")
    before = run("token", "list", "--json").json
    ended = run("token", *words)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert run("token", "list", "--json").json == before


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--source", "town"), 66, "no source 'town'. Did you mean 'towns'?"),
        (("--source", "towns", "--source", ""), 66, "no source ''. Known: other, towns."),
        (("--tag", "ue"), 2, "No source has the tag 'ue'. Known: eu."),
        (("--table", "visit"), 66, "no table `visit`. Did you mean 'visits'?"),
        (("--source", "towns", "--table", "main.towns", "--table", "town"), 66, "'towns'"),
        (("--table", "towns:visit"), 66, "Did you mean 'visits'?"),
        (("--table", "town:visits"), 66, "no source 'town'. Did you mean 'towns'?"),
        (("--source", "other", "--table", "towns:visits"), 2, "--source towns"),
        (("--source", "other", "--table", "visits"), 66, "no table `visits`. Known: notes."),
        (("--table", "a.b.c.d"), 2, "cannot be the name of a table"),
    ],
)
def test_a_name_that_means_nothing_makes_no_token(
    run: Run, towns: Path, tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, other:
        other.execute("CREATE TABLE notes (id INTEGER)")
    run("source", "add", "other", f"sqlite:///{tmp_path}/other.db")
    run("source", "update", "towns", "--tag", "eu")
    ended = run("token", "create", "laptop", "--scope", "readOnly", *words)
    assert (ended.status, ended.out) == (status, "")
    assert said in ended.err and ended.err.count("\n") == 1
    assert run("token", "list", "--json").json["tokens"] == []
    assert run("token", "create", "x", "--scope", "readOnly", "--allow-unknown").status == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--source", "towns", "--table", "towns", "--table", "visited"),
        ("--tag", "eu", "--table", "VISITS", "--table", "main.towns"),
        ("--table", "towns:visits"),
    ],
)
def test_a_name_that_is_there_makes_one(run: Run, towns: Path, words: tuple[str, ...]) -> None:
    run("source", "update", "towns", "--tag", "eu")
    assert run("token", "create", "laptop", "--scope", "readOnly", *words).status == 0


def test_a_token_may_be_made_before_its_source(run: Run) -> None:
    words = ("token", "create", "laptop", "--scope", "readOnly", "--source", "soon")
    assert run(*words, "--table", "orders").status == 66
    assert run(*words, "--table", "orders", "--allow-unknown").status == 0


def test_tables_of_a_source_that_cannot_be_looked_at_are_admitted_with_a_word(
    run: Run, towns: Path
) -> None:
    run("source", "update", "towns", "--access", "none")
    ended = run("token", "create", "laptop", "--scope", "readOnly", "--table", "visits")
    assert ended.status == 0
    assert "cannot check that table visits exists (towns: " in ended.err


def test_sources_of_the_settings_count(run: Run, towns: Path, tmp_path: Path) -> None:
    path = tmp_path / "tidegate.toml"
    path.write_text(f'[[sources]]\nname = "set"\nurl = "sqlite:///{towns}"\n')
    words = ("token", "create", "laptop", "--scope", "readOnly", "--source", "set")
    assert run(*words).status == 66
    assert run(*words, "--table", "visits", "--config", str(path)).status == 0


def test_a_token_is_revoked_where_the_record_cannot_be_written_and_the_command_says_so(
    run: Run, state: Path
) -> None:
    assert run("token", "create", "claude", "--scope", "readOnly").status == 0
    (state / "audit").rename(state / "aside")
    (state / "audit").write_text("a file in the place of the directory")
    ended = run("token", "revoke", "claude")
    assert (ended.status, ended.out) == (0, "")
    assert ended.err.startswith("revoked claude\nnote: the audit log cannot be written now")
