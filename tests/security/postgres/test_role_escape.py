"""A caller that the database knows by a role cannot become another, nor say it was another."""

from itertools import count

import pytest
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.sources import Identity
from tidegate.model.statements import Effect, Statement

_numbers = count(1)

HOUSE = """
CREATE ROLE {role};
CREATE TABLE secrets (owner text, actor text, word text);
INSERT INTO secrets VALUES ('{role}', 'me', 'mine'), ('someone else', 'other', 'theirs');
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secrets
  USING (owner = current_user AND actor = current_setting('app.actor', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON secrets, items, void TO {role};
GRANT CREATE ON SCHEMA public TO {role};
CREATE VIEW knobs AS SELECT name, setting FROM pg_settings;
CREATE VIEW more_knobs AS SELECT * FROM knobs;
GRANT SELECT, UPDATE ON knobs, more_knobs TO {role};
CREATE FUNCTION lifted() RETURNS text LANGUAGE sql SECURITY DEFINER AS
  $$ SELECT string_agg(word, ' ') FROM secrets $$;
CREATE FUNCTION turned() RETURNS text LANGUAGE sql SET "app.actor" = 'other' AS
  $$ SELECT string_agg(word, ' ') FROM secrets $$;
CREATE PROCEDURE turn() LANGUAGE plpgsql AS $$ BEGIN RESET ROLE; END $$;
"""

ESCAPES = (
    "SET ROLE postgres",
    "SET LOCAL ROLE postgres",
    "SET SESSION ROLE NONE",
    'SET "role" = "none"',
    "RESET ROLE",
    "RESET ALL",
    "SET SESSION AUTHORIZATION postgres",
    "SET SESSION AUTHORIZATION DEFAULT",
    "SET app.actor = 'other'",
    "SET LOCAL app.actor TO 'other'",
    "SET row_security = off",
    "DISCARD ALL",
    "SELECT set_config('role', 'none', true)",
    "SELECT pg_catalog.set_config('app.actor', 'other', true), word FROM secrets",
    "SELECT word FROM secrets, set_config('app.actor', 'other', true)",
    "SELECT U&\"set\\005fconfig\"('role', 'none', true)",
    "WITH x AS MATERIALIZED (SELECT set_config('role', 'none', true)) SELECT * FROM x, secrets",
    "INSERT INTO void SELECT 1, set_config('role', 'none', true)",
    "UPDATE items SET name = set_config('app.actor', 'other', true) WHERE id = 1",
    "DELETE FROM items WHERE set_config('role', 'none', true) = 'none'",
    "CREATE TABLE loot AS SELECT set_config('role', 'none', true)",
    "UPDATE pg_settings SET setting = 'none' WHERE name = 'role'",
    "UPDATE pg_catalog.pg_settings SET setting = 'other' WHERE name = 'app.actor'",
    "UPDATE pg_settings SET setting = CASE name WHEN 'app.actor' THEN 'other' ELSE"
    " (SELECT string_agg(word, ' ') FROM secrets) END WHERE name IN ('app.actor', 'DateStyle')",
    "UPDATE knobs SET setting = 'none' WHERE name = 'role'",
    "UPDATE more_knobs SET setting = 'none' WHERE name = 'role'",
    "UPDATE public.\"more_knobs\" AS k SET setting = 'none' WHERE name = 'role'",
    "CREATE VIEW mine AS SELECT * FROM pg_settings",
    "DO $$ BEGIN RESET ROLE; DELETE FROM secrets; END $$",
    "CALL turn()",
    "SELECT lifted()",
    "SELECT turned()",
    "INSERT INTO void SELECT 1, lifted()",
    "INSERT INTO void SELECT 1, turned()",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql SET role = 'none' AS 'SELECT 1'",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
    "CREATE RULE r AS ON INSERT TO void DO ALSO SELECT set_config('role', 'none', true)",
    "CREATE TRIGGER t BEFORE INSERT ON void FOR EACH ROW EXECUTE FUNCTION lifted()",
    "ALTER ROLE CURRENT_USER SET app.actor = 'other'",
    "ALTER TABLE secrets DISABLE ROW LEVEL SECURITY",
    "DROP POLICY own ON secrets",
    "CREATE POLICY mine ON secrets USING (true)",
    "PREPARE p AS SELECT set_config('role', 'none', true)",
    "EXECUTE p",
    "COMMIT",
    "ROLLBACK",
    "SELECT 1; RESET ROLE",
    "ROLLBACK; SELECT * FROM secrets",
    "SELECT dblink('dbname=postgres', 'SELECT 1')",
    "COPY secrets TO PROGRAM 'cat'",
    "SELECT query_to_xml('RESET ROLE', true, false, '')",
    "EXPLAIN ANALYZE SELECT set_config('role', 'none', true)",
    "LOCK TABLE secrets",
)


@pytest.fixture
def role(server, database):
    role = f"member_{next(_numbers)}"
    server.ask(HOUSE.format(role=role), database)
    yield role
    server.ask(f"DROP OWNED BY {role}; DROP ROLE {role}", database)


async def ask(case, engine, role, text, effect):
    permit = structs.replace(
        case.permit(Query(Statement(text), limits=Limits()), effect),
        identity=Identity(role, (("app.actor", "me"),)),
    )
    cursor = await engine.run(permit, NEVER)
    try:
        return [tuple(row) for row in await cursor.fetch(100)]
    finally:
        await cursor.close()


async def test_no_statement_makes_its_caller_another(case, server, database, role):
    """Even the gate's widest permit lets none of them through, and the source's account is the
    server's superuser."""
    case.source = structs.replace(case.source, url=case.url + "&pool=1")
    before = server.digest(database)
    async with case.opened() as engine:
        for text in ESCAPES:
            for effect in (Effect.READ, Effect.WRITE):
                try:
                    found = await ask(case, engine, role, text, effect)
                except TidegateError:
                    found = []
                assert "theirs" not in str(found), text
                assert server.digest(database) == before, text
            words = "SELECT word, current_user::text, current_setting('app.actor') FROM secrets"
            assert await ask(case, engine, role, words, Effect.READ) == [("mine", role, "me")], text
    assert server.digest(database) == before


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
async def test_changes_of_settings_in_disguise_are_refused(case, role, effect):
    async with case.opened() as engine:
        for text in ESCAPES:
            if "pg_settings" in text or "knobs" in text or "set_config" in text:
                with pytest.raises(TidegateError) as caught:
                    await ask(case, engine, role, text, effect)
                assert caught.value.code in (
                    *(Code.POLICY_READ_ONLY, Code.POLICY_DENIED, Code.SQL_FUNCTION),
                    *(Code.SQL_FAILED, Code.SQL_MULTIPLE),
                ), text
        assert await ask(case, engine, role, "SELECT count(*) FROM knobs", Effect.READ) != [(0,)]


async def test_a_member_cannot_undo_its_role_by_an_error(case, role):
    case.source = structs.replace(case.source, url=case.url + "&pool=1")
    async with case.opened() as engine:
        for text in ("SELECT 1 / (id - id) FROM items", "SELECT nonsense", "SELEC", ""):
            with pytest.raises(TidegateError):
                await ask(case, engine, role, text, Effect.READ)
            found = await ask(case, engine, role, "SELECT word FROM secrets", Effect.READ)
            assert found == [("mine",)]


async def test_row_level_security_holds_though_the_account_is_a_superuser(case, role):
    async with case.opened() as engine:
        assert len(await case.ask(engine, "SELECT word FROM secrets")) == 2
        assert await ask(case, engine, role, "SELECT word FROM secrets", Effect.READ) == [("mine",)]
