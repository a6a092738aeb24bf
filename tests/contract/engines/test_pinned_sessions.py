"""Sessions read a text as the judge read it, whatever the server or the account is set to."""

import pytest
from msgspec import structs

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.engine_cases import CASES
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.statements import Effect, Statement

needs_mysql = pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")


@pytest.fixture
def postgres(tmp_path):
    return CASES["postgres"].prepare(tmp_path)


@pytest.fixture
def mysql(tmp_path):
    return CASES["mysql"].prepare(tmp_path)


async def test_postgres_reads_backslashes_alike_for_every_account(postgres):
    server = postgres_server.shared("wheel")
    server.ask("ALTER ROLE postgres SET standard_conforming_strings = off")
    server.ask("ALTER ROLE postgres SET backslash_quote = on")
    try:
        async with postgres.opened() as engine:
            shown = [
                await postgres.ask(engine, f"SHOW {name}")
                for name in ("standard_conforming_strings", "backslash_quote")
            ]
            assert shown == [[("on",)], [("safe_encoding",)]]
            assert await postgres.ask(engine, r"SELECT 'a\'") == [("a\\",)]
            change = "SET standard_conforming_strings = off"
            await postgres.ask(engine, change, effect=Effect.ADMIN)
            assert await postgres.ask(engine, r"SELECT 'a\'") == [("a\\",)]
    finally:
        server.ask("ALTER ROLE postgres RESET ALL")


@needs_mysql
@pytest.mark.parametrize(
    "modes",
    [
        "ANSI_QUOTES",
        "NO_BACKSLASH_ESCAPES",
        "ORACLE",
        "EMPTY_STRING_IS_NULL,STRICT_TRANS_TABLES",
        "",
    ],
)
async def test_mysql_reads_quotes_and_backslashes_alike_under_every_mode(mysql, modes):
    mysql_server.shared().script(f"SET GLOBAL sql_mode = '{modes}'")
    try:
        async with mysql.opened() as engine:
            text = """SELECT "it's", 'it\\'s', "a\\"b", '' IS NULL, 'a' || 'b'"""
            assert await mysql.ask(engine, text) == [("it's", "it's", 'a"b', 0, 0)]
            ((kept,),) = await mysql.ask(engine, "SELECT @@sql_mode", effect=Effect.ADMIN)
            assert kept == ("STRICT_TRANS_TABLES" if "STRICT" in modes else kept)
            assert "ANSI" not in kept
    finally:
        mysql_server.shared().script("SET GLOBAL sql_mode = DEFAULT")


@needs_mysql
@pytest.mark.parametrize("database", ["mysql", "MySQL", "performance_schema", "sys"])
async def test_no_statement_runs_where_a_bare_name_is_one_of_the_servers_own(mysql, database):
    async with mysql.opened() as engine:
        for effect in (Effect.READ, Effect.ADMIN):
            for place in ({"schema": database}, {"database": database}):
                query = Query(Statement("SELECT COUNT(*) FROM user"), limits=Limits(), **place)
                with pytest.raises(TidegateError) as caught:
                    cursor = await engine.run(mysql.permit(query, effect), NEVER)
                    await cursor.close()
                assert caught.value.code is Code.POLICY_DENIED
        assert await mysql.ask(engine, "SELECT 1") == [(1,)]


@needs_mysql
async def test_a_url_that_names_the_servers_own_database_is_refused(mysql):
    url = mysql_server.shared().url("mysql")
    with pytest.raises(TidegateError) as caught:
        await open_engine(structs.replace(mysql.source, url=url))
    assert caught.value.code is Code.SOURCE_URL
