"""One JSON rendering per value on all engines: the table of `docs/explanation/values.md`, run."""

import re

import pytest

from support.documents import ROOT
from support.engine_cases import CASES
from tidegate.results.json_values import encode_rows

DOCUMENT = ROOT / "docs" / "explanation" / "values.md"
ENGINES = {"PostgreSQL": "postgres", "MariaDB": "mysql", "DuckDB": "duckdb", "SQLite": "sqlite"}


def table():
    """(value, JSON, {engine: expression}) of each line."""
    lines = [line for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    names, _, *rows = cells
    for what, rendering, *expressions in rows:
        by_engine = {
            ENGINES[name]: re.fullmatch(r"`(.*)`", cell)[1]
            for name, cell in zip(names[2:], expressions, strict=True)
            if cell != "–"
        }
        yield what, rendering.strip("`"), by_engine


@pytest.mark.parametrize("name", list(ENGINES.values()))
async def test_a_value_is_written_as_the_document_says(name, tmp_path):
    case = CASES[name].prepare(tmp_path)
    lines = [(what, json, by[name]) for what, json, by in table() if name in by]
    assert len(lines) > 10
    async with case.opened() as engine:
        found = {}
        for what, _, expression in lines:
            rows = await case.ask(engine, f"SELECT {expression} AS it")
            found[what] = encode_rows(rows).decode()
        together = ", ".join(f"{line[2]} AS c{at}" for at, line in enumerate(lines))
        rows = await case.ask(engine, f"SELECT {together}")
    assert found == {what: f"[[{json}]]" for what, json, _ in lines}
    assert encode_rows(rows).decode() == f"[[{','.join(json for _, json, _ in lines)}]]"
