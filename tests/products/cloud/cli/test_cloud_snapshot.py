"""`tidegate cloud snapshot` keeps what a query gives, `tidegate cloud diff` says what changed."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.cli.main import main
from tidegate.errors import TidegateError
from tidegate.products.cloud.documents.snapshots import FORMAT, Snapshot, compare, read_snapshot


class Shop:
    """A source with one table; the commands work on any source."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "shop.db"
        self.sql("CREATE TABLE hosts (name TEXT, size INTEGER)")
        self.sql("INSERT INTO hosts VALUES ('a', 1), ('b', 2), ('c', 3)")
        self.config = folder / "settings.toml"
        self.config.write_text(f'[[sources]]\nname = "shop"\nurl = "sqlite:///{self.file}"\n')
        self.config.chmod(0o600)

    def sql(self, text: str) -> None:
        with sqlite3.connect(self.file) as connection:
            connection.execute(text)
        connection.close()

    def take(self, name: str, query: str = "SELECT * FROM hosts", *more: str) -> int:
        return main([
            "cloud", "snapshot", "shop", query, "--output", str(self.folder / name), *more,
            "--config", str(self.config), "--state", str(self.folder / "state"),
        ])  # fmt: skip

    def diff(self, *words: str) -> int:
        return main(["cloud", "diff", *(str(self.folder / each) for each in words[:2]), *words[2:]])


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_what_changed_since_is_shown_row_by_row_and_field_by_field(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shop.take("old.json") == 0
    assert (shop.folder / "old.json").stat().st_mode & 0o077 == 0
    assert shop.diff("old.json", "old.json") == 0
    shop.sql("UPDATE hosts SET size = 20 WHERE name = 'b'")
    shop.sql("DELETE FROM hosts WHERE name = 'c'")
    shop.sql("INSERT INTO hosts VALUES ('d', NULL)")
    assert shop.take("new.json") == 0
    capsys.readouterr()
    assert shop.diff("old.json", "new.json", "--key", "name") == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        '+ {"name":"d","size":null}', '- {"name":"c","size":3}', '~ "b": size: 2 -> 20',
    ]  # fmt: skip
    assert "added 1  removed 1  changed 1" in said.err
    assert shop.diff("old.json", "new.json", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (len(found["added"]), len(found["removed"]), found["changed"]) == (2, 2, [])


def test_a_snapshot_is_whole_or_not_there(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    count = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {}) "
    assert shop.take("many.json", count.format(30_000) + "SELECT n, 'x' FROM t") == 0
    taken = read_snapshot((shop.folder / "many.json").read_bytes(), "many.json")
    assert len(taken.rows) == 30_000
    assert shop.take("many.json") == 2
    assert "--overwrite" in capsys.readouterr().err
    assert shop.take("none.json", "SELECT * FROM nothing") != 0
    assert shop.take("none.json", "DELETE FROM hosts") == 77
    assert not (shop.folder / "none.json").exists()
    assert shop.take("left.json") == 0
    assert len(read_snapshot((shop.folder / "left.json").read_bytes(), "left.json").rows) == 3


def snapshot(*rows: tuple[Any, ...], columns: tuple[str, ...] = ("k", "v")) -> Snapshot:
    return Snapshot(FORMAT, "s", "q", "2026-01-01T00:00:00+00:00", columns, rows)


def test_a_key_that_is_not_one_is_refused() -> None:
    with pytest.raises(TidegateError, match="two rows with the key 1"):
        compare(snapshot((1, 2), (1, 3)), snapshot(), ["k"])
    with pytest.raises(TidegateError, match="column x"):
        compare(snapshot(), snapshot(), ["x"])


def test_columns_that_came_or_went_are_changes() -> None:
    found = compare(snapshot((1, 2)), snapshot((1, 5), columns=("k", "w")), ["k"])
    assert found.changed[0].fields == {"w": (None, 5), "v": (2, None)}
    assert compare(snapshot((1, 1)), snapshot((1, True)), ["k"]).changed


@pytest.mark.parametrize("content", [b"", b"{}", b"[1", b"\xff", b'{"format":"x"}'])
def test_another_file_is_no_snapshot(content: bytes) -> None:
    with pytest.raises(TidegateError, match="no snapshot"):
        read_snapshot(content, "file")


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([None, 1, True, "x", 1.5])), max_size=8
)


@given(ROWS, ROWS)
def test_what_was_removed_and_added_leads_from_one_to_the_other(
    old: list[tuple[Any, ...]], new: list[tuple[Any, ...]]
) -> None:
    found = compare(snapshot(*old), snapshot(*new))
    back = compare(snapshot(*new), snapshot(*old))
    assert (found.added, found.removed) == (back.removed, back.added)
    assert len(old) + len(found.added) - len(found.removed) == len(new)
    assert compare(snapshot(*old), snapshot(*old)).is_empty
