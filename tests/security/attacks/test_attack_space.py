"""Attacks on the disk: a read that sorts without end writes files without end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from support.attack_target import make_shop
from support.permits import permit_for
from tidegate.engines.sqlite import temp_space
from tidegate.engines.sqlite.engine import SqliteEngine
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no count of a thread's writes")

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


def run(shop: Path, text: str, timeout_s: float = 30) -> Code | None:
    """The code with which a statement ends, None if it ends well."""
    limits = Limits(max_rows=10, timeout_s=timeout_s)
    source = Source("s", "shop", f"sqlite:///{shop}", "sqlite", "sqlite")
    actor = Actor("a", "a", Scope.READ_ONLY)
    permit = permit_for(source, Query(Statement(text), limits=limits), actor=actor)

    async def whole() -> Code | None:
        engine = await SqliteEngine.open(source)
        try:
            cursor = await engine.run(permit, NEVER)
            await cursor.close()
        except TidegateError as error:
            return error.code
        finally:
            await engine.close()
        return None

    return asyncio.run(whole())


@pytest.mark.parametrize(
    "text",
    [
        f"{ENDLESS} SELECT 1 FROM (SELECT zeroblob(100000) || i AS z FROM n ORDER BY random())",
        f"{ENDLESS} SELECT count(*) FROM (SELECT DISTINCT zeroblob(100000) || i FROM n)",
        f"{ENDLESS} SELECT count(*) OVER () FROM (SELECT zeroblob(100000) AS z FROM n)",
        f"{ENDLESS} SELECT zeroblob(100000) || i AS z, count(*) FROM n GROUP BY z",
    ],
    ids=["sorted", "distinct", "windowed", "grouped"],
)
def test_a_read_that_fills_the_disk_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(temp_space, "MOST_BYTES", 20_000_000)
    monkeypatch.setattr(temp_space, "LOOK_S", 0.02)
    assert run(make_shop(tmp_path / "shop.db"), text) is Code.LIMIT_BYTES


def test_a_long_read_that_writes_nothing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temp_space, "MOST_BYTES", 1_000)
    monkeypatch.setattr(temp_space, "LOOK_S", 0.02)
    shop = make_shop(tmp_path / "shop.db")
    assert run(shop, f"{ENDLESS} SELECT sum(i) FROM n", timeout_s=0.5) is Code.LIMIT_TIME
    assert run(shop, "SELECT a.id FROM items a, items b ORDER BY a.price LIMIT 3") is None
