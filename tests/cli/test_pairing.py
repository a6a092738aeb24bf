"""`tidegate pair`: a client asks a running server, the operator answers in another terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command_line import Ended, serving

Run = Callable[..., Ended]


@pytest.fixture
def served(state: Path):
    with serving(["serve", "--http", "127.0.0.1:0"], state) as server:
        words = server.until("serving").split()
        yield next(word for word in words if word.startswith("http")).removesuffix("/mcp")


def asking(served: str, state: Path, *more: str):
    words = ["pair", "ask", served, "--name", "laptop", "--scope", "readWrite", "--tag", "eu"]
    return serving([*words, *more], state)


def test_the_operator_narrows_and_approves_and_the_client_prints_its_token(
    run: Run, served: str, state: Path
) -> None:
    with asking(served, state) as client:
        said = client.until("tidegate pair approve")
        id = said.split()[-1]
        assert re.fullmatch(r"\w{4}-\w{4}", id)
        (waiting,) = run("pair", "list", "--json").json["pairings"]
        assert (waiting["id"], waiting["client"]) == (id, "laptop")
        assert (waiting["wanted"]["scope"], waiting["wanted"]["tags"]) == ("readWrite", "eu")
        assert "#eu" in run("pair", "list").out
        words = ("pair", "approve", id, "--scope", "readOnly", "--source", "shop")
        assert run(*words).status == 66
        assert run(*words, "--allow-unknown").status == 0
        ended = client.ended()
    assert ended.status == 0
    assert re.fullmatch(r"tg_[\w-]{43}\n", ended.out)
    (entry,) = run("token", "list", "--json").json["tokens"]
    assert (entry["name"], entry["scope"]) == ("laptop", "readOnly")
    assert (entry["sources"], entry["tags"]) == (["shop"], None)
    assert entry["expires_at"] is not None
    assert run("pair", "list", "--json").json["pairings"] == []


def test_a_denied_client_gets_no_token(run: Run, served: str, state: Path) -> None:
    with asking(served, state) as client:
        id = client.until("tidegate pair approve").split()[-1]
        assert run("pair", "deny", id).status == 0
        ended = client.ended()
    assert (ended.status, ended.out) == (77, "")
    assert "denied" in ended.err
    assert run("token", "list", "--json").json["tokens"] == []


@pytest.mark.parametrize("words", [("approve", "ABCD-EFGH"), ("deny", "ABCD-EFGH")])
def test_what_no_one_asked_for_cannot_be_answered(run: Run, words: tuple[str, ...]) -> None:
    ended = run("pair", *words)
    assert (ended.status, ended.out) == (2, "")
    assert run("token", "list", "--json").json["tokens"] == []


@pytest.mark.parametrize("url", ["http://db.example.com:7878", "127.0.0.1:7878", "ftp://localhost"])
def test_a_token_is_not_asked_for_in_the_clear_or_at_no_address(run: Run, url: str) -> None:
    ended = run("pair", "ask", url, "--name", "laptop")
    assert (ended.status, ended.out) == (2, "")


def test_no_one_who_waits_is_said_in_words(run: Run) -> None:
    ended = run("pair", "list")
    assert (ended.status, ended.out) == (0, "") and "no pending pairing" in ended.err


def test_a_server_that_is_not_there_is_said_in_words(run: Run) -> None:
    ended = run("pair", "ask", "http://127.0.0.1:1", "--name", "x")
    assert (ended.status, ended.out) == (69, "")
    assert "did not answer: Connection refused." in ended.err
