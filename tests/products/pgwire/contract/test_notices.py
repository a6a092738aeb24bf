"""What a PostgreSQL source notes while it runs a statement reaches the client as from PostgreSQL
itself, unless something of the source is hidden from the caller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.postgres_surface import PostgresShop
from support.wire_server import WireServer, wire_server

TABLES = """
CREATE TABLE told (id int PRIMARY KEY, secret text);
CREATE TABLE child (id int REFERENCES told (id) ON DELETE CASCADE);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE NOTICE 'made % of %', NEW.id, NEW.secret USING DETAIL = 'its detail', HINT = 'its hint';
  RAISE WARNING USING MESSAGE = 'grün', ERRCODE = 'TG001';
  RAISE INFO 'for all';
  RAISE DEBUG 'for none';
  RAISE LOG 'for the server';
  RETURN NEW;
END $$;
CREATE TRIGGER tells BEFORE INSERT ON told FOR EACH ROW EXECUTE FUNCTION tell();
"""
TAKEN = "CREATE TABLE IF NOT EXISTS told (id int)"
TEXTS = [
    TAKEN,
    "CREATE SCHEMA IF NOT EXISTS public",
    "CREATE INDEX IF NOT EXISTS told_pkey ON told (id)",
    "ALTER TABLE told ADD COLUMN IF NOT EXISTS secret text",
    "INSERT INTO told VALUES (1, 'a')",
    "INSERT INTO told VALUES (2, 'b'), (3, 'c') RETURNING id",
    "INSERT INTO told VALUES (2, 'b')",
    f"SELECT 1 AS {'a' * 70}",
    "SELECT to_tsquery('the')",
    "SELECT 1",
    "UPDATE told SET secret = 'x' WHERE id = 1",
    "CREATE INDEX CONCURRENTLY told_secret ON told (secret)",
]
BLOCK = ["BEGIN", "INSERT INTO told VALUES (7, 'a')", "SELECT to_tsquery('the')", "ROLLBACK"]
CURSOR = ["BEGIN", "DECLARE c CURSOR FOR SELECT to_tsquery('the')", "FETCH ALL FROM c", "COMMIT"]


def noted(info: str, texts: list[str], *setup: str, prepare: bool = False) -> list[Any]:
    """The notices of each statement, and how it ended."""
    found: list[Any] = []
    with psycopg.connect(info, autocommit=True) as connection:
        for text in setup:
            connection.execute(text.encode())
        told: list[tuple[Any, ...]] = []
        connection.add_notice_handler(
            lambda each: told.append(
                (each.severity, each.severity_nonlocalized, each.sqlstate, each.message_primary,
                 each.message_detail, each.message_hint)
            )
        )  # fmt: skip
        for text in texts:
            try:
                ended = connection.execute(text.encode(), prepare=prepare).statusmessage
            except psycopg.Error as error:
                ended, told[:] = error.sqlstate, []  # those of what has failed are not passed on
            found.append((text, ended, list(told)))
            told.clear()
    return found


def both(tmp_path: Path, texts: list[str], *setup: str, prepare: bool = False) -> list[Any]:
    direct, gated = PostgresShop.new(TABLES), PostgresShop.new(TABLES)
    source = {"name": "pg", "url": gated.url, "access": "write"}
    with wire_server(tmp_path, sources=[source]) as served:
        return [
            noted(direct.server.conninfo(direct.database), texts, *setup, prepare=prepare),
            noted(served.conninfo("pg"), texts, *setup, prepare=prepare),
        ]


LEVELS = ["notice", "warning", "error", "info", "log"]


@pytest.mark.parametrize("prepare", [False, True], ids=["simple", "prepared"])
def test_notices_are_those_of_postgresql(tmp_path: Path, prepare: bool):
    direct, gate = both(tmp_path, [*TEXTS, *BLOCK, *CURSOR], prepare=prepare)
    assert gate == direct
    assert sum(len(told) for _, _, told in direct) > 10


def test_a_client_gets_the_messages_that_it_asked_for(tmp_path: Path):
    texts = [
        part
        for at, level in enumerate(LEVELS)
        for part in (
            f"SET client_min_messages = {level}",
            f"INSERT INTO told VALUES ({at + 20}, 'x')",
            TAKEN,
            "COMMIT",
            "SET LOCAL lock_timeout = 1",
        )
    ]
    direct, gate = both(tmp_path, texts)
    assert [_plain(each) for each in gate] == [_plain(each) for each in direct]


def _plain(answer: Any) -> Any:
    """An answer with messages as short words: of our own the wording is ours. Those of LOG are not
    asked of the source."""
    text, ended, told = answer
    words = [(each[1], each[2], (each[3] or "").lower().rstrip(".")) for each in told]
    return text, ended, [each for each in words if each[0] != "LOG"]


QUOTING = """
INSERT INTO told VALUES (1, 's');
CREATE FUNCTION quote() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE NOTICE 'hidden: %', (SELECT secret FROM told LIMIT 1); RETURN NEW;
END $$;
CREATE TRIGGER quotes BEFORE INSERT ON child FOR EACH ROW EXECUTE FUNCTION quote();
"""
RULES: list[dict[str, Any]] = [
    {"masks": [{"column": "told.secret", "show": "nothing"}]},
    {"filters": [{"table": "told", "where": "id < 2"}]},
]


@pytest.mark.parametrize("rules", RULES)
def test_a_caller_from_whom_something_is_hidden_gets_no_notice(
    tmp_path: Path, rules: dict[str, Any]
):
    shop = PostgresShop.new(TABLES)
    shop.ask("INSERT INTO told VALUES (1, 's')")
    source = {"name": "pg", "url": shop.url, "access": "write", **rules}
    texts = [TAKEN, "INSERT INTO child VALUES (1)", "SELECT id FROM told",
             "SELECT to_tsquery('the')", "INSERT INTO told (id) VALUES (9)"]  # fmt: skip
    with wire_server(tmp_path, sources=[source]) as served:
        found = noted(served.conninfo("pg"), texts)
    assert [told for _, _, told in found] == [[]] * len(texts)
    assert ("SELECT to_tsquery('the')", "SELECT 1", []) in found


def test_what_one_statement_noted_is_not_told_of_another(server: WireServer):
    with (
        psycopg.connect(server.conninfo("pg"), autocommit=True) as one,
        psycopg.connect(server.conninfo("pg"), autocommit=True) as other,
    ):
        told: list[str | None] = []
        other.add_notice_handler(lambda each: told.append(each.message_primary))
        for _ in range(5):
            one.execute("CREATE TABLE IF NOT EXISTS kinds (id int)")
            other.execute("SELECT 1")
        assert told == []


STORM = """
CREATE TABLE storm (count int, size int);
CREATE FUNCTION tell_often() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  FOR i IN 1..NEW.count LOOP RAISE NOTICE '% %', i, repeat('x', NEW.size); END LOOP; RETURN NEW;
END $$;
CREATE TRIGGER tells BEFORE INSERT ON storm FOR EACH ROW EXECUTE FUNCTION tell_often();
"""


def test_of_many_notices_the_first_are_passed_on_and_the_others_counted(tmp_path: Path):
    shop = PostgresShop.new(STORM)
    source = {"name": "pg", "url": shop.url, "access": "write"}
    texts = ["INSERT INTO storm VALUES (100, 1)", "INSERT INTO storm VALUES (30000, 1)"]
    with wire_server(tmp_path, sources=[source]) as served:
        first, second = [told for _, _, told in noted(served.conninfo("pg"), texts)]
    assert len(first) == 100
    assert [each[3].split()[0] for each in second] == [*map(str, range(1, 101)), "29,900"]
    assert second[-1][1:3] == ("WARNING", "01000")
    assert "29,900 more notices of the database are left out" in second[-1][3]


def test_notices_are_cut_with_a_mark_and_are_no_part_of_the_rows_that_have_a_bound(tmp_path: Path):
    """Together they are more than may be taken in of rows."""
    shop = PostgresShop.new(STORM)
    source = {"name": "pg", "url": shop.url, "access": "write"}
    texts = ["INSERT INTO storm VALUES (1500, 100000)"]
    with wire_server(tmp_path, sources=[source]) as served:
        ((_, ended, told),) = noted(served.conninfo("pg"), texts)
    assert ended == "INSERT 0 1"
    assert {(len(each[3]), each[3][-4:]) for each in told[:-1]} == {(8_003, "x...")}
    assert [tuple(row) for row in shop.ask("SELECT count, size FROM storm")] == [(1500, 100000)]
