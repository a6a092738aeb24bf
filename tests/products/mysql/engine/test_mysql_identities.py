"""On MariaDB a caller's role adds to what the source's account may do, and a variable names it."""

import asyncio

import pytest
from msgspec import structs

import support.mysql_server as mysql_server
from support.engine_cases import CASES
from support.eventually import until
from support.identity_shop import IdentityShop
from tidegate.engines.registry import open_engine
from tidegate.errors import Code
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.requests import Browse, Explain, Query
from tidegate.model.source_settings import RunAs
from tidegate.model.statements import Effect, Statement

WHO = "SELECT CURRENT_ROLE(), @actor"

OWNED = """
CREATE TABLE {db}.orders (id INT PRIMARY KEY, owner VARCHAR(60));
INSERT INTO {db}.orders VALUES (1, 'alice'), (2, 'alice'), (3, 'bob');
CREATE TABLE {db}.log (id INT PRIMARY KEY, actor VARCHAR(60));
CREATE TRIGGER {db}.tell BEFORE INSERT ON {db}.log FOR EACH ROW SET NEW.actor = @actor;
CREATE VIEW {db}.orders_of_alice AS SELECT * FROM {db}.orders WHERE owner = 'alice';
CREATE VIEW {db}.orders_of_bob AS SELECT * FROM {db}.orders WHERE owner = 'bob';
CREATE ROLE {alice}; CREATE ROLE {bob}; CREATE ROLE {stranger}; CREATE ROLE {home};
CREATE USER {login}; GRANT {alice} TO {login}; GRANT {bob} TO {login}; GRANT {home} TO {login};
SET DEFAULT ROLE {home} FOR {login};
GRANT SHOW VIEW ON {db}.* TO {login};
GRANT SELECT ON {db}.orders_of_alice TO {alice};
GRANT SELECT, INSERT, UPDATE ON {db}.log TO {alice};
GRANT SELECT ON {db}.orders_of_bob TO {bob}
"""


class RoleShop(IdentityShop):
    """A database of which the account that opens it may read nothing by itself."""

    def __init__(self, case):
        super().__init__(case, ("alice", "bob", "stranger", "home", "login"))
        self.server = mysql_server.shared()
        self.server.script(OWNED.format(db=self.database, **self.roles))
        self.lead(self.server.url(self.database, self.roles["login"], "&pool=1"))

    async def who_is_there(self, engine):
        return await self.case.ask(engine, WHO)


@pytest.fixture
def role_shop(tmp_path):
    role_shop = RoleShop(CASES["mysql"].prepare(tmp_path))
    role_shop.no_role = [(role_shop.roles["home"], None)]
    yield role_shop
    for name in ("alice", "bob", "stranger", "home"):
        role_shop.server.script(f"DROP ROLE {role_shop.roles[name]}")
    role_shop.server.script(f"DROP USER {role_shop.roles['login']}")


async def test_a_role_opens_what_is_granted_to_it_alone(role_shop):
    async with role_shop.case.opened() as engine:
        alices, bobs = (f"SELECT id FROM orders_of_{name}" for name in ("alice", "bob"))
        for _ in range(2):
            assert await role_shop.run(engine, "alice", alices) == [(1,), (2,)]
            assert await role_shop.run(engine, "bob", bobs) == [(3,)]
            for who, text in (("alice", bobs), ("bob", alices), (None, alices)):
                error = await role_shop.refused(role_shop.run(engine, who, text))
                assert error.code in (Code.SQL_FAILED, Code.SQL_FUNCTION)


async def test_names_and_values_are_no_code(role_shop):
    hostile = """'; SET ROLE NONE; -- "x" \\ ` é"""
    async with role_shop.case.opened() as engine:
        found = await role_shop.run(engine, "alice", WHO, actor=hostile)
        assert found == [(role_shop.roles["alice"], hostile)]
        error = await role_shop.refused(role_shop.run(engine, hostile, "SELECT 1"))
        assert error.code is Code.POLICY_IDENTITY


async def test_nothing_of_a_caller_is_left_for_the_next_one_on_the_connection(role_shop):
    add = "INSERT INTO log (id) VALUES (?)"
    async with role_shop.case.opened() as engine:
        assert await role_shop.who_is_there(engine) == role_shop.no_role
        for work in (
            role_shop.run(engine, "alice", WHO, actor="me"),
            role_shop.run(engine, "alice", add, (1,), Effect.WRITE, actor="me"),
            role_shop.refused(
                role_shop.run(engine, "alice", "SELECT (SELECT id FROM orders_of_alice)")
            ),
            role_shop.refused(role_shop.run(engine, "alice", add, (1,), Effect.WRITE, actor="me")),
            role_shop.refused(role_shop.run(engine, "stranger", "SELECT 1", actor="me")),
        ):
            await work
            assert await role_shop.who_is_there(engine) == role_shop.no_role


async def test_callers_who_take_turns_on_one_connection_are_each_themselves(role_shop):
    async with role_shop.case.opened() as engine:
        callers = ["alice", "bob", None] * 8
        found = await asyncio.gather(
            *[
                role_shop.run(engine, who, WHO, actor=str(place))
                for place, who in enumerate(callers)
            ]
        )
    assert found == [
        [(role_shop.roles[who or "home"], str(place))] for place, who in enumerate(callers)
    ]


async def test_a_cancelled_caller_leaves_nothing_behind(role_shop):
    async with role_shop.case.opened() as engine:
        cancellation = Cancellation()
        tables = ", ".join(f"orders_of_alice AS o{place}" for place in range(40))
        text = f"SELECT SUM(o1.id + o2.id) FROM {tables}"
        running = asyncio.ensure_future(
            engine.run(role_shop.permit("alice", Query(Statement(text)), actor="me"), cancellation)
        )
        listed = (
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SUM(%'"
        )
        await until(
            lambda: role_shop.server.script(listed) != [(0,)], "the statement in the server"
        )
        cancellation.cancel()
        assert (await role_shop.refused(running)).code is Code.CALL_CANCELLED
        assert await role_shop.who_is_there(engine) == role_shop.no_role


async def test_a_change_is_recorded_with_the_caller_that_made_it(role_shop):
    async with role_shop.case.opened() as engine:
        await role_shop.run(
            engine, "alice", "INSERT INTO log (id) VALUES (1)", effect=Effect.WRITE, actor="Ann"
        )
    assert role_shop.server.script("SELECT * FROM log", role_shop.database) == [(1, "Ann")]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO log SELECT 1, @actor := 'other'",
        "INSERT INTO log VALUES (1, 'x') RETURNING @actor := 'other'",
        "INSERT INTO log VALUES ((@actor := 'other') = 'other', 'x')",
        "INSERT INTO log SELECT 1, @actor /*!50000 := 'other' */",
        "UPDATE log SET actor = (@actor:='other')",
        "SELECT 'other' INTO @actor",
        "SELECT 'other' INTO/**/@`actor`",
        "SET @actor = 'other'",
        "SET ROLE NONE",
        "SELECT @actor := 'other'",
        "WITH x AS (SELECT @actor := 'other') SELECT * FROM x",
        "SET STATEMENT max_statement_time = 1 FOR SELECT 1",
        "EXECUTE IMMEDIATE 'SET ROLE NONE'",
        "BEGIN NOT ATOMIC SET ROLE NONE; END",
    ],
)
async def test_no_statement_says_that_its_caller_is_another(role_shop, text):
    async with role_shop.case.opened() as engine:
        await role_shop.refused(role_shop.run(engine, "alice", text, actor="Ann"))
        change = role_shop.run(engine, "alice", text, effect=Effect.WRITE, actor="Ann")
        assert (await role_shop.refused(change)).code in (Code.POLICY_DENIED, Code.SQL_MULTIPLE)
        assert await role_shop.who_is_there(engine) == role_shop.no_role
        assert await role_shop.run(engine, "alice", WHO, actor="Ann") == [
            (role_shop.roles["alice"], "Ann")
        ]
    assert role_shop.server.script("SELECT * FROM log", role_shop.database) == []


async def test_a_statement_is_explained_and_its_rows_counted_as_the_caller(role_shop):
    async with role_shop.case.opened() as engine:
        explain = Explain(Statement("SELECT * FROM log"))
        cursor = await engine.run(role_shop.permit("alice", explain), NEVER)
        assert await cursor.fetch(10)
        await cursor.close()
        error = await role_shop.refused(engine.run(role_shop.permit("bob", explain), NEVER))
        assert error.code is Code.SQL_FAILED
        counting = Browse("counts", table="log")
        counts = await engine.describe(role_shop.permit("alice", counting), NEVER)
        assert list(counts.rows.values()) == [0]
        await role_shop.refused(engine.describe(role_shop.permit("bob", counting), NEVER))
        assert await role_shop.who_is_there(engine) == role_shop.no_role


@pytest.mark.parametrize("who", ["stranger", "is_not_there", "none", "NONE", ""])
async def test_a_role_that_is_not_granted_or_not_there_runs_nothing(role_shop, who):
    async with role_shop.case.opened() as engine:
        for effect, text in ((Effect.READ, "SELECT 1"), (Effect.WRITE, "CREATE TABLE t (a INT)")):
            error = await role_shop.refused(role_shop.run(engine, who, text, effect=effect))
            assert error.code is Code.POLICY_IDENTITY
            assert error.hint
        assert await role_shop.run(engine, "alice", "SELECT 1") == [(1,)]
    assert role_shop.server.script("SHOW TABLES LIKE 't'", role_shop.database) == []


async def test_only_names_of_variables_are_taken_for_such(role_shop):
    for name in ("a b", "a`", "@actor", ""):
        source = structs.replace(role_shop.case.source, run_as=RunAs(variables=((name, "x"),)))
        assert (await role_shop.refused(open_engine(source))).code is Code.CONFIG_INVALID
