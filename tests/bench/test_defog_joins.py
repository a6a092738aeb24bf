"""How guessed joins are scored, on the small database of ours and a real server."""

from pathlib import Path

import pytest

from bench import defog, defog_joins, servers

SAMPLE = Path(__file__).parents[1] / "support" / "defog_sample"

WRITES, AUTHOR, PAPER = ("writes", "aid"), ("author", "aid"), ("paper", "aid")


def test_a_shown_line_is_read_as_its_joins() -> None:
    line = "writes(aid int~>author.aid, pid bigint?~?>paper.pid, n int>other.id, kind text {a,b})"
    assert set(defog_joins.read_guesses(line)) == {
        frozenset({WRITES, AUTHOR}),
        frozenset({("writes", "pid"), ("paper", "pid")}),
    }


def test_columns_that_refer_to_one_key_are_joined_and_a_wrong_guess_counts() -> None:
    declared = {frozenset({WRITES, AUTHOR})}
    used = {frozenset({WRITES, PAPER})}
    shown = {frozenset({WRITES, AUTHOR}), frozenset({PAPER, AUTHOR})}
    assert defog_joins.score(shown, declared, used) == (1, 1, 1, 1, 2, 1, 1)
    wrong = {frozenset({WRITES, ("author", "name")})}
    assert defog_joins.score(wrong, declared, used) == (1, 0, 1, 0, 1, 1, 0)


def test_core_shows_the_keys_that_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers.peers, "WORK", tmp_path)
    scores = defog_joins.measure(SAMPLE)["bakery"]["with values"]
    assert defog.list_databases(SAMPLE) == ["bakery"]
    assert (scores.declared_shown, scores.used_shown) == (scores.declared, scores.used)
    assert scores.right == scores.known > 0
