"""The sample shop: the same on every machine, worth asking about, and whole or not there."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from tidegate.demo.build import ROWS, build, is_built, tables

CONTENT = "66ae34df4dfa146546647e631abdbc5ccd8b12cd08f10bc3200bfc38a178afd0"
SCRIPTS = {
    "Latin with accents": "[éüñłşệ]",
    "Greek": "[Α-ω]",
    "Cyrillic": "[А-я]",
    "Hebrew": "[א-ת]",
    "Arabic": "[ء-ي]",
    "Devanagari": "[अ-ह]",
    "Hangul": "[가-힣]",
    "Kana": "[ぁ-ん]",
    "Han": "[一-龥]",
}


def ignore(table: str, rows: int) -> None:
    """Advance nothing."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("sample") / "shop.db"
    build(path, ignore)
    assert is_built(path)
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def test_the_content_is_the_same_on_every_machine() -> None:
    digest = sha256()
    encode = msgspec.json.encode
    for name, rows in tables():
        digest.update(name.encode())
        for row in rows:
            digest.update(encode(row))
    assert digest.hexdigest() == CONTENT


def test_it_is_big_enough_to_be_interesting(shop: sqlite3.Connection) -> None:
    names = [name for (name,) in shop.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )]  # fmt: skip
    counts = {name: shop.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    assert len(names) >= 12
    assert min(counts.values()) > 0
    assert sum(counts.values()) >= 100_000
    assert sum(counts.values()) == ROWS


def test_it_is_sound(shop: sqlite3.Connection) -> None:
    assert shop.execute("PRAGMA foreign_key_check").fetchall() == []
    assert shop.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_every_view_answers(shop: sqlite3.Connection) -> None:
    views = shop.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall()
    assert len(views) >= 4
    for (view,) in views:
        assert shop.execute(f"SELECT count(*) FROM {view}").fetchone()[0] > 0


@pytest.mark.parametrize("script", SCRIPTS)
def test_customers_write_in_many_scripts(shop: sqlite3.Connection, script: str) -> None:
    found = shop.execute(f"SELECT count(*) FROM customers WHERE name GLOB '*{SCRIPTS[script]}*'")
    assert found.fetchone()[0] > 10


def test_there_are_emoji_and_nulls_and_several_years(shop: sqlite3.Connection) -> None:
    one = shop.execute(
        """SELECT (SELECT count(*) FROM orders WHERE note LIKE '%🎁%'),
                  (SELECT count(*) FROM customers WHERE phone IS NULL),
                  (SELECT count(DISTINCT substr(ordered_at, 1, 4)) FROM orders)"""
    ).fetchone()
    assert one[0] > 0 and one[1] > 0 and one[2] == 5


def test_sums_agree(shop: sqlite3.Connection) -> None:
    wrong = shop.execute(
        """SELECT count(*) FROM orders AS o WHERE items_cents <> (
               SELECT sum(quantity * unit_price_cents) FROM order_items WHERE order_id = o.id)"""
    ).fetchone()
    assert wrong == (0,)


def test_time_runs_forward(shop: sqlite3.Connection) -> None:
    wrong = shop.execute(
        """SELECT (SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer_id
                   WHERE o.ordered_at < c.created_at),
                  (SELECT count(*) FROM shipments s JOIN orders o ON o.id = s.order_id
                   WHERE s.shipped_at < o.ordered_at OR s.delivered_at < s.shipped_at)"""
    ).fetchone()
    assert wrong == (0, 0)


def test_an_interrupted_build_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(table: str, rows: int) -> None:
        if table == "orders":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "shop.db", interrupt)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_build_left_is_swept_away(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = tmp_path / f"shop.db.{gone.pid}.part"
    alive = tmp_path / f"shop.db.{os.getppid()}.part"
    dead.touch()
    alive.touch()
    build(tmp_path / "shop.db", ignore)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shop.db", alive.name]


def test_anything_else_in_its_place_is_not_taken_for_the_sample(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    assert not is_built(path)
    path.write_bytes(b"not a database, but longer than the header of one" * 3)
    assert not is_built(path)
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 999")
    assert not is_built(path)
