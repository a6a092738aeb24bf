"""What a text does not show, the catalogue tells: views, policies, domains, casts, operators."""

import pytest

from tidegate.errors import Code, GateError
from tidegate.statements import Effect, Statement

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
        judgement = await engine.inspect(Statement(text))
        assert judgement is None or judgement.effect > Effect.READ
        with pytest.raises(GateError) as caught:
            await case.ask(engine, text)
        assert caught.value.code in (Code.SQL_FUNCTION, Code.POLICY_READ_ONLY)
        assert server.digest(database) == before


@pytest.mark.parametrize("text", PLAIN)
async def test_what_hides_nothing_is_read(case, traps, text):
    async with case.opened() as engine:
        assert (await engine.inspect(Statement(text))).effect is Effect.READ
        assert await case.ask(engine, text)


async def test_what_others_changed_is_seen_after_a_write_of_ours(case, server, database):
    async with case.opened() as engine:
        assert await case.ask(engine, "SELECT * FROM items")
        server.ask("CREATE VIEW later AS SELECT pg_advisory_lock(7)::text AS x", database)
        await case.ask(engine, "INSERT INTO void VALUES (1, 'x')", effect=Effect.WRITE)
        with pytest.raises(GateError) as caught:
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
            "SELECT 1",
        ):
            await session.begin(text.encode(), None, 1000, None, writes=False)
            await session.settle()
        ((path, mode),) = await session.own(
            b"SELECT current_setting('search_path'), current_setting('transaction_read_only')"
        )
        engine._server.home.give(session)
        assert ("pwn" in path, mode) == (False, "on")
        assert server.digest(database) == before
