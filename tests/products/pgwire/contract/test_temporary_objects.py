"""What would last for a session alone is refused, and not reported as made and then gone."""

from __future__ import annotations

import psycopg
import pytest

from support.wire_server import WireServer
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

MADE = {
    "pg": [
        "CREATE TEMP TABLE gone (a int)",
        "CREATE TEMPORARY TABLE gone AS SELECT 1 AS a",
        "CREATE LOCAL TEMP TABLE gone (a int)",
        "CREATE GLOBAL TEMPORARY TABLE gone (a int)",
        "CREATE TEMP TABLE gone ON COMMIT DROP AS SELECT 1 AS a",
        "SELECT 1 AS a INTO TEMP gone",
        "SELECT 1 AS a INTO TEMPORARY TABLE gone",
        "CREATE TEMP VIEW gone AS SELECT 1 AS a",
        "CREATE OR REPLACE TEMP VIEW gone AS SELECT 1 AS a",
        "CREATE TEMP SEQUENCE gone",
        "CREATE TABLE pg_temp.gone (a int)",
        'CREATE TABLE IF NOT EXISTS "pg_temp".gone (a int)',
        "CREATE DOMAIN pg_temp.gone AS int",
        "CREATE FUNCTION pg_temp.gone() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "PREPARE gone AS SELECT 1",
        "LISTEN gone",
        "LOCK TABLE item",
    ],
    "lite": [
        "CREATE TEMP TABLE gone (a)",
        "CREATE TABLE temp.gone (a)",
        "CREATE TEMP VIEW gone AS SELECT 1 AS a",
        "ATTACH ':memory:' AS gone",
    ],
    "duck": [
        "CREATE TEMP TABLE gone (a INTEGER)",
        "CREATE OR REPLACE TEMPORARY TABLE gone AS SELECT 1 AS a",
        "CREATE TABLE temp.gone (a INTEGER)",
        "CREATE TABLE temp.main.gone (a INTEGER)",
        "CREATE TEMP VIEW gone AS SELECT 1 AS a",
        "CREATE TEMP SEQUENCE gone",
        "CREATE TEMP MACRO gone() AS 1",
        "ATTACH ':memory:' AS gone",
        "PREPARE gone AS SELECT 1",
        "PRAGMA threads = 2",
    ],
    "maria": [
        "CREATE TEMPORARY TABLE gone (a INT)",
        "CREATE OR REPLACE TEMPORARY TABLE gone (a INT)",
        "CREATE TEMPORARY TABLE gone SELECT 1 AS a",
        "CREATE TEMPORARY SEQUENCE gone",
        "SELECT 1 INTO @gone",
        "SELECT @gone := 1",
        "LOCK TABLES item READ",
        "HANDLER item OPEN",
    ],
}


@pytest.mark.parametrize(("source", "text"), [(s, t) for s, texts in MADE.items() for t in texts])
def test_what_lasts_for_a_session_alone_is_refused(
    server: WireServer, source: str, text: str, request: pytest.FixtureRequest
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    with psycopg.connect(server.conninfo(source), autocommit=True) as gate:
        with pytest.raises(psycopg.Error) as caught:
            gate.execute(text)
        assert caught.value.sqlstate in ("0A000", "42501")
        if "TEMP" in text.upper() and "MACRO" not in text and "FUNCTION" not in text:
            assert "gone before the next statement" in str(caught.value)
            assert "WITH name AS" in str(caught.value)
        with pytest.raises(psycopg.Error):
            gate.execute("SELECT * FROM gone")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT temp.id FROM item AS temp WHERE temp.id = 1",
        "WITH temp AS (SELECT 1 AS id) SELECT temp.id FROM temp",
    ],
)
@pytest.mark.parametrize("source", ["pg", "lite", "duck"])
def test_a_name_like_the_word_is_no_temporary_table(server: WireServer, source: str, text: str):
    with psycopg.connect(server.conninfo(source), autocommit=True) as gate:
        assert gate.execute(text).fetchall() == [(1,)]
        assert judge(f"CREATE VIEW lasting AS {text}", "postgres").effect is Effect.WRITE
