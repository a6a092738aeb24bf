"""Command tags are those of PostgreSQL."""

from __future__ import annotations

import psycopg

from support.postgres_surface import PostgresShop
from support.wire_server import WireServer

STATEMENTS = (
    "CREATE OR REPLACE VIEW tagged AS SELECT 1 AS a",
    "EXPLAIN (COSTS OFF) SELECT * FROM tagged",
    "ALTER VIEW tagged RENAME TO renamed",
    "CREATE TABLE tags (a int)",
    "CREATE UNIQUE INDEX tagged_index ON tags (a)",
    "INSERT INTO tags VALUES (1), (2)",
    "UPDATE tags SET a = 3 WHERE a = 2",
    "DELETE FROM tags WHERE a = 1",
    "SELECT * FROM tags",
    "ALTER TABLE tags ADD COLUMN b int",
    "CREATE TABLE copied AS SELECT * FROM generate_series(1, 3) AS n",
    "CREATE TABLE IF NOT EXISTS copied AS SELECT 1 AS n",
    "CREATE TABLE bare AS SELECT * FROM copied WITH NO DATA",
    "SELECT n INTO chosen FROM copied WHERE n > 1",
    "CREATE MATERIALIZED VIEW matter AS SELECT * FROM copied",
    "REFRESH MATERIALIZED VIEW matter",
    "WITH u AS (UPDATE copied SET n = n + 10 WHERE n = 1 RETURNING n) SELECT * FROM u WHERE n = 11",
    "WITH n AS (SELECT 99 AS n) INSERT INTO copied SELECT n FROM n RETURNING n",
    "/* first */ WITH n AS (SELECT 1) SELECT * FROM n",
    "(SELECT 1) UNION ALL (SELECT 2)",
)


MADE = "DROP MATERIALIZED VIEW matter; DROP TABLE copied, bare, chosen"


def test_each_statement_ends_with_the_tag_that_postgresql_gives_it(
    server: WireServer, postgres: PostgresShop
) -> None:
    said: list[list[str | None]] = []
    for info in (server.conninfo("pg"), postgres.server.conninfo(postgres.database)):
        with psycopg.connect(info, autocommit=True) as connection:
            said.append([connection.execute(text).statusmessage for text in STATEMENTS])
        postgres.server.ask("DROP TABLE tags; DROP VIEW renamed; " + MADE, postgres.database)
    assert said[0] == said[1]


def test_a_session_that_only_reads_says_so_outside_of_blocks_as_well(
    server: WireServer, postgres: PostgresShop
) -> None:
    asked = "SELECT current_setting('transaction_read_only')"
    for info in (server.conninfo("pg"), postgres.server.conninfo(postgres.database)):
        with psycopg.connect(info, autocommit=True) as connection:
            connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
            for text in ("SHOW transaction_read_only", asked):
                assert connection.execute(text).fetchone() == ("on",), (info, text)
