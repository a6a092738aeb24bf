"""What a server, a database or an account is set to changes no value, and lifts no limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.engine_cases import CASES
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Prepare, Query
from tidegate.model.results import Limits
from tidegate.model.statements import Effect, Statement

needs_mysql = pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")

VALUES = """SELECT timestamptz '2026-01-02 03:04:05.6+02', '04/03/2026'::date, interval '400 days',
 '\\x00ff'::bytea, 0.1::float8 + 0.2::float8, '{1,NULL}'::text[]::text,
 '2026-07-01 12:00'::timestamp::timestamptz, NULL = NULL, pg_get_expr(adbin, adrelid)
 FROM (SELECT NULL::pg_node_tree AS adbin, 0::oid AS adrelid) AS t"""
DEFAULTS = {
    "TimeZone": "'Asia/Tokyo'", "DateStyle": "German, DMY", "IntervalStyle": "iso_8601",
    "bytea_output": "escape", "extra_float_digits": "-5", "array_nulls": "off",
    "xmlbinary": "hex", "xmloption": "document", "transform_null_equals": "on",
    "quote_all_identifiers": "on", "timezone_abbreviations": "'Australia'", "row_security": "off",
    "default_transaction_isolation": "serializable", "default_transaction_deferrable": "on",
    "gin_fuzzy_search_limit": "1", "search_path": "nowhere, public", "client_encoding": "latin1",
}  # fmt: skip


@pytest.mark.parametrize("place", ["ROLE postgres", "DATABASE {}"])
async def test_defaults_of_postgresql_change_no_value(tmp_path: Path, place: str):
    case = CASES["postgres"].prepare(tmp_path)
    server = postgres_server.shared("wheel")
    async with case.opened() as engine:
        plain = await case.ask(engine, VALUES)
        ((database,),) = await case.ask(engine, "SELECT current_database()")
    where = place.format(database)
    for name, value in DEFAULTS.items():
        server.ask(f"ALTER {where} SET {name} = {value}")
    try:
        async with case.opened() as engine:
            assert await case.ask(engine, VALUES) == plain
            prepared = await engine.prepare(
                case.permit(Prepare(Statement("SELECT '04/03/2026'::date"))), NEVER
            )
            assert [column.kind for column in prepared.columns] == ["date"]
            await case.ask(engine, "CREATE TABLE later (at timestamptz)", effect=Effect.ADMIN)
            await case.ask(
                engine, "INSERT INTO later VALUES ('2026-01-02 03:04')", effect=Effect.WRITE
            )
            # also behind a change, after which the connection forgets all that was set
            assert await case.ask(engine, "SELECT at FROM later") == [("2026-01-02T03:04:00Z",)]
            assert await case.ask(engine, VALUES) == plain
    finally:
        server.ask(f"ALTER {where} RESET ALL")


async def test_the_stricter_time_limit_holds_on_postgresql(tmp_path: Path):
    case = CASES["postgres"].prepare(tmp_path)
    server = postgres_server.shared("wheel")
    shown = "SELECT current_setting('statement_timeout') || ''"
    for limit, asked_s, held in (("90s", 200, "90s"), ("90s", 7, "7s"), ("0", 7, "7s")):
        server.ask(f"ALTER ROLE postgres SET statement_timeout = '{limit}'")
        try:
            async with case.opened() as engine:
                request = Query(Statement(shown), limits=Limits(timeout_s=asked_s))
                cursor = await engine.run(case.permit(request), NEVER)
                ((found,),) = await cursor.fetch(2)
                await cursor.close()
                assert round(int(found.removesuffix("ms")) / 1000 if "ms" in found else
                             _seconds(found)) == _seconds(held)  # fmt: skip
        finally:
            server.ask("ALTER ROLE postgres RESET ALL")


def _seconds(shown: str) -> int:
    return int(shown[:-3]) * 60 if shown.endswith("min") else int(shown.removesuffix("s"))


async def test_a_statement_ends_by_the_time_limit_of_its_account(tmp_path: Path):
    case = CASES["postgres"].prepare(tmp_path)
    server = postgres_server.shared("wheel")
    server.ask("ALTER ROLE postgres SET statement_timeout = '200ms'")
    try:
        async with case.opened() as engine:
            for effect in (Effect.READ, Effect.ADMIN):
                request = Query(Statement("SELECT pg_sleep(30)"), limits=Limits(timeout_s=60))
                with pytest.raises(TidegateError) as caught:
                    cursor = await engine.run(case.permit(request, effect), NEVER)
                    await cursor.fetch(2)
                assert caught.value.code is Code.LIMIT_TIME
                assert "0.2 s" in caught.value.message
    finally:
        server.ask("ALTER ROLE postgres RESET ALL")


@pytest.mark.needs("mysql")
@needs_mysql
async def test_the_stricter_time_limit_holds_on_mariadb(tmp_path: Path):
    server = mysql_server.shared()
    name = server.new_database()
    server.script("CREATE OR REPLACE USER slow@localhost WITH MAX_STATEMENT_TIME 0.2")
    server.script("GRANT ALL ON *.* TO slow@localhost")
    case = CASES["mysql"].prepare(tmp_path)
    try:
        engine = await open_engine(structs.replace(case.source, url=server.url(name, "slow")))
        try:
            request = Query(Statement("SELECT SLEEP(30)"), limits=Limits(timeout_s=60))
            with pytest.raises(TidegateError) as caught:
                cursor = await engine.run(case.permit(request), NEVER)
                await cursor.fetch(2)
            assert caught.value.code is Code.LIMIT_TIME
            assert "0.2 s" in caught.value.message
            shown = "SELECT @@max_statement_time"
            request = Query(Statement(shown), limits=Limits(timeout_s=0.1))
            cursor = await engine.run(case.permit(request), NEVER)
            assert float((await cursor.fetch(2))[0][0]) <= 0.1
            await cursor.close()
        finally:
            await engine.close()
    finally:
        server.script("DROP USER slow@localhost")
