"""A macro of DuckDB that takes the place of a function or an operator shows nothing hidden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command_line import tidegate

MACROS = (
    "sha256(x) AS x",
    '"||"(a, b) AS b',
    '"~~"(a, b) AS true',
    "substr(a, b, c := 1) AS a",
    "lower(x) AS 'north'",
    "duckdb_functions() AS TABLE SELECT 'x' AS function_name",
)
RULES: tuple[dict[str, Any], ...] = (
    {"masks": [{"column": "people.email", "show": "hash"}]},
    {"masks": [{"column": "people.email", "show": "partial"}]},
    {"filters": [{"table": "people", "where": "lower(area) = 'north'"}]},
)


@pytest.mark.parametrize("rules", RULES, ids=["hash", "partial", "filter"])
@pytest.mark.parametrize("macro", MACROS)
def test_a_macro_in_the_place_of_a_function_shows_nothing_hidden(
    tmp_path: Path, macro: str, rules: dict[str, Any]
) -> None:
    import duckdb

    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (id int, email varchar, area varchar)")
        connection.execute(
            "INSERT INTO people VALUES (1, 'ann@example.com', 'north'), (2, 'bob@example.com', 'x')"
        )
        connection.execute(f"CREATE MACRO {macro}")
    settings = tmp_path / "settings.json"
    source = {"name": "people", "url": f"duckdb:///{path}", **rules}
    settings.write_text(json.dumps({"sources": [source]}))
    settings.chmod(0o600)
    ended = tidegate(
        *("query", "people", "SELECT id, email FROM people", "--json", "--config", str(settings)),
        state=tmp_path / "state",
    )
    assert ended.status != 0, ended.out
    assert f"`{macro.partition('(')[0].strip(chr(34))}`" in ended.out + ended.err
    assert "bob@" not in ended.out + ended.err
