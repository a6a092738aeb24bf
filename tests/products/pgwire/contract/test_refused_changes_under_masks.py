"""What PostgreSQL says of a change that it refuses quotes nothing hidden, also where the change is
of a table without masks, and where the refusal comes at the COMMIT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.postgres_surface import PostgresShop
from support.wire_server import wire_server

TABLES = """
CREATE TABLE rooms (id int PRIMARY KEY);
CREATE TABLE people (id int PRIMARY KEY, email text,
  room int NOT NULL REFERENCES rooms ON DELETE SET NULL ON UPDATE CASCADE CHECK (room < 50));
CREATE TABLE noted (id int, state text);
CREATE TABLE later (id int);
CREATE TABLE plain (id int PRIMARY KEY);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE secret text := (SELECT max(email) FROM people); BEGIN
  RAISE EXCEPTION 'refused for %', secret USING DETAIL = secret, HINT = secret,
    TABLE = secret, CONSTRAINT = secret,
    ERRCODE = coalesce(to_jsonb(NEW) ->> 'state', '23514');
END $$;
CREATE TRIGGER tells BEFORE INSERT ON noted FOR EACH ROW EXECUTE FUNCTION tell();
CREATE CONSTRAINT TRIGGER tells AFTER INSERT ON later DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION tell();
INSERT INTO rooms VALUES (1), (2);
INSERT INTO people VALUES (1, 'ada@hidden.example', 1);
INSERT INTO plain VALUES (1);
"""
STATES = ("P0001", "25006", "08P01", "53300", "40001", "08006", "54001", "42601")
TEXTS = [
    "DELETE FROM rooms WHERE id = 1",
    "UPDATE rooms SET id = 77 WHERE id = 1",
    "BEGIN; DELETE FROM rooms WHERE id = 1; COMMIT",
    "SELECT 1; DELETE FROM public.rooms WHERE id = 1",
    "INSERT INTO noted VALUES (1)",
    *[f"INSERT INTO noted VALUES (1, '{state}')" for state in STATES],
    "INSERT INTO later VALUES (1)",
    "INSERT INTO later VALUES (1); SELECT 1",
    "BEGIN; INSERT INTO later VALUES (1); COMMIT",
]  # fmt: skip


def _said(info: str, text: str) -> tuple[str | None, str]:
    """The SQLSTATE and all the words of the error of a text."""
    with psycopg.connect(info, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(text.encode())
        diag = caught.value.diag
        words = [str(getattr(diag, name)) for name in dir(diag) if not name.startswith("_")]
        return caught.value.sqlstate, " ".join([*words, str(caught.value)])


def _held(shop: PostgresShop) -> list[Any]:
    return [
        shop.ask(f"SELECT * FROM {table} ORDER BY 1")
        for table in ("rooms", "people", "noted", "later", "plain")
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"masks": [{"column": "people.email", "show": "nothing"}]},
        {"filters": [{"table": "people", "where": "id > 5"}]},
    ],
)
def test_a_refused_change_of_another_table_quotes_nothing_hidden(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    shop = PostgresShop.new(TABLES)
    before = _held(shop)
    source = {"name": "pg", "url": shop.url, "access": "write", **settings}
    with wire_server(tmp_path, sources=[source]) as served:
        for text in TEXTS:
            _, words = _said(served.conninfo("pg"), text)
            assert "hidden.example" not in words, text
        state, words = _said(served.conninfo("pg"), "INSERT INTO plain VALUES (1)")
        assert (state, "already exists" in words) == ("23505", True)
    assert _held(shop) == before
