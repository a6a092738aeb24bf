"""No caller sees what another one runs: on no road, by no spelling, through no view."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from support.eventually import wait_until
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer, wire_server

pytestmark = pytest.mark.needs("pgwire")

SECRET = "hush-4111"
VIEWS = """
CREATE SCHEMA more;
CREATE TABLE notes (at text);
CREATE VIEW direct AS SELECT pid, query FROM pg_stat_activity;
CREATE VIEW more.behind AS SELECT left(query, 40) AS q FROM public.direct;
CREATE VIEW called AS SELECT a.query FROM pg_stat_get_activity(NULL) AS a;
CREATE VIEW single AS SELECT pg_stat_get_backend_activity(i) AS q
  FROM pg_stat_get_backend_idset() AS i;
CREATE MATERIALIZED VIEW kept AS SELECT query FROM pg_stat_activity;
CREATE VIEW over_kept AS SELECT * FROM kept;
"""
READS = [
    "SELECT * FROM pg_stat_activity",
    "TABLE pg_stat_activity",
    "SELECT a FROM pg_catalog.pg_stat_activity AS a",
    "SELECT to_jsonb(a) FROM PG_STAT_ACTIVITY a",
    'SELECT "pg_stat_activity".query FROM "pg_stat_activity"',
    "SELECT x.c21 FROM pg_stat_activity AS x(c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12,"
    " c13, c14, c15, c16, c17, c18, c19, c20, c21, c22)",
    "WITH a AS (TABLE pg_stat_activity) SELECT query FROM a",
    "SELECT b.query FROM pg_stat_activity a JOIN pg_stat_activity b USING (datid)",
    "SELECT string_agg(query, ',') FROM pg_stat_activity",
    "SELECT (SELECT max(query) FROM pg_catalog . pg_stat_activity)",
    "SELECT query FROM /* pg_locks */ pg_stat_activity -- x",
    f"SELECT count(*) AS found FROM pg_stat_activity WHERE query LIKE '%{SECRET[:4]}%4111%'"
    " AND pid <> pg_backend_pid()",
    "SELECT * FROM pg_stat_activity UNION ALL TABLE pg_stat_activity",
]
ALIKE = """
CREATE TABLE "Pg_Stat_Activity" (id int, query text);
INSERT INTO "Pg_Stat_Activity" VALUES (7, 'own');
CREATE TABLE more.pg_stat_activity (id int, query text);
INSERT INTO more.pg_stat_activity VALUES (7, 'own');
CREATE TABLE "PG_CLASS" (id int, query text); INSERT INTO "PG_CLASS" VALUES (7, 'own');
CREATE TABLE public.pg_class (id int, query text); INSERT INTO public.pg_class VALUES (7, 'own');
CREATE TABLE more.pg_shadow (id int, query text); INSERT INTO more.pg_shadow VALUES (7, 'own');
CREATE SCHEMA "PG_CATALOG"; CREATE TABLE "PG_CATALOG".pg_stat_activity (id int, query text);
INSERT INTO "PG_CATALOG".pg_stat_activity VALUES (7, 'own');
"""
LIKE_THE_SERVERS = (
    '"Pg_Stat_Activity"',
    "more.pg_stat_activity",
    'more . "pg_stat_activity"',
    '"PG_CLASS"',
    "public.pg_class",
    "more.pg_shadow",
    '"PG_CATALOG".pg_stat_activity',
)
"""Tables of a user that are called like those of the server."""
REFUSED = [
    "SELECT * FROM direct",
    "SELECT * FROM more.behind",
    "SELECT * FROM called",
    "SELECT * FROM single",
    "SELECT * FROM kept",
    "SELECT * FROM over_kept",
    "SELECT * FROM pg_stat_get_activity(NULL)",
    "SELECT pg_stat_get_backend_activity(i) FROM pg_stat_get_backend_idset() AS i",
    "SELECT * FROM pg_stat_statements",
    "SELECT * FROM pg_prepared_statements",
    "SELECT pg_catalog.pg_stat_activity.query FROM pg_catalog.pg_stat_activity",
    'SELECT * FROM U&"pg_stat_\\0061ctivity"',
    "INSERT INTO notes SELECT query FROM pg_stat_activity",
    "WITH a AS (SELECT query FROM pg_stat_activity) INSERT INTO notes SELECT query FROM a",
    "CREATE TABLE copied AS SELECT query FROM pg_stat_activity",
    "CREATE VIEW mine AS SELECT query FROM pg_stat_activity",
    'INSERT INTO "Pg_Stat_Activity" SELECT pid, query FROM pg_stat_activity',
    'UPDATE more.pg_stat_activity SET query = a.query FROM "pg_stat_activity" AS a WHERE id = 7',
    'DELETE FROM "PG_CLASS" WHERE query IN (SELECT query FROM PG_CATALOG.pg_stat_activity)',
    "DO $$ BEGIN INSERT INTO notes SELECT query FROM pg_stat_activity; END $$",
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PostgresShop, WireServer]]:
    shop = PostgresShop.lasting(VIEWS + ALIKE)
    sources = [{"name": "pg", "url": shop.url, "access": "admin"}]
    with wire_server(tmp_path_factory.mktemp("sessions"), sources=sources) as server:
        yield shop, server
    shop.drop()


@pytest.fixture
def other(served: tuple[PostgresShop, WireServer]) -> Iterator[psycopg.Connection]:
    """A session of another caller of the same source, in a block, with its statement in sight."""
    shop, server = served
    with psycopg.connect(server.conninfo("pg", "reader")) as connection:
        connection.execute(f"SELECT '{SECRET}' AS said")
        count = (
            f"SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%{SECRET}%'"
            " AND pid <> pg_backend_pid()"
        )
        # The session of the test before may take a moment to end at the server.
        wait_until(lambda: shop.ask(count) == [(1,)], "one session with the statement")
        yield connection


@pytest.mark.parametrize("text", READS)
def test_no_spelling_shows_what_another_token_runs(
    served: tuple[PostgresShop, WireServer], other: psycopg.Connection, text: str
) -> None:
    _, server = served
    with psycopg.connect(server.conninfo("pg"), autocommit=True) as gate:
        for prepared in (False, True):
            cursor = gate.execute(text, prepare=prepared)
            found = cursor.fetchall()
            assert cursor.description is not None and found
            own = text if "LIKE" in text else ""
            assert SECRET not in repr(found).replace(own, "")
            if cursor.description[0].name == "found":
                assert found == [(0,)]
        with gate.transaction():
            assert SECRET not in repr(gate.execute(text).fetchall())
        if not text.startswith("TABLE"):
            assert SECRET not in repr(gate.execute(f"EXPLAIN ANALYZE {text}").fetchall())
            with gate.cursor().copy(f"COPY ({text.partition(' -- ')[0]}) TO STDOUT") as copied:
                assert SECRET.encode() not in b"".join(map(bytes, copied))


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_show_or_copy_it_is_refused_and_does_nothing(
    served: tuple[PostgresShop, WireServer], other: psycopg.Connection, text: str
) -> None:
    shop, server = served
    with (
        psycopg.connect(server.conninfo("pg"), autocommit=True) as gate,
        pytest.raises(psycopg.Error) as caught,
    ):
        gate.execute(text)
    assert caught.value.sqlstate != "XX000" and SECRET not in str(caught.value)
    assert shop.ask("SELECT count(*) FROM notes") == [(0,)]
    assert shop.ask("SELECT count(*) FROM pg_class WHERE relname IN ('copied', 'mine')") == [(0,)]


def test_a_users_table_that_is_called_like_one_of_the_servers_is_a_table_like_any_other(
    served: tuple[PostgresShop, WireServer], other: psycopg.Connection
) -> None:
    _, server = served
    with psycopg.connect(server.conninfo("pg"), autocommit=True) as gate:
        for table in LIKE_THE_SERVERS:
            gate.execute(f"UPDATE {table} SET query = 'new' WHERE id = 7")
            assert gate.execute(f"TABLE {table}").fetchall() == [(7, "new")], table
            gate.execute(f"INSERT INTO {table} VALUES (8, 'more')")
            gate.execute(f"DELETE FROM {table} WHERE id = 8")
            both = gate.execute(
                f"SELECT t.query, a.query FROM {table} AS t JOIN pg_stat_activity AS a ON true"
                " WHERE a.state = 'idle in transaction'"
            ).fetchall()
            assert both and set(both) == {("new", "<hidden>")}, table


def test_all_but_the_texts_is_what_the_server_itself_says(
    served: tuple[PostgresShop, WireServer], other: psycopg.Connection
) -> None:
    shop, server = served
    columns = [
        name
        for (name,) in shop.ask(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'pg_stat_activity'::regclass"
            " AND attnum > 0 ORDER BY attnum"
        )
    ]
    stable = [each for each in columns if each not in ("query", "query_id", "backend_xmin")]
    text = (
        f"SELECT {', '.join(stable)} FROM pg_stat_activity WHERE state = 'idle in transaction'"
        f" AND datname = '{shop.database}' ORDER BY pid"
    )
    with psycopg.connect(server.conninfo("pg"), autocommit=True) as gate:
        whole = gate.execute("SELECT * FROM pg_stat_activity")
        assert [column.name for column in whole.description or ()] == columns
        assert [*map(repr, gate.execute(text).fetchall())] == [*map(repr, shop.ask(text))]
        shown = gate.execute(
            "SELECT DISTINCT query FROM pg_stat_activity WHERE state = 'idle in transaction'"
            f" AND datname = '{shop.database}'"
        )
        assert shown.fetchall() == [("<hidden>",)]
        ((own,),) = gate.execute(
            "SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        ).fetchall()
        assert "pg_backend_pid()" in own
        named = "WITH pg_stat_activity AS (SELECT 'mine' AS query) SELECT * FROM pg_stat_activity"
        assert gate.execute(named).fetchall() == [("mine",)]
