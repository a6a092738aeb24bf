"""A read runs no function that was not looked at: also right behind a change from elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.engine_cases import CASES, Case
from support.postgres_server import KINDS
from tidegate.engines.common.url import parse_server_url
from tidegate.errors import TidegateError
from tidegate.model.statements import Effect

SCRIPT = """
CREATE TABLE seen (id int);
CREATE VIEW calm AS SELECT id FROM items;
"""
ACTS = """
CREATE FUNCTION acts(int) RETURNS int LANGUAGE plpgsql VOLATILE
  AS $$ BEGIN PERFORM pg_notify('acts', 'ran'); RAISE 'it ran'; RETURN 1; END $$;
"""
CHANGES = {
    "a view": "CREATE OR REPLACE VIEW calm AS SELECT acts(id) AS id FROM items",
    "an operator": "DROP VIEW calm; CREATE OPERATOR @#@ (RIGHTARG = int, PROCEDURE = acts);"
    " CREATE VIEW calm AS SELECT @#@ id AS id FROM items",
    "a cast": "DROP VIEW calm; CREATE TYPE odd AS (a int); CREATE FUNCTION odd_int(odd) RETURNS"
    " int LANGUAGE plpgsql AS $$ BEGIN RAISE 'it ran'; END $$; CREATE CAST (odd AS int) WITH"
    " FUNCTION odd_int(odd); CREATE VIEW calm AS SELECT row(id)::odd::int AS id FROM items",
}


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    name = "postgres" if request.param == "wheel" else f"postgres-{request.param}"
    return CASES[name].prepare(tmp_path)


@pytest.mark.parametrize("what", CHANGES)
async def test_a_read_behind_a_change_from_elsewhere_runs_nothing_new(case: Case, what: str):
    from support import postgres_server

    kind = "wheel" if case.name == "postgres" else case.name.removeprefix("postgres-")
    server = postgres_server.shared(kind)
    database = parse_server_url(case.url).database
    server.ask(SCRIPT + ACTS, database)
    try:
        async with case.opened() as engine:
            for _ in range(4):  # the text is known and prepared
                assert len(await case.ask(engine, "SELECT id FROM calm")) == 10
            await asyncio.to_thread(server.ask, CHANGES[what], database)
            with pytest.raises(TidegateError) as refused:
                await case.ask(engine, "SELECT id FROM calm")
            assert "it ran" not in refused.value.message
            assert refused.value.details["rule"] == "postgres.catalog"
    finally:
        server.drop_database(database)


async def test_a_read_in_a_database_that_others_write_goes_on(case: Case):
    from support import postgres_server

    kind = "wheel" if case.name == "postgres" else case.name.removeprefix("postgres-")
    server = postgres_server.shared(kind)
    database = parse_server_url(case.url).database
    async with case.opened() as engine:
        for number in range(4):
            await asyncio.to_thread(
                server.ask, f"CREATE TABLE t{number} AS SELECT 1; DELETE FROM void", database
            )
            assert await case.ask(engine, "SELECT count(*) FROM items") == [(10,)]
            await case.ask(engine, "DELETE FROM void", effect=Effect.WRITE)
