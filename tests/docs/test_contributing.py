"""The worked examples of a surface and of a dialect in CONTRIBUTING.md, built as they are written
there."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tidegate
from support.surface_client import Peer
from support.surface_gateway import SqliteGate, sqlite_source
from tidegate.config.model import Config
from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.model.statements import Effect, Statement
from tidegate.product import SurfaceEntry
from tidegate.sql import dialects
from tidegate.sql.judge import judge_uncached
from tidegate.sql.masking.rewrite import rewrite
from tidegate.sql.quoting import literal, qualified
from tidegate.sql.redaction import redact_statement
from tidegate.surfaces import registry
from tidegate.surfaces.registry import open_surface

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


def example(title: str) -> list[str]:
    """The two pieces of code under a title: a module and the line that registers it."""
    section = CONTRIBUTING.read_text().partition(title)[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def test_the_map_of_the_contributing_guide_has_every_folder() -> None:
    shown = re.findall(r"^\| `(\w+)` \|", CONTRIBUTING.read_text(), re.MULTILINE)
    source = Path(tidegate.__file__).parent
    folders = {each.parent.name for each in source.glob("*/__init__.py")}
    assert sorted(set(shown) & folders) == sorted(folders)


def test_the_surface_of_the_contributing_guide_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, line = example("## Add a surface")
    folder = tmp_path / "counting"
    folder.mkdir()
    (folder / "__init__.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    place = line.replace("tidegate.products.counting.surface", "counting")
    added: dict[str, SurfaceEntry] = eval("{" + place + "}", {"SurfaceEntry": SurfaceEntry})
    monkeypatch.setattr(registry, "SURFACES", registry.SURFACES | added)
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE items (id INTEGER)")
        connection.execute("INSERT INTO items VALUES (1), (2)")
    connection.close()

    async def talk() -> tuple[Any, Any]:
        gate = SqliteGate(tmp_path, sqlite_source(tmp_path / "shop.db"))
        async with gate.opened():
            peer = Peer(open_surface("counting", gate, Config()))
            await peer.open()
            call = {"name": "count"}
            counted = await peer.request("tools/call", **call, arguments={"table": "items"})
            wrong = await peer.request("tools/call", **call, arguments={"tabel": "items"})
        return counted["result"], wrong["result"]

    counted, wrong = asyncio.run(talk())
    sys.modules.pop("counting", None)
    assert counted["content"][0]["text"] == "[[2]]"
    assert wrong["isError"]


@pytest.fixture
def trino(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The dialect of the guide, registered as the guide says."""
    module, line = example("## Add a dialect")
    (tmp_path / "trino_of_the_guide.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    place = line.replace("tidegate.products.trino.dialect", "trino_of_the_guide")
    added: dict[str, str] = eval("{" + place + "}")
    monkeypatch.setattr(dialects, "DIALECTS", dialects.DIALECTS | added)
    dialects.find.cache_clear()
    yield
    dialects.find.cache_clear()
    sys.modules.pop("trino_of_the_guide")


@pytest.mark.parametrize(
    ("text", "effect", "verb"),
    [
        ("SELECT max_by(name, total), approx_distinct(id) FROM shop.orders", Effect.READ, "select"),
        ("WITH a AS (SELECT 1 AS x) SELECT * FROM a", Effect.READ, "select"),
        ("EXPLAIN DELETE FROM orders WHERE id = 1", Effect.READ, "explain"),
        ("SHOW CATALOGS", Effect.READ, "show"),
        ("UPDATE orders SET total = 1 WHERE id = 2", Effect.WRITE, "update"),
        ("DROP TABLE orders", Effect.DESTRUCTIVE, "ddl"),
        ("SET SESSION task_concurrency = 1", Effect.SESSION, "set"),
        ("GRANT SELECT ON orders TO PUBLIC", Effect.ADMIN, "grant"),
        ("SELECT query FROM system.runtime.queries", Effect.ADMIN, "select"),
        ("SELECT anything(1)", Effect.UNKNOWN, "select"),
        ("SELECT 1; SELECT 2", Effect.UNKNOWN, ""),
    ],
)
def test_the_dialect_of_the_contributing_guide_judges(
    trino: None, text: str, effect: Effect, verb: str
) -> None:
    judgement = judge_uncached(text, "trino")
    assert (judgement.effect, judgement.verb) == (effect, verb), judgement.reason


def test_the_dialect_of_the_contributing_guide_writes_and_redacts(trino: None) -> None:
    assert qualified("shop", 'odd"name', "trino") == '"shop"."odd""name"'
    values = [b"\xff", float("nan"), float("-inf"), "it's", None]
    written = [literal(value, "trino") for value in values]
    assert written == ["x'ff'", "nan()", "-infinity()", "'it''s'", "NULL"]
    assert redact_statement("SET x.password = 'hunter2'", "trino") == "SET x.password = '***'"


def test_without_a_fence_a_dialect_refuses_where_something_is_hidden(trino: None) -> None:
    column = ColumnInfo("total", "integer")
    catalog = Catalog(
        "shop", "main", ("main",), (Table("main", "orders", "table", (column,)),), "1"
    )
    rules = DataRules(filters=(("orders", "total < 5"),))
    with pytest.raises(TidegateError) as caught:
        rewrite(Statement("SELECT total FROM orders"), "trino", rules, catalog, "0" * 64)
    assert caught.value.code is Code.POLICY_MASKED
