"""A statement that was rewritten by one schema shows nothing under another one."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest
from msgspec import structs

import support.postgres_server as postgres_server
from support.engine_cases import CASES
from support.permits import permit_for
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.engines.api import SchemaChangedError
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Call, Query
from tidegate.model.results import Limits
from tidegate.model.source_settings import Mask
from tidegate.model.statements import Effect, Statement

ACTOR = Actor("a", "a", Scope.READ_WRITE)
SHOP = (
    "CREATE TABLE customers (id int, mail text, town text);"
    " INSERT INTO customers SELECT i, 'secret' || i, 'town' || i FROM generate_series(1, 5) AS i;"
    " CREATE TABLE people (id int, mail text, town text);"
    " INSERT INTO people SELECT i, 'plain' || i, 'town' || i FROM generate_series(1, 5) AS i"
)


@pytest.fixture
def server():
    return postgres_server.shared("wheel")


@pytest.fixture
def case(tmp_path, server):
    case = CASES["postgres"].prepare(tmp_path)
    case.database = case.url.partition("?")[0].rpartition("/")[2]
    server.ask(SHOP, case.database)
    return case


@asynccontextmanager
async def masked(case, tmp_path):
    source = SourceSettings("shop", case.url, masks=(Mask("customers.mail", "partial"),))
    app = App.open(Config(sources=(source,), surfaces=("core",), state=str(tmp_path / "state")))

    async def ask(text):
        call = Call(ACTOR, "core", "query", Query(Statement(text)), "shop")
        return msgspec.json.decode((await app.gateway.handle(call)).payload.rows)

    try:
        yield ask
    finally:
        await app.close()


async def test_a_table_with_the_name_of_a_masked_one_is_masked_at_once(case, server, tmp_path):
    text = "SELECT mail FROM customers WHERE id = 1"
    async with masked(case, tmp_path) as ask:
        for _ in range(3):
            assert "secret" not in repr(await ask(text))
        server.ask(
            "ALTER TABLE customers RENAME TO old; ALTER TABLE people RENAME TO customers",
            case.database,
        )
        for _ in range(3):
            assert "plain" not in repr(await ask(text))


async def test_a_view_over_a_masked_table_that_comes_up_is_masked_at_once(case, server, tmp_path):
    server.ask("CREATE VIEW mails AS SELECT id, town AS said FROM customers", case.database)
    async with masked(case, tmp_path) as ask:
        for _ in range(3):
            assert "town1" in repr(await ask("SELECT said FROM mails WHERE id = 1"))
        server.ask(
            "CREATE OR REPLACE VIEW mails AS SELECT id, mail AS said FROM customers", case.database
        )
        for _ in range(3):
            assert "secret" not in repr(await ask("SELECT said FROM mails WHERE id = 1"))


async def test_a_table_that_is_made_later_is_found_by_a_masked_caller(case, server, tmp_path):
    async with masked(case, tmp_path) as ask:
        assert await ask("SELECT id FROM customers WHERE id = 1") == [[1]]
        with pytest.raises(TidegateError):
            await ask("SELECT id FROM later")
        server.ask("CREATE TABLE later AS SELECT 7 AS id", case.database)
        assert await ask("SELECT id FROM later") == [[7]]


async def test_masked_reads_go_on_while_others_write(case, server, tmp_path):
    async with masked(case, tmp_path) as ask:
        for number in range(5):
            server.ask(f"INSERT INTO people VALUES ({number})", case.database)
            assert "secret" not in repr(await ask("SELECT mail FROM customers"))
            found = await asyncio.gather(
                *[ask(f"SELECT town FROM customers WHERE id = {each}") for each in range(1, 6)]
            )
            assert found == [[[f"town{each}"]] for each in range(1, 6)]


async def test_an_engine_shows_nothing_of_a_read_whose_schema_has_changed(case, server):
    query = Query(Statement("SELECT mail, 1 / (id - 1) FROM customers"), limits=Limits())
    async with case.opened() as engine:
        version = await engine.schema_version()
        permit = structs.replace(permit_for(case.source, query), schema_version=version)
        for _ in range(3):
            with pytest.raises(TidegateError) as caught:
                await engine.run(permit, NEVER)
            assert caught.value.details["sqlstate"] == "22012"
        server.ask("ALTER TABLE customers ADD COLUMN added int", case.database)
        for _ in range(3):
            with pytest.raises(SchemaChangedError) as changed:
                await engine.run(permit, NEVER)
            assert changed.value.details == {}
        permit = structs.replace(permit, schema_version=await engine.schema_version())
        with pytest.raises(TidegateError) as caught:
            await engine.run(permit, NEVER)
        assert caught.value.details["sqlstate"] == "22012"
        assert await case.ask(engine, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("name", sorted(CASES))
async def test_an_engine_refuses_a_permit_whose_statement_is_not_the_one_that_was_judged(
    name, tmp_path
):
    case = CASES[name].prepare(tmp_path)
    engine = await open_engine(case.source)
    try:
        before = await case.digest(engine)
        judged = permit_for(case.source, Query(Statement(case.spelling.table.format(name="items"))))
        delete = Query(Statement("DELETE FROM items"))
        for permit in (
            structs.replace(judged, request=delete),
            structs.replace(judged, request=delete, effect=Effect.DESTRUCTIVE),
            structs.replace(judged, judgement=None),
            structs.replace(judged, judged_text=None),
        ):
            with pytest.raises(TidegateError) as caught:
                await engine.run(permit, NEVER)
            assert caught.value.code is Code.INTERNAL
        assert await case.digest(engine) == before
    finally:
        await engine.close()
