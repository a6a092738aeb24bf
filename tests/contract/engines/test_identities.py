"""A caller's own identity reaches the database, which then keeps its rows from others."""

import asyncio

import pytest
from msgspec import structs

import support.postgres_server as postgres_server
from support.engine_cases import CASES
from support.eventually import until
from support.identity_shop import IdentityShop
from tidegate.engines.registry import ENGINES, check_run_as, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.requests import Browse, Explain, Query
from tidegate.model.results import Limits
from tidegate.model.source_settings import RunAs
from tidegate.model.sources import Identity
from tidegate.model.statements import Effect, Statement

OWNED = """
CREATE TABLE orders (id int PRIMARY KEY, owner text NOT NULL, tenant text NOT NULL);
INSERT INTO orders VALUES (1, '{alice}', 'red'), (2, '{alice}', 'blue'), (3, '{bob}', 'red');
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON orders USING (owner = current_user)
  WITH CHECK (owner = current_user);
CREATE TABLE rooms (id int PRIMARY KEY, tenant text NOT NULL);
INSERT INTO rooms VALUES (1, 'red'), (2, 'blue');
ALTER TABLE rooms ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON rooms USING (tenant = current_setting('app.tenant', true));
CREATE ROLE {alice}; CREATE ROLE {bob}; CREATE ROLE {stranger}; CREATE ROLE {login} LOGIN NOINHERIT;
GRANT {alice}, {bob} TO {login};
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO {alice}, {bob};
GRANT SELECT ON rooms TO {alice}, {bob}, {login};
"""

POSTGRES = [name for name in sorted(CASES) if name.startswith("postgres")]


class RoleShop(IdentityShop):
    """A shop whose rows are owned, opened by an account that may read next to nothing itself."""

    def __init__(self, case):
        super().__init__(case, ("alice", "bob", "stranger", "login"))
        self.server = postgres_server.shared(case.name.partition("-")[2] or "wheel")
        self.ask(OWNED.format(**self.roles))
        self.lead(self.server.url(self.database, self.roles["login"]) + "&pool=1")

    def ask(self, text):
        return self.server.ask(text, self.database)


@pytest.fixture(params=POSTGRES)
def role_shop(request, tmp_path):
    role_shop = RoleShop(CASES[request.param].prepare(tmp_path))
    yield role_shop
    for role in role_shop.roles.values():
        role_shop.ask(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_the_database_keeps_rows_from_all_but_their_owner(role_shop):
    async with role_shop.case.opened() as engine:
        ids = "SELECT id FROM orders ORDER BY id"
        assert await role_shop.run(engine, "alice", ids) == [(1,), (2,)]
        assert await role_shop.run(engine, "bob", ids) == [(3,)]
        assert await role_shop.run(engine, "alice", ids) == [(1,), (2,)]


async def test_variables_reach_the_policies_of_tables(role_shop):
    async with role_shop.case.opened() as engine:
        ids = "SELECT id FROM rooms"
        assert await role_shop.run(engine, "alice", ids, app_tenant="red") == [(1,)]
        assert await role_shop.run(engine, None, ids, app_tenant="blue") == [(2,)]
        assert await role_shop.run(engine, "alice", ids) == []


async def test_names_and_values_are_no_code(role_shop):
    hostile = """'; RESET ROLE; -- "x" \\ $$"""
    async with role_shop.case.opened() as engine:
        text = "SELECT current_setting('app.tenant'), current_user::text"
        found = await role_shop.run(engine, "alice", text, app_tenant=hostile)
        assert found == [(hostile, role_shop.roles["alice"])]
        error = await role_shop.refused(role_shop.run(engine, hostile, "SELECT 1"))
        assert error.code is Code.POLICY_IDENTITY


async def test_nothing_of_a_caller_is_left_for_the_next_one_on_the_connection(role_shop):
    who = "SELECT current_user::text, coalesce(current_setting('app.tenant', true), '')"
    login, alice = role_shop.roles["login"], role_shop.roles["alice"]
    async with role_shop.case.opened() as engine:
        for effect in (Effect.READ, Effect.WRITE):
            first = await role_shop.run(engine, "alice", who, effect=effect, app_tenant="red")
            assert first == [(alice, "red")]
            assert await role_shop.case.ask(engine, who) == [(login, "")]
            await role_shop.refused(
                role_shop.run(engine, "alice", "SELECT 1 / (id - id) FROM orders")
            )
            assert await role_shop.case.ask(engine, who) == [(login, "")]


async def test_callers_who_take_turns_on_one_connection_are_each_themselves(role_shop):
    async with role_shop.case.opened() as engine:
        callers = ["alice", "bob", None] * 10
        found = await asyncio.gather(
            *[role_shop.run(engine, who, "SELECT current_user::text") for who in callers]
        )
    assert found == [[(role_shop.roles[who or "login"],)] for who in callers]


async def test_a_cancelled_caller_leaves_nothing_behind(role_shop):
    async with role_shop.case.opened() as engine:
        cancellation = Cancellation()
        text = "SELECT id, pg_sleep(600) FROM orders"
        text = text.replace(", pg_sleep(600)", ", (SELECT count(*) FROM generate_series(1, 1e11))")
        permit = role_shop.permit("alice", Query(Statement(text)))
        running = asyncio.ensure_future(engine.run(permit, cancellation))
        listed = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT id, (SELECT%'"
        listed += " AND state = 'active'"
        await until(lambda: role_shop.ask(listed) != [(0,)], "the statement in the server")
        cancellation.cancel()
        assert (await role_shop.refused(running)).code is Code.CALL_CANCELLED
        assert await role_shop.case.ask(engine, "SELECT current_user::text") == [
            (role_shop.roles["login"],)
        ]


async def test_a_change_is_made_as_the_caller_and_within_its_policies(role_shop):
    async with role_shop.case.opened() as engine:
        add = "INSERT INTO orders VALUES ($1, $2, 'red')"
        mine, theirs = role_shop.roles["alice"], role_shop.roles["bob"]
        await role_shop.run(engine, "alice", add, (4, mine), Effect.WRITE)
        error = await role_shop.refused(
            role_shop.run(engine, "alice", add, (5, theirs), Effect.WRITE)
        )
        assert error.code is Code.SQL_FAILED
        await role_shop.run(
            engine, "alice", "DELETE FROM orders WHERE id >= 0", effect=Effect.WRITE
        )
    assert role_shop.ask("SELECT id, owner FROM orders") == [(3, theirs)]


async def test_a_statement_is_explained_as_the_caller(role_shop):
    async with role_shop.case.opened() as engine:
        text = "SELECT * FROM orders"
        permit = role_shop.permit("alice", Explain(Statement(text)))
        cursor = await engine.run(permit, NEVER)
        plan = " ".join(str(row[0]) for row in await cursor.fetch(100))
        await cursor.close()
        assert "owner = CURRENT_USER" in plan
        stranger = role_shop.permit("login", Explain(Statement(text)))
        assert (await role_shop.refused(engine.run(stranger, NEVER))).code is Code.SQL_FAILED


async def test_rows_are_counted_as_the_caller(role_shop):
    async with role_shop.case.opened() as engine:
        counting = Browse("counts", table="orders")
        counts = await engine.describe(role_shop.permit("bob", counting), NEVER)
        assert list(counts.rows.values()) == [1]


async def test_tables_are_described_as_the_caller(role_shop):
    async with role_shop.case.opened() as engine:
        ddl = await engine.describe(role_shop.permit("bob", Browse("ddl", table="orders")), NEVER)
        assert "orders" in ddl.text
        unknown = role_shop.permit("nobody", Browse("ddl", table="orders"))
        assert (
            await role_shop.refused(engine.describe(unknown, NEVER))
        ).code is Code.POLICY_IDENTITY


async def test_a_change_is_dry_run_as_the_caller(role_shop):
    role_shop.ask(
        f"CREATE TABLE mine (id int PRIMARY KEY); INSERT INTO mine VALUES (1);"
        f"GRANT SELECT, DELETE ON mine TO {role_shop.roles['alice']}"
    )
    async with role_shop.case.opened() as engine:
        request = Query(Statement("DELETE FROM mine WHERE id = 1"), limits=Limits(max_rows=5))
        dry_run = await engine.dry_run(role_shop.permit("alice", request, Effect.WRITE), NEVER)
        assert dry_run.affected == 1
        permit = role_shop.permit("bob", request, Effect.WRITE)
        assert (await role_shop.refused(engine.dry_run(permit, NEVER))).code is Code.SQL_FAILED
    assert role_shop.ask("SELECT * FROM mine") == [(1,)]


@pytest.mark.parametrize("who", ["stranger", "is_not_there", "none", "NONE", ""])
async def test_a_role_that_is_not_granted_or_not_there_runs_nothing(role_shop, who):
    async with role_shop.case.opened() as engine:
        for effect, text in ((Effect.READ, "SELECT 1"), (Effect.WRITE, "CREATE TABLE t (a int)")):
            error = await role_shop.refused(role_shop.run(engine, who, text, effect=effect))
            assert error.code is Code.POLICY_IDENTITY
            assert error.hint
            assert role_shop.roles["stranger"] not in error.message
        assert await role_shop.run(engine, "alice", "SELECT 1") == [(1,)]
    assert role_shop.ask("SELECT to_regclass('t')::text") == [(None,)]


async def test_only_variables_of_an_application_are_set(role_shop):
    for name in ("role", "search_path", "transaction_read_only", "app.x y", "", "a."):
        source = structs.replace(role_shop.case.source, run_as=RunAs(variables=((name, "x"),)))
        error = await role_shop.refused(open_engine(source))
        assert error.code is Code.CONFIG_INVALID
        assert "run_as" in error.message


async def test_names_mean_the_same_whatever_the_callers_role(role_shop):
    alice = role_shop.roles["alice"]
    role_shop.ask(
        f"CREATE SCHEMA {alice} AUTHORIZATION {alice}; CREATE TABLE {alice}.rooms (id int);"
        f"ALTER TABLE {alice}.rooms OWNER TO {alice}"
    )
    async with role_shop.case.opened() as engine:
        assert await role_shop.run(engine, "alice", "SELECT id FROM rooms", app_tenant="red") == [
            (1,)
        ]


@pytest.mark.parametrize("scheme", sorted(ENGINES))
async def test_an_engine_takes_callers_identities_or_the_setting_is_refused(scheme, tmp_path):
    entry = ENGINES[scheme]
    run_as = RunAs("someone")
    names = [name for name in CASES if name.partition("-")[0] == entry.engine]
    if not names:
        # No engine of SQL: its own contract is in a folder of its name.
        with pytest.raises(TidegateError, match="run_as"):
            check_run_as(f"{scheme}:///{tmp_path}", run_as)
        return
    case = CASES[names[0]].prepare(tmp_path)
    if entry.identities:
        check_run_as(case.url, run_as)
        async with case.opened() as engine:
            assert engine.capabilities.identities
        return
    case.source = structs.replace(case.source, run_as=run_as)
    with pytest.raises(TidegateError) as caught:
        await open_engine(case.source)
    assert caught.value.code is Code.CONFIG_INVALID
    assert "run_as" in caught.value.message
    case.source = structs.replace(case.source, run_as=None)
    async with case.opened() as engine:
        assert not engine.capabilities.identities
        before = await case.digest(engine)
        add = Query(Statement(case.spelling.add, (1, "x")))
        for request in (add, Explain(Statement(case.spelling.one)), Browse("counts")):
            permit = structs.replace(
                case.permit(request, Effect.WRITE), identity=Identity("someone")
            )
            ask = engine.describe if isinstance(request, Browse) else engine.run
            with pytest.raises(TidegateError) as caught:
                await ask(permit, NEVER)
            assert caught.value.code is Code.POLICY_IDENTITY
        assert await case.digest(engine) == before
