"""A result that is held for the console leaves as the values that the database gave."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from contract.surfaces.engine_shops import EngineShop
from contract.surfaces.typed_tables import contents, make_typed
from support.surface_client import WRITER
from tidegate.model.requests import Call, Query
from tidegate.model.results import Limits
from tidegate.model.statements import Statement
from tidegate.products.console.data_export import typed_rows
from tidegate.products.console.result_quota import ResultQuota
from tidegate.products.console.stored_rows import StoredRows
from tidegate.results.formats import Format, writer
from tidegate.results.row_stream import WriterSink
from tidegate.sql.dialects import find


def held(engine_shop: EngineShop, directory: Path, text: str) -> StoredRows:
    """The result of a statement as the console holds it."""
    gate = engine_shop.gate()
    untyped = find(engine_shop.dialect).untyped_columns
    rows = StoredRows(ResultQuota(directory), untyped=untyped)
    request = Query(Statement(text), limits=Limits(1_000), sink=WriterSink(rows))

    async def read() -> None:
        async with gate.opened():
            await gate.handle(Call(WRITER, "console", "run", request, "shop"))

    asyncio.run(read())
    return rows


def exported(rows: StoredRows, form: Format, engine_shop: EngineShop) -> str:
    parts: list[bytes] = []
    target = writer(form, parts.append, table="typed", dialect=engine_shop.dialect)
    target.begin(rows.columns)
    for part in typed_rows(rows):
        target.write(part)
    target.end()
    return b"".join(parts).decode()


def test_a_held_result_of_every_type_goes_back_into_its_table(
    engine_shop: EngineShop, tmp_path: Path
) -> None:
    make_typed(engine_shop)
    before = contents(engine_shop, "typed")
    rows = held(engine_shop, tmp_path, "SELECT * FROM typed")
    assert rows.count == len(before)
    inserts = exported(rows, "sql", engine_shop)
    rows.close()
    engine_shop.script("DELETE FROM typed")
    engine_shop.script(inserts)
    assert contents(engine_shop, "typed") == before


@pytest.mark.needs("workbench")
def test_a_held_result_has_the_json_of_an_export_of_its_statement(
    engine_shop: EngineShop, tmp_path: Path
) -> None:
    make_typed(engine_shop)
    rows = held(engine_shop, tmp_path, "SELECT * FROM typed ORDER BY id")
    own = json.loads(exported(rows, "json", engine_shop))
    rows.close()
    direct = engine_shop.result(
        "export_data", format="json", query="SELECT * FROM typed ORDER BY id"
    )
    assert own == json.loads(direct["data"])


@pytest.mark.needs("workbench")
def test_json_of_many_levels_is_shown_and_leaves_as_its_text(
    engine_shop: EngineShop, tmp_path: Path
) -> None:
    deep = "[" * 2_000 + "]" * 2_000
    kind = {"postgres": "json", "mysql": "TEXT", "duckdb": "JSON", "sqlite": "JSON"}
    engine_shop.script(f"CREATE TABLE typed (id INTEGER, j {kind[engine_shop.dialect]})")
    engine_shop.script(f"INSERT INTO typed VALUES (1, '{deep}')")
    rows = held(engine_shop, tmp_path, "SELECT * FROM typed")
    assert json.loads(rows.page(0, 1)) == [["1", deep]]
    for form in ("csv", "json", "jsonl"):
        assert deep in exported(rows, form, engine_shop)
    inserts = exported(rows, "sql", engine_shop)
    rows.close()
    before = contents(engine_shop, "typed")
    engine_shop.script("DELETE FROM typed")
    engine_shop.script(inserts)
    assert contents(engine_shop, "typed") == before
    for form in ("csv", "json", "sql"):
        direct = engine_shop.result("export_data", format=form, tables=["typed"])
        assert deep in direct["data"]
    shown = engine_shop.result("execute_query", query="SELECT * FROM typed")
    assert deep in json.dumps(shown)
