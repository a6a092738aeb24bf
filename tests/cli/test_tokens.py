"""`tidegate token`: the secret is shown once, alone, and nothing keeps it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Ended

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
