"""The loader of Defog's databases, on a small one of ours in the same form."""

import datetime as dt
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bench import defog
from support import mysql_server, postgres_server

SAMPLE = Path(__file__).parents[1] / "support" / "defog_sample"
NOW = dt.datetime(2026, 3, 31, 12, 30, tzinfo=dt.UTC)
SOLD = "SELECT id, loaf_id, pieces, sold_at, sold_ms, booked FROM sale ORDER BY id"


def on_sqlite(folder: Path) -> Any:
    path = folder / "bakery.sqlite"
    defog.make_database("bakery", path, SAMPLE, now=NOW)
    return lambda sql: sqlite3.connect(path).execute(sql).fetchall()


def on_duckdb(folder: Path) -> Any:
    import duckdb

    path = folder / "bakery.duckdb"
    defog.make_database("bakery", path, SAMPLE, now=NOW, comments=True)
    return lambda sql: duckdb.connect(str(path), read_only=True).execute(sql).fetchall()


def on_postgres(_: Path) -> Any:
    server = postgres_server.shared()
    defog.make_database("bakery", server, SAMPLE, now=NOW, comments=True)
    return lambda sql: server.ask(sql, "bakery")


def on_mariadb(_: Path) -> Any:
    server = mysql_server.shared()
    defog.make_database("bakery", server, SAMPLE, now=NOW, comments=True)
    return lambda sql: server.script(sql, "bakery")


ENGINES = pytest.mark.parametrize("engine", [on_sqlite, on_duckdb, on_postgres, on_mariadb])


@ENGINES
def test_every_engine_gets_the_same_rows_with_dates_relative_to_the_day(
    engine: Any, tmp_path: Path
) -> None:
    ask = engine(tmp_path)
    rows = [tuple(str(value) for value in row) for row in ask(SOLD)]
    assert rows == [
        ("1", "L1", "3", "2026-01-05 08:30:00", "1767601800000", "20260105 08:30:00"),
        ("2", "L2", "1", "2026-03-28 12:30:00", "1774701000000", "20260328 12:30:00"),
        ("3", "L1", "5", "2026-02-02 00:00:00", "0", "None"),
    ]
    assert ask("SELECT city, country FROM shop WHERE opened IS NULL") == [("Gent", "Belgium")]
    assert [str(row[0]) for row in ask("SELECT opened FROM shop WHERE id = 2")] == ["2024-03-31"]
    assert ask("SELECT name FROM loaf WHERE price > 4 AND is_vegan") == [("Dark; dense",)]


@ENGINES
def test_the_accepted_statements_answer_the_questions(engine: Any, tmp_path: Path) -> None:
    ask = engine(tmp_path)
    dialect = {on_sqlite: "sqlite", on_mariadb: "mysql"}.get(engine, "postgres")
    kinds, shops = defog.read_questions(SAMPLE, dialect, "bakery")
    assert sorted(map(tuple, ask(kinds.accepted[0]))) == [("rye", Decimal(1)), ("wheat", 8)]
    assert sorted(ask(shops.accepted[0])) == [("Bern",), ("Köln",)]


def test_braces_stand_for_every_choice_of_columns() -> None:
    kinds, shops = defog.read_questions(SAMPLE, "postgres")
    counted = "sum(sale.pieces) FROM sale JOIN loaf ON sale.loaf_id = loaf.loaf_id GROUP BY"
    assert kinds.accepted == (
        f"SELECT loaf.kind, {counted} loaf.kind",
        f"SELECT upper(loaf.kind) AS kind_name, {counted} upper(loaf.kind)",
        f"SELECT loaf.kind, upper(loaf.kind) AS kind_name, {counted} loaf.kind, upper(loaf.kind)",
        "SELECT 'a;b', count(*) FROM sale",
    )
    assert shops.instructions == "Planned shops have no date."


def test_comments_and_foreign_keys_are_a_choice() -> None:
    server = postgres_server.shared()
    keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'f'"
    comments = "SELECT description FROM pg_description WHERE objoid = 'shop'::regclass ORDER BY 1"
    defog.make_database("bakery", server, SAMPLE, comments=True)
    assert server.ask(keys, "bakery") == [(1,)]
    assert server.ask(comments, "bakery") == [("Number of the shop",), ("The shop's city",)]
    defog.make_database("bakery", server, SAMPLE, keys=False)
    assert server.ask(keys, "bakery") == [(0,)]
    assert server.ask(comments, "bakery") == []


def test_a_folder_that_is_absent_is_said_with_the_way_to_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(defog.VARIABLE, raising=False)
    with pytest.raises(defog.DefogAbsentError, match="TIDEGATE_DEFOG"):
        defog.find_folder()
    monkeypatch.setenv(defog.VARIABLE, str(tmp_path))
    with pytest.raises(defog.DefogAbsentError, match="No dump"):
        defog.find_folder()
    monkeypatch.setenv(defog.VARIABLE, str(SAMPLE))
    assert defog.list_databases(defog.find_folder()) == ["bakery"]
    with pytest.raises(defog.DefogAbsentError, match="bakery"):
        defog.read_database(defog.find_folder(), "absent")
