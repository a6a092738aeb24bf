"""PostgreSQL keeps statements prepared that come again: they are as strict as any other, and see
what changes between two runs."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

import support.postgres_server as postgres_server
from support.engine_cases import CASES
from support.eventually import HANG_S, until
from support.identity_shop import IdentityShop
from tidegate.engines.postgres.prepared_statements import MAX_NAMES
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.statements import Effect, Statement

POSTGRES = [name for name in sorted(CASES) if name.startswith("postgres")]
RUNS = 3
"""The first run comes as text, the second one prepares it, the third one names it."""


class Shop:
    def __init__(self, case):
        self.case = case
        self.server = postgres_server.shared(case.name.partition("-")[2] or "wheel")
        self.database = case.url.partition("?")[0].rpartition("/")[2]
        self.lead("")

    def lead(self, options):
        url = self.case.url + (options or "&pool=1")
        self.case.source = structs.replace(self.case.source, url=url)

    def change(self, text):
        self.server.ask(text, self.database)

    @asynccontextmanager
    async def session(self, engine):
        session = await engine._server.home.take(5)
        try:
            yield session
        finally:
            engine._server.home.give(session)

    async def kept(self, engine):
        """The texts that the server keeps for the one connection."""
        async with self.session(engine) as session:
            rows = await session.query_internal(b"SELECT statement FROM pg_prepared_statements")
        return [text for (text,) in rows]


@pytest.fixture(params=POSTGRES)
def shop(request, tmp_path):
    return Shop(CASES[request.param].prepare(tmp_path))


async def again(shop, engine, text, params=None, **options):
    """The rows of several runs, which are all the same."""
    found = [await shop.case.ask(engine, text, params, **options) for _ in range(RUNS)]
    assert found == [found[0]] * RUNS
    return found[0]


async def test_a_statement_is_prepared_when_it_comes_again(shop):
    text = "SELECT name FROM items WHERE id = $1"
    async with shop.case.opened() as engine:
        first = await shop.case.ask(engine, text, (1,))
        assert text not in await shop.kept(engine)
        assert await shop.case.ask(engine, text, (1,)) == first
        assert text in await shop.kept(engine)
        assert await shop.case.ask(engine, text, (2,)) != first
        assert (await shop.kept(engine)).count(text) == 1


async def test_a_source_can_be_told_to_prepare_nothing(shop):
    shop.lead("&pool=1&prepared_statements=off")
    async with shop.case.opened() as engine:
        assert await again(shop, engine, "SELECT count(*) FROM items")
        assert await shop.kept(engine) == []


async def test_a_url_with_another_word_for_prepared_statements_is_refused(shop):
    shop.lead("&pool=1&prepared_statements=maybe")
    with pytest.raises(TidegateError) as caught:
        await open_engine(shop.case.source)
    assert caught.value.code is Code.SOURCE_URL


async def test_a_connection_keeps_few_statements(shop):
    async with shop.case.opened() as engine:
        for number in range(2 * MAX_NAMES):
            for _ in range(2):
                await shop.case.ask(engine, f"SELECT {number} FROM items LIMIT 1")
        kept = await shop.kept(engine)
        assert 0 < len(kept) <= MAX_NAMES + 1  # what was put out last is let go with the next read
        assert f"SELECT {2 * MAX_NAMES - 1} FROM items LIMIT 1" in kept


async def test_a_change_leaves_no_statement_prepared(shop):
    text = "SELECT count(*) FROM void"
    async with shop.case.opened() as engine:
        assert await again(shop, engine, text) == [(0,)]
        await shop.case.ask(engine, "INSERT INTO void VALUES (1, 'x')", effect=Effect.WRITE)
        assert await shop.kept(engine) == []
        assert await again(shop, engine, text) == [(1,)]
        assert text in await shop.kept(engine)


async def test_a_failed_statement_is_not_kept_and_runs_again(shop):
    text = "SELECT 1 / (count(*) - 10)::int FROM items"
    async with shop.case.opened() as engine:
        for _ in range(RUNS):
            with pytest.raises(TidegateError) as caught:
                await shop.case.ask(engine, text)
            assert caught.value.details["sqlstate"] == "22012"
            assert await shop.case.ask(engine, "SELECT 1") == [(1,)]
        assert text not in await shop.kept(engine)


async def test_new_columns_of_a_table_are_seen_by_a_prepared_statement(shop):
    text = "SELECT * FROM void"
    async with shop.case.opened() as engine:
        assert await again(shop, engine, text) == []
        shop.change("ALTER TABLE void ADD COLUMN added int; INSERT INTO void VALUES (1, 'x', 5)")
        for _ in range(RUNS):
            cursor = await shop.case.start(engine, text)
            assert [column.name for column in cursor.columns] == ["id", "name", "added"]
            assert [tuple(row) for row in await cursor.fetch(10)] == [(1, "x", 5)]
            await cursor.close()
        shop.change("ALTER TABLE void ALTER COLUMN added TYPE text")
        assert await again(shop, engine, text) == [(1, "x", "5")]


async def test_a_table_that_was_made_again_is_read_by_a_prepared_statement(shop):
    text = "SELECT name FROM void"
    async with shop.case.opened() as engine:
        assert await again(shop, engine, text) == []
        shop.change("DROP TABLE void")
        with pytest.raises(TidegateError) as caught:
            await shop.case.ask(engine, text)
        assert caught.value.details["sqlstate"] == "42P01"
        shop.change("CREATE TABLE void (id int, name text); INSERT INTO void VALUES (1, 'new')")
        assert await again(shop, engine, text) == [("new",)]


async def test_a_view_that_was_replaced_is_read_by_a_prepared_statement(shop):
    shop.change("CREATE VIEW shown AS SELECT id FROM items WHERE id = 1")
    async with shop.case.opened() as engine:
        assert await again(shop, engine, "SELECT * FROM shown") == [(1,)]
        shop.change("CREATE OR REPLACE VIEW shown AS SELECT id FROM items WHERE id = 2")
        assert await again(shop, engine, "SELECT * FROM shown") == [(2,)]


async def test_one_text_means_each_schemas_own_table_however_often_it_ran(shop):
    for schema in ("red", "blue"):
        shop.change(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.hue AS SELECT '{schema}' AS h")

    async def read(engine, schema):
        query = Query(Statement("SELECT h FROM hue"), limits=Limits(), schema=schema)
        cursor = await engine.run(shop.case.permit(query), NEVER)
        try:
            return [tuple(row) for row in await cursor.fetch(10)]
        finally:
            await cursor.close()

    async with shop.case.opened() as engine:
        for _ in range(RUNS):
            assert await read(engine, "red") == [("red",)]
            assert await read(engine, "blue") == [("blue",)]
            with pytest.raises(TidegateError):
                await shop.case.ask(engine, "SELECT h FROM hue")


@pytest.fixture
def path(shop):
    shop.change("CREATE SCHEMA front; CREATE SCHEMA back; CREATE TABLE back.t AS SELECT 1 AS n")
    shop.change(f"ALTER DATABASE {shop.database} SET search_path = front, back, public")


async def test_a_table_that_comes_to_stand_before_another_is_read(shop, path):
    text = "SELECT n FROM t"
    async with shop.case.opened() as engine:
        assert await again(shop, engine, text) == [(1,)]
        shop.change("CREATE TABLE front.t AS SELECT 2 AS n")
        async with asyncio.timeout(HANG_S):
            while await shop.case.ask(engine, text) != [(2,)]:
                pass
        assert await again(shop, engine, text) == [(2,)]


async def test_a_table_of_our_own_that_comes_to_stand_before_another_is_read_at_once(shop, path):
    text = "SELECT n FROM t"
    shop.lead("&pool=2")
    async with shop.case.opened() as engine:
        held = await shop.case.start(engine, "SELECT i FROM generate_series(1, 100000) AS i")
        assert await again(shop, engine, text) == [(1,)]
        await shop.case.ask(
            engine, "CREATE TABLE front.t AS SELECT 2 AS n", effect=Effect.DESTRUCTIVE
        )
        await held.close()
        assert await again(shop, engine, text) == [(2,)]


@pytest.fixture(params=POSTGRES)
def roles(request, tmp_path):
    shop = IdentityShop(CASES[request.param].prepare(tmp_path), ("alice", "bob", "login"))
    shop.server = postgres_server.shared(shop.case.name.partition("-")[2] or "wheel")
    shop.server.ask(
        """
        CREATE ROLE {alice}; CREATE ROLE {bob}; CREATE ROLE {login} LOGIN NOINHERIT;
        GRANT {alice}, {bob} TO {login};
        CREATE TABLE orders (id int, owner text);
        INSERT INTO orders VALUES (1, '{alice}'), (2, '{bob}');
        ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON orders USING (owner = current_user);
        GRANT SELECT ON orders TO {alice}, {bob};
        CREATE TABLE private (id int); GRANT SELECT ON private TO {alice};
        """.format(**shop.roles),
        shop.database,
    )
    shop.lead(shop.server.url(shop.database, shop.roles["login"]) + "&pool=1")
    yield shop
    for role in shop.roles.values():
        shop.server.ask(f"DROP OWNED BY {role}; DROP ROLE {role}", shop.database)


async def test_a_prepared_statement_gives_each_role_its_own_rows(roles):
    text = "SELECT id FROM orders"
    async with roles.case.opened() as engine:
        for _ in range(RUNS):
            assert await roles.run(engine, "alice", text) == [(1,)]
            assert await roles.run(engine, "bob", text) == [(2,)]
            error = await roles.refused(roles.run(engine, None, text))
            assert error.details["sqlstate"] == "42501"


async def test_what_one_role_has_prepared_another_may_still_not_read(roles):
    text = "SELECT count(*) FROM private"
    async with roles.case.opened() as engine:
        for _ in range(RUNS):
            assert await roles.run(engine, "alice", text) == [(0,)]
        for _ in range(RUNS):
            error = await roles.refused(roles.run(engine, "bob", text))
            assert error.details["sqlstate"] == "42501"
        roles.server.ask(f"REVOKE SELECT ON private FROM {roles.roles['alice']}", roles.database)
        error = await roles.refused(roles.run(engine, "alice", text))
        assert error.details["sqlstate"] == "42501"


async def test_a_prepared_statement_runs_as_each_callers_variables_say(roles):
    text = "SELECT current_setting('app.tenant'), current_user::text"
    async with roles.case.opened() as engine:
        for _ in range(RUNS):
            for who, tenant in (("alice", "red"), ("alice", "blue"), ("bob", "red")):
                found = await roles.run(engine, who, text, app_tenant=tenant)
                assert found == [(tenant, roles.roles[who])]


async def test_a_prepared_statement_is_stopped_in_the_middle(shop):
    text = "SELECT count(*) FROM generate_series(1, $1::bigint) AS i"
    async with shop.case.opened() as engine:
        assert await again(shop, engine, text, (5,)) == [(5,)]
        for _ in range(2):
            cancellation = Cancellation()
            task = asyncio.ensure_future(
                shop.case.ask(engine, text, (10**11,), cancellation=cancellation)
            )
            await until(
                lambda: shop.server.ask(
                    "SELECT 1 FROM pg_stat_activity WHERE state = 'active'"
                    f" AND datname = '{shop.database}' AND query = '{text}'"
                ),
                "the statement in the server",
            )
            cancellation.cancel("cancelled")
            with pytest.raises(TidegateError) as caught:
                await task
            assert caught.value.code is Code.CALL_CANCELLED
            assert await shop.case.ask(engine, text, (7,)) == [(7,)]
        with pytest.raises(TidegateError) as caught:
            await shop.case.ask(engine, text, (10**11,), limits=Limits(timeout_s=0.2))
        assert caught.value.code is Code.LIMIT_TIME
        assert await again(shop, engine, text, (3,)) == [(3,)]


async def test_every_run_of_a_prepared_statement_has_its_own_limit_and_reads_only(shop):
    text = (
        "SELECT current_setting('transaction_read_only'),"
        " current_setting('transaction_isolation'),"
        " (SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout')"
    )
    async with shop.case.opened() as engine:
        for seconds in (90, 70, 50, 30):
            found = await shop.case.ask(engine, text, limits=Limits(timeout_s=seconds))
            ((reads_only, isolation, limit_ms),) = found
            assert (reads_only, isolation) == ("on", "repeatable read")
            assert 0 < limit_ms <= seconds * 1000


async def test_a_server_that_has_forgotten_its_statements_still_answers(shop):
    """As behind a proxy that gives each transaction another connection."""
    text = "SELECT count(*) FROM items"
    async with shop.case.opened() as engine:
        rows = await again(shop, engine, text)
        async with shop.session(engine) as session:
            await session.query_internal(b"DEALLOCATE ALL")
        assert await again(shop, engine, text) == rows
        assert await shop.kept(engine) == []


async def test_names_that_the_server_uses_for_something_else_run_nothing(shop):
    """Whatever stands under the name of BEGIN: no statement runs outside our transaction."""
    async with shop.case.opened() as engine:
        assert await again(shop, engine, "SELECT 1") == [(1,)]
        async with shop.session(engine) as session:
            rows = await session.query_internal(
                b"SELECT name, statement FROM pg_prepared_statements"
            )
            (begin,) = [name for name, statement in rows if statement.startswith("BEGIN")]
            await session.query_internal(f'DEALLOCATE "{begin}"'.encode())
            await session.query_internal(f'PREPARE "{begin}" AS SELECT 1'.encode())
        with pytest.raises(TidegateError) as caught:
            await shop.case.ask(engine, "SELECT 1")
        assert caught.value.code is Code.SOURCE_UNREACHABLE
        assert await again(shop, engine, "SELECT 1") == [(1,)]
