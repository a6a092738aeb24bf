"""What only reads works on a state whose disk is mounted for reading; the rest says so."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import tidegate


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state with a source and a token, which then cannot be written."""
    state = tmp_path / "state"
    (tmp_path / "shop.db").touch()
    for words in (
        ("token", "create", "reader", "--scope", "readOnly"),
        ("source", "add", "shop", f"sqlite:///{tmp_path}/shop.db"),
    ):
        ended = tidegate(*words, state=state)
        assert ended.status == 0, ended.err
    for options in (["--bind", state], ["-o", "remount,bind,ro"]):
        made = subprocess.run(
            ["mount", *options, state], check=False, capture_output=True, text=True
        )
        if made.returncode:
            pytest.skip(f"nothing can be mounted here: {made.stderr.strip()}")
    try:
        yield state
    finally:
        subprocess.run(["umount", "--lazy", state], check=True)


def test_lists_are_shown(state: Path) -> None:
    assert "shop" in tidegate("source", "list", state=state).out
    assert "shop" in tidegate("source", "show", "shop", state=state).out
    assert "reader" in tidegate("token", "list", state=state).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("source", "remove", "shop"), "can be read only"),
        (("token", "revoke", "reader"), "can be read only"),
        (("query", "shop", "SELECT 1"), "The audit log cannot be written: Read-only file system"),
    ],
)
def test_what_writes_is_refused_in_words(state: Path, words: tuple[str, ...], said: str) -> None:
    ended = tidegate(*words, state=state)
    assert ended.status != 0
    assert said in ended.err and ended.err.count("cannot be written") <= 1
    assert "shop" in tidegate("source", "list", state=state).out
    assert "reader" in tidegate("token", "list", state=state).out


def test_doctor_says_what_is_wrong(state: Path) -> None:
    assert "can be read only" in tidegate("doctor", state=state).out
