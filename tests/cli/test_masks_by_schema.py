"""A mask without a schema is for each table of that name that has the column (trials, C): another
schema's table of the name that lacks it is neither masked nor closed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from cli.conftest import Run


@pytest.mark.needs("duckdb")
def test_a_table_of_the_name_without_the_masked_column_stays_readable(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE users (id INTEGER, email VARCHAR)")
        made.execute("INSERT INTO users VALUES (1, 'ann@example.org')")
        made.execute("CREATE SCHEMA other; CREATE TABLE other.users (id INTEGER, seats INTEGER)")
        made.execute("INSERT INTO other.users VALUES (1, 4)")
    added = run("source", "add", "shop", f"duckdb:///{path}", "--mask", "users.email=nothing")
    assert added.status == 0, added.err

    def rows(sql: str) -> object:
        return run("query", "shop", sql, "--json").json["rows"]

    assert rows("SELECT * FROM users") == [[1, None]]
    assert rows("SELECT * FROM other.users") == [[1, 4]]
    joined = "SELECT u.email, o.seats FROM other.users AS o JOIN users AS u USING (id)"
    assert rows(joined) == [[None, 4]]
