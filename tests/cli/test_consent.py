"""Commands that give rights away ask the person at the terminal, for a word or a passphrase."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from support.command_line import GRANTS, Ended, tidegate
from support.operator_terminal import operator_terminal
from support.terminal import terminal

PASSPHRASE = "seven tide pools"


def at_terminal(*words: str, state: Path, typed: tuple[str, ...] = (), agrees: bool = True):
    with operator_terminal(*typed, agrees=agrees) as terminal:
        return tidegate(*words, state=state, terminal=terminal)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with a source and a token, and a folder with databases."""
    state = tmp_path / "state"
    for name in ("shop.db", "other.db"):
        with closing(sqlite3.connect(tmp_path / name)) as made:
            made.execute("CREATE TABLE users (email TEXT)")
    assert tidegate("token", "create", "ann", "--scope", "readOnly", state=state).status == 0
    assert (
        tidegate("source", "add", "shop", f"sqlite:///{tmp_path}/shop.db", state=state).status == 0
    )
    return state


def names(state: Path, kind: str) -> list[str]:
    return [
        entry["name"] for entry in tidegate(kind, "list", "--json", state=state).json[f"{kind}s"]
    ]


def kept(state: Path) -> list[object]:
    """All tokens and sources with their rights."""
    return [tidegate(kind, "list", "--json", state=state).json for kind in ("token", "source")]


def refused(ended: Ended) -> None:
    assert (ended.status, ended.out) == (77, "")
    assert ended.err.count("\n") == 1


GIVING = [
    ("token", "create", "eve", "--scope", "fullAccess"),
    ("source", "add", "other", "sqlite:///other.db"),
    ("token", "edit", "ann", "--scope", "fullAccess"),
    ("source", "update", "shop", "--access", "write"),
    ("source", "rename", "shop", "other"),
    ("source", "update", "shop", "--url", "sqlite:///other.db"),
]


@pytest.mark.parametrize("words", GIVING, ids=" ".join)
def test_nothing_is_given_where_no_person_can_be_asked(words: tuple[str, ...], state: Path) -> None:
    before = kept(state)
    ended = tidegate(*words, state=state, stdin=f"{words[1]}\n")
    refused(ended)
    assert "terminal" in ended.err and "passphrase" in ended.err
    assert kept(state) == before


@pytest.mark.parametrize("words", GIVING, ids=" ".join)
def test_nothing_is_given_to_a_person_who_does_not_agree(
    words: tuple[str, ...], state: Path
) -> None:
    before = kept(state)
    refused(at_terminal(*words, state=state, agrees=False))
    assert kept(state) == before
    assert at_terminal(*words, state=state).status == 0
    assert kept(state) != before


@pytest.mark.parametrize(
    "words",
    [
        ("token", "revoke", "ann"),
        ("token", "edit", "ann", "--source", "shop", "--table", "users", "--expires", "1d"),
        ("source", "update", "shop", "--access", "none", "--agents", "deny"),
        ("source", "update", "shop", "--mask", "users.email"),
        ("source", "remove", "shop"),
    ],
    ids=" ".join,
)
def test_what_takes_rights_away_asks_no_one(words: tuple[str, ...], state: Path) -> None:
    assert tidegate(*words, state=state, stdin="").status == 0


def test_a_mask_is_taken_away_by_a_person_only(state: Path) -> None:
    masked = ("source", "update", "shop", "--mask", "users.email")
    assert tidegate(*masked, state=state, stdin="").status == 0
    refused(tidegate("source", "update", "shop", "--clear", "masks", state=state, stdin=""))
    (shop,) = tidegate("source", "list", "--json", state=state).json["sources"]
    assert shop["masks"]


def test_a_source_that_was_removed_comes_back_by_a_person_only(tmp_path: Path) -> None:
    state = tmp_path / "new"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as made:
        made.execute("CREATE TABLE users (email TEXT)")
    add = ("source", "add", "shop", "sqlite:///shop.db", "--access", "write")
    assert tidegate(*add[:4], "--mask", "users.email", state=state, stdin="").status == 0
    assert tidegate("source", "remove", "shop", state=state, stdin="").status == 0
    refused(tidegate(*add, state=state, stdin=""))
    assert names(state, "source") == []


def test_a_state_that_a_server_has_started_on_asks_although_its_sources_are_in_the_settings(
    tmp_path: Path,
) -> None:
    state = tmp_path / "new"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as made:
        made.execute("CREATE TABLE users (email TEXT)")
    settings = f'{{"sources": [{{"name": "shop", "url": "sqlite:///{tmp_path}/shop.db"}}]}}'
    assert tidegate("serve", "--config", settings, state=state, stdin="").status == 0
    words = ("token", "create", "eve", "--scope", "fullAccess", "--config", settings)
    refused(tidegate(*words, state=state, stdin=""))
    assert names(state, "token") == []


@pytest.mark.parametrize("tags", [("--clear", "tags"), ("--tag", "other")], ids=" ".join)
def test_tags_are_changed_by_a_person_only_because_masks_may_be_for_them(
    tags: tuple[str, str], state: Path
) -> None:
    assert tidegate("source", "update", "shop", "--tag", "pii", state=state).status == 0
    refused(tidegate("source", "update", "shop", *tags, state=state, stdin=""))
    (shop,) = tidegate("source", "list", "--json", state=state).json["sources"]
    assert shop["tags"] == ["pii"]


def test_a_state_directory_that_is_made_now_asks_no_one(tmp_path: Path) -> None:
    words = ("token", "create", "ann", "--scope", "readOnly")
    assert tidegate(*words, state=tmp_path / "new", stdin="").status == 0
    refused(tidegate(*words[:2], "eve", *words[3:], state=tmp_path / "new", stdin=""))


def test_the_passphrase_is_asked_for_once_it_is_set(state: Path, tmp_path: Path) -> None:
    ended = at_terminal("passphrase", "set", state=state, typed=(PASSPHRASE, PASSPHRASE))
    assert ended.status == 0
    kept = state / "operator.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600 and PASSPHRASE not in kept.read_text()
    words = ("token", "create", "eve", "--scope", "fullAccess")
    refused(tidegate(*words, state=state, stdin=""))
    refused(at_terminal(*words, state=state, typed=("wrong", "wrong again", "create")))
    assert names(state, "token") == ["ann"]
    assert at_terminal(*words, state=state, typed=("wrong", PASSPHRASE)).status == 0
    file = tmp_path / "passphrase"
    file.write_text(f"{PASSPHRASE}\n")
    given = ("source", "update", "shop", "--access", "write", "--passphrase-file")
    file.write_text("wrong\n")
    refused(tidegate(*given, str(file), state=state))
    assert tidegate(*given, "-", state=state, stdin=f"{PASSPHRASE}\n").status == 0
    record = tidegate("audit", "tail", "--all", "--json", state=state).out
    assert record.count('"operator.refused"') == 2 and '"operator.passphrase_set"' in record
    assert PASSPHRASE not in record


def test_the_passphrase_guards_itself(state: Path) -> None:
    at_terminal("passphrase", "set", state=state, typed=(PASSPHRASE, PASSPHRASE))
    other = ("another passphrase",) * 2
    refused(at_terminal("passphrase", "set", state=state, typed=("no", "no", "no", *other)))
    refused(tidegate("passphrase", "remove", state=state, stdin=""))
    changed = at_terminal("passphrase", "set", state=state, typed=(PASSPHRASE, *other))
    assert changed.status == 0
    assert at_terminal("passphrase", "remove", state=state, typed=other).status == 0
    assert tidegate("token", "create", "eve", "--scope", "readOnly", state=state).status == 0


def test_a_passphrase_that_cannot_be_read_opens_nothing(state: Path) -> None:
    at_terminal("passphrase", "set", state=state, typed=(PASSPHRASE, PASSPHRASE))
    (state / "operator.json").write_text("{}")
    ended = at_terminal(
        "token", "create", "eve", "--scope", "readOnly", state=state, typed=(PASSPHRASE,)
    )
    assert ended.status == 74 and "operator.json" in ended.err
    assert names(state, "token") == ["ann"]


@pytest.mark.parametrize(
    ("typed", "said"), [(("short", "short"), "8"), ((PASSPHRASE, "another one"), "differ")]
)
def test_a_passphrase_that_does_not_serve_is_not_set(
    typed: tuple[str, ...], said: str, state: Path
) -> None:
    ended = at_terminal("passphrase", "set", state=state, typed=typed)
    assert ended.status == 2 and said in ended.err
    assert not (state / "operator.json").exists()


@pytest.mark.parametrize("words", sorted(GRANTS), ids=" ".join)
def test_each_command_that_gives_rights_takes_the_passphrase_from_a_file(
    words: tuple[str, str],
) -> None:
    whole = "--help-all" if words[0] == "source" and words[1] in ("add", "update") else "--help"
    assert "--passphrase-file" in tidegate(*words, whole, stdin="").out


PIPED = ("source", "add", "far", "mysql://ann@127.0.0.1:9/shop", "--password-stdin", "--anyway")


@pytest.mark.parametrize(("typed", "status"), [("add", 0), ("no", 77)])
@pytest.mark.needs("mysql")
def test_a_person_agrees_on_the_terminal_while_the_password_comes_from_a_pipe(
    state: Path, typed: str, status: int
) -> None:
    with terminal(PIPED, state, piped="hunter2\n") as person:
        person.until("to agree: ")
        person.type(typed)
        assert person.end() == status, person.said
        assert "hunter2" not in person.said
    assert ("far" in names(state, "source")) is (status == 0)


@pytest.mark.needs("mysql")
def test_an_operators_passphrase_is_asked_on_the_terminal_too(state: Path) -> None:
    at_terminal("passphrase", "set", state=state, typed=(PASSPHRASE, PASSPHRASE))
    with terminal(PIPED, state, piped="hunter2\n") as person:
        person.until("passphrase: ")
        person.type(PASSPHRASE)
        assert person.end() == 0
    assert "far" in names(state, "source")
