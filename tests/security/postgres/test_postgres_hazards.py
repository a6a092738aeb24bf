"""What a text does not show, the catalog tells: views, policies, domains, casts, operators."""

import pytest
from msgspec import structs

from tidegate.audit.log import AuditLog
from tidegate.engines.postgres.transaction import TransactionSettings
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.statements import Effect, Statement
from tidegate.store.sqlite.state import SqliteState

TRAPS = """
CREATE TABLE seen (at text);
CREATE FUNCTION spy() RETURNS int LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO seen VALUES ('x'); RETURN 1; END $$;
CREATE FUNCTION quiet(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE VIEW honest AS SELECT id, upper(name) AS name FROM items WHERE id > 2;
CREATE VIEW spying AS SELECT id, spy() AS n FROM items;
CREATE VIEW behind AS SELECT * FROM spying WHERE id < 3;
CREATE VIEW locking AS SELECT pg_advisory_lock(7)::text;
CREATE VIEW files AS SELECT pg_read_file('postgresql.conf');
CREATE VIEW others AS SELECT statement FROM pg_prepared_statements;
CREATE VIEW called AS SELECT p.statement FROM pg_prepared_statement() AS p;
CREATE VIEW written AS SELECT query_to_xml('SELECT 1', true, false, '') FROM items;
CREATE TABLE guarded (id int);
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON guarded USING (spy() = id);
CREATE DOMAIN odd AS int CHECK (quiet(VALUE) > 0);
CREATE FUNCTION similarity_of(a int, b text) RETURNS bool LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = text, FUNCTION = similarity_of);
CREATE FUNCTION upper(int) RETURNS text LANGUAGE sql AS $$ SELECT spy()::text $$;
CREATE EXTENSION IF NOT EXISTS pg_visibility;
CREATE EXTENSION IF NOT EXISTS isn;
"""

HIDING = (
    "SELECT * FROM spying",
    "SELECT * FROM behind",
    'SELECT * FROM public."behind"',
    "TABLE behind",
    "SELECT (SELECT max(n) FROM spying)",
    "SELECT * FROM locking",
    "SELECT * FROM files",
    "SELECT * FROM others",
    "SELECT * FROM called",
    "SELECT * FROM written",
    "SELECT * FROM guarded",
    "SELECT 1::odd",
    "SELECT upper(5)",
    "SELECT spy()",
    "SELECT 1 === 'x'",
    "SELECT (4711).pg_truncate_visibility_map",
    "SELECT (true).isn_weak",
)

PLAIN = (
    "SELECT * FROM honest",
    "SELECT * FROM items JOIN parts ON item_id = items.id",
    "SELECT 'spying', 'upper'",
)


@pytest.fixture
def traps(server, database):
    server.ask(TRAPS, database)


@pytest.mark.parametrize("text", HIDING)
async def test_what_hides_a_function_is_no_read(case, traps, server, database, text):
    async with case.opened() as engine:
        before = server.digest(database)
        judgement = await case.inspect(engine, text)
        assert judgement is None or judgement.effect > Effect.READ
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, text)
        assert caught.value.code in (Code.SQL_FUNCTION, Code.POLICY_READ_ONLY)
        assert server.digest(database) == before


@pytest.mark.parametrize("text", PLAIN)
async def test_what_hides_nothing_is_read(case, traps, text):
    async with case.opened() as engine:
        assert (await case.inspect(engine, text)).effect is Effect.READ
        assert await case.ask(engine, text)


async def test_what_others_changed_is_seen_after_a_write_of_ours(case, server, database):
    async with case.opened() as engine:
        assert await case.ask(engine, "SELECT * FROM items")
        server.ask("CREATE VIEW later AS SELECT pg_advisory_lock(7)::text AS x", database)
        await case.ask(engine, "INSERT INTO void VALUES (1, 'x')", effect=Effect.WRITE)
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, "SELECT * FROM later")
    assert caught.value.code is Code.SQL_FUNCTION


async def test_the_fence_itself_refuses_every_change(case, server, database):
    """As if the judge had let it pass: the transaction is read-only and is rolled back."""
    async with case.opened() as engine:
        before = server.digest(database)
        session = await engine._server.home.take(1)
        for text in (
            "DELETE FROM items",
            "SET TRANSACTION READ WRITE",
            "EXPLAIN ANALYZE CREATE TABLE pwn AS SELECT 1",
            "CREATE TABLE pwn (a int)",
            "SELECT lo_create(0)",
            "SELECT set_config('search_path', 'pwn', false)",
            "SET default_transaction_read_only = off",
            "COMMIT",
            "DEALLOCATE ALL",
            "DISCARD ALL",
            "PREPARE theirs AS DELETE FROM items",
            "EXECUTE theirs",
            "SELECT 1",
        ) * 3:  # as a text, prepared, and by name
            await session.begin_read(text.encode(), None, TransactionSettings(1000))
            await session.settle()
        ((path, mode),) = await session.query_internal(
            b"SELECT current_setting('search_path'), current_setting('transaction_read_only')"
        )
        engine._server.home.give(session)
        assert ("pwn" in path, mode) == (False, "on")
        assert server.digest(database) == before


NAMED = "f" * 63
"""A name of as many bytes as PostgreSQL keeps; behind them a longer one is cut."""

OPERATORS = f"""
CREATE TABLE seen (at text);
CREATE FUNCTION spy() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
  $$ BEGIN PERFORM pg_advisory_lock(4711); RETURN 1; END $$;
CREATE VIEW v_lock AS SELECT spy() AS x;
CREATE FUNCTION "{NAMED}"() RETURNS int LANGUAGE sql AS 'SELECT spy()';
CREATE FUNCTION "größe"() RETURNS int LANGUAGE sql AS 'SELECT spy()';
CREATE TABLE t (id int, note text);
INSERT INTO t VALUES (1, 'a');
CREATE FUNCTION joined(t, int) RETURNS text LANGUAGE sql AS 'SELECT spy()::text';
CREATE OPERATOR || (LEFTARG = t, RIGHTARG = int, FUNCTION = joined);
CREATE OPERATOR + (LEFTARG = t, RIGHTARG = int, FUNCTION = joined);
CREATE TYPE mood AS ENUM ('calm');
CREATE TABLE moods (mood_of mood);
INSERT INTO moods VALUES ('calm');
CREATE FUNCTION felt(mood) RETURNS int LANGUAGE sql AS 'SELECT spy()';
CREATE CAST (mood AS int) WITH FUNCTION felt(mood) AS IMPLICIT;
"""

LEADING_TO_A_LOCK = (
    """SELECT 1 AS "x'", w.x FROM v_lock w, (SELECT 2 AS "y'") z""",
    "SELECT * FROM v_lock",
    f"SELECT {NAMED}ff()",
    f'SELECT "{NAMED}ff"()',
    "SELECT größe()",
    'SELECT "größe"()',
    "SELECT t || 1 FROM t",
    "SELECT t + 1 FROM t",
    "SELECT mood_of + 1 FROM moods",
    "SELECT mood_of::int FROM moods",
    "SELECT CASE WHEN true THEN t || 1 END FROM t",
    "WITH w AS (SELECT t + 1 AS x FROM t) SELECT x FROM w",
)

LEADING_NOWHERE = (
    "SELECT id || note FROM t",
    "SELECT id + 1 FROM t WHERE note || 'x' = 'ax'",
    "SELECT mood_of FROM moods",
    "SELECT $1::int + id FROM t",
)


@pytest.fixture
def locks(server, database):
    server.ask(OPERATORS, database)


@pytest.mark.parametrize("text", LEADING_TO_A_LOCK)
async def test_a_function_of_a_user_never_runs_however_it_is_reached(
    case, locks, server, database, text
):
    async with case.opened() as engine:
        judgement = await case.inspect(engine, text)
        assert judgement is None or judgement.effect > Effect.READ
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, text)
        assert caught.value.code is Code.SQL_FUNCTION
        held = server.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", database)
        assert int(held[0][0]) == 0


@pytest.mark.parametrize("text", LEADING_NOWHERE)
async def test_operators_of_postgresql_are_read_beside_those_of_users(case, locks, text):
    async with case.opened() as engine:
        assert (await case.inspect(engine, text)).effect is Effect.READ


EXTENSIONS = "CREATE EXTENSION IF NOT EXISTS vector; CREATE EXTENSION IF NOT EXISTS pg_trgm"

OF_EXTENSIONS = (
    ("SELECT '[1,2]'::vector <-> '[1,3]'::vector", 1.0),
    ("SELECT l2_distance('[1,2]'::vector, '[1,3]'::vector)", 1.0),
    ("SELECT 'blue' % 'blue'", True),
    ("SELECT similarity('blue', 'blue')", 1.0),
    ("SELECT id FROM items ORDER BY name <-> 'x' LIMIT 1", None),
)


@pytest.mark.parametrize(("text", "value"), OF_EXTENSIONS)
async def test_e_operators_and_functions_of_extensions_are_read(
    case, server, database, text, value
):
    server.ask(EXTENSIONS, database)
    async with case.opened() as engine:
        assert (await case.inspect(engine, text)).effect is Effect.READ
        ((found,),) = await case.ask(engine, text)
    assert value is None or found == value


async def test_e_what_the_catalog_tells_is_explained_as_it_is_done(traps, case, tmp_path):
    source = structs.replace(case.source, access="write")
    state = SqliteState(tmp_path / "state.db")
    audit, history = AuditLog(tmp_path / "audit"), History(state.history)
    connections = SourceConnections(state.sources, open_engine, [source])
    gateway = Gateway(connections, audit, history)
    reader = Actor("reader", "reader", Scope.READ_ONLY)
    try:
        for text in HIDING:
            request = Query(Statement(text))
            call = Call(reader, "test", "query", request, scope=Scope.READ_ONLY, source=source.name)
            judgement, explanation = await gateway.explain(call)
            with pytest.raises(TidegateError) as caught:
                await gateway.handle(call)
            assert judgement.effect > Effect.READ
            assert explanation.verdict.kind == "deny"
            assert explanation.verdict.code == caught.value.code.value
            assert explanation.verdict.rule == caught.value.details["rule"]
    finally:
        await connections.close()
        history.close()
        audit.close()
        state.close()


async def test_the_catalog_of_another_database_is_asked_before_anything_runs_there(
    case, server, database
):
    second = server.new_database()
    server.ask("CREATE TABLE plain (id int)", second)
    server.ask(
        "CREATE FUNCTION spy() RETURNS int LANGUAGE sql AS 'SELECT 1'; "
        "CREATE VIEW v_lock AS SELECT spy() AS x; CREATE TYPE mood AS ENUM ('calm')",
        second,
    )
    async with case.opened() as engine:
        assert await case.ask(engine, "SELECT * FROM plain", database=second) == []
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, "SELECT * FROM v_lock", database=second)
        assert caught.value.code is Code.SQL_FUNCTION
        cursor = await case.start(engine, "SELECT 'calm'::mood AS m", database=second)
        assert [(column.name, column.type) for column in cursor.columns] == [("m", "mood")]
        await cursor.close()


@pytest.mark.parametrize("text", ["SELECT CAST(repeat('z', 5000000) AS int)"])
async def test_a_message_of_any_length_is_cut_where_it_is_read(case, text):
    async with case.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, text)
        assert caught.value.code is Code.SQL_FAILED
        assert len(str(caught.value)) < 5_000


CATALOG_CHANGES = (
    "INSERT INTO pg_auth_members SELECT * FROM pg_auth_members WHERE false",
    "UPDATE pg_catalog.pg_proc SET prosrc = prosrc WHERE false",
    'UPDATE "pg_class" AS c SET relname = relname WHERE false',
    "WITH gone AS (DELETE FROM pg_rewrite WHERE false RETURNING 1) SELECT * FROM gone",
    "MERGE INTO pg_database AS d USING items ON false WHEN MATCHED THEN DELETE",
    "UPDATE members SET admin_option = admin_option WHERE false",
    "INSERT INTO public.all_members SELECT * FROM all_members WHERE false",
)


async def test_no_change_reaches_the_servers_own_tables_by_their_names_or_by_views(
    case, server, database
):
    server.ask(
        "CREATE VIEW members AS SELECT * FROM pg_auth_members;"
        "CREATE VIEW all_members AS SELECT * FROM members",
        database,
    )
    async with case.opened() as engine:
        for text in CATALOG_CHANGES:
            judgement = await case.inspect(engine, text)
            assert judgement is not None and judgement.effect > Effect.DESTRUCTIVE, text
        assert (await case.inspect(engine, "SELECT * FROM all_members")).effect is Effect.READ
        plain = "INSERT INTO void SELECT oid::int, relname FROM pg_class WHERE false"
        assert (await case.inspect(engine, plain)).effect is Effect.WRITE
