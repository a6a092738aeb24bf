"""`tidegate fixture`: code of confirmed queries, and what happens when the data changes."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import pytest

from products.jdbc.support.fixture_cases import import_code
from support.command_line import environment, tidegate
from support.documents import ROOT, is_as_shown, play, report
from support.jdbc_surface import make_file
from tidegate.products.jdbc.extraction.ordering import is_ordered

QUERY = "SELECT id, name, email FROM users WHERE status <> ?"
FILE = f"""
source = "shop"
name = "shop"
package = "com.example"
files = {{ python = "shop_rows.py", java = "ShopFixture.java" }}

[queries.all_users]
sql = "{QUERY}"
parameters = ["none"]

[queries.newest]
sql = "SELECT id FROM users ORDER BY id DESC"
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A directory with a source whose mails are masked, and the file."""
    make_file(tmp_path / "shop.db")
    url = f"sqlite:///{tmp_path}/shop.db"
    added = tidegate(
        *("source", "add", "shop", url, "--mask", "users.email"), state=tmp_path / "state"
    )
    assert added.status == 0, added.err
    (tmp_path / "shop.toml").write_text(FILE)
    return tmp_path


def _fixture(shop: Path, *words: str):
    return tidegate("fixture", *words, state=shop / "state")


def _change(shop: Path, text: str) -> None:
    with sqlite3.connect(shop / "shop.db") as connection:
        connection.execute(text)
    connection.close()


def test_code_is_written_once_it_is_confirmed_and_drift_is_found(shop: Path) -> None:
    file = str(shop / "shop.toml")
    unshown = _fixture(shop, "refresh", file, "--confirm")
    assert unshown.status != 0 and "Not confirmed" in unshown.err
    assert "conditions  status != ?" in unshown.out and "fields      id, name, email" in unshown.out
    assert not (shop / "shop_rows.py").exists()
    assert _fixture(shop, "check", file).status != 0
    written = _fixture(shop, "refresh", file, "--confirm")
    assert written.status == 0, written.err
    assert "masked: users.email" in written.err
    module = import_code((shop / "shop_rows.py").read_text(), shop / "copy.py")
    assert [row.name for row in module.ALL_USERS_ROWS] == ["Alice", "Bob"]
    assert [row.id for row in module.NEWEST_ROWS] == [2, 1]
    java = (shop / "ShopFixture.java").read_text()
    assert "package com.example;" in java and "alice@" not in java
    assert _fixture(shop, "check", file).status == 0

    # The same rows in another order are the same, where the query has none.
    _change(shop, "UPDATE users SET id = id + 10 WHERE id = 1")
    drift = _fixture(shop, "check", file)
    assert drift.status == 1
    assert "+    AllUsersRow(11, 'Alice'" in drift.out and "differs" in drift.err
    assert "(1, 'Alice'" in (shop / "shop_rows.py").read_text()
    assert _fixture(shop, "refresh", file).status == 0
    assert _fixture(shop, "check", file).status == 0

    # A query that was changed is to be confirmed again, and is not run before.
    (shop / "shop.toml").write_text(FILE.replace("DESC", "ASC"))
    changed = _fixture(shop, "check", file)
    assert changed.status != 0 and "newest" in changed.err and "all_users" not in changed.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("source = ", "Invalid"),
        (FILE.replace("python", "cobol"), "cobol"),
        (FILE.replace("com.example", "com;example"), "package"),
        (FILE.replace("ShopFixture.java", "Rows.java"), "ShopFixture.java"),
        (FILE.replace('"none"', ""), "Parameter count mismatch"),
        (FILE.replace(QUERY, "DELETE FROM users"), "DELETE"),
        (FILE.replace('source = "shop"', 'source = "other"'), "no source 'other'"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_and_nothing_changes(
    shop: Path, text: str, said: str
) -> None:
    (shop / "shop.toml").write_text(text)
    file = str(shop / "shop.toml")
    first = _fixture(shop, "refresh", file)
    second = _fixture(shop, "refresh", file, "--confirm")
    assert first.status != 0 and second.status != 0
    assert said in second.err
    assert not (shop / "shop_rows.py").exists()
    with sqlite3.connect(shop / "shop.db") as connection:
        assert connection.execute("SELECT count(*) FROM users").fetchone() == (2,)
    connection.close()


def test_the_guide_prints_what_it_shows(tmp_path: Path) -> None:
    make_file(tmp_path / "shop.db")
    url = f"sqlite:///{tmp_path}/shop.db"
    assert tidegate("source", "add", "shop", url, state=tmp_path / "state").status == 0
    guide = ROOT / "docs" / "howto" / "keep-test-data-true.md"
    (tmp_path / "shop.toml").write_text(
        guide.read_text("utf-8").partition("```toml\n")[2].partition("```")[0]
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    outcomes = play(guide, tmp_path, {**environment(tmp_path / "state"), "PATH": path})
    assert len(outcomes) == 3 and outcomes[0].status != 0
    for outcome in outcomes:
        assert is_as_shown(outcome), report(outcome)
    assert [outcome.status for outcome in outcomes[1:]] == [0, 0]


@pytest.mark.parametrize(
    ("text", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM t order  by a LIMIT 1", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a) s", False),
        ("SELECT row_number() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'ORDER BY a' FROM t -- ORDER BY a", False),
    ],
)
def test_an_order_counts_outside_of_brackets(text: str, ordered: bool) -> None:
    assert is_ordered(text, "sqlite") is ordered
