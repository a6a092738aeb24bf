"""A macro of DuckDB that takes the place of a function or an operator shows nothing hidden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Ended, tidegate

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


CALLED = {("hash", "sha256"), ("partial", "substr")}
"""What masks call by name. What a filter calls its words do not always show."""


@pytest.mark.parametrize("rules", RULES, ids=["hash", "partial", "filter"])
@pytest.mark.parametrize("macro", MACROS)
def test_a_macro_in_the_place_of_a_function_shows_nothing_hidden(
    tmp_path: Path, macro: str, rules: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    import duckdb

    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (id int, email varchar, area varchar)")
        connection.execute(
            "INSERT INTO people VALUES (1, 'ann@example.com', 'north'), (2, 'bob@example.com', 'x')"
        )
    settings = tmp_path / "settings.json"
    source = {"name": "people", "url": f"duckdb:///{path}", **rules}
    settings.write_text(json.dumps({"sources": [source]}))
    settings.chmod(0o600)

    def ask() -> Ended:
        text = "SELECT id, email FROM people"
        words = ("query", "people", text, "--json", "--config", str(settings))
        return tidegate(*words, state=tmp_path / "state")

    before = ask()
    assert before.status == 0, before.err
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE MACRO {macro}")
    ended = ask()
    name = macro.partition("(")[0].strip('"')
    rule = request.node.callspec.id.rpartition("-")[2]
    calls = (rule, name) in CALLED or not name.isalnum()  # an operator, or of the catalog
    if calls or rule == "filter":
        assert ended.status != 0, ended.out
        assert f"`{name}`" in ended.out + ended.err
        assert "bob@" not in ended.out + ended.err
    else:
        assert ended.json["rows"] == before.json["rows"]
