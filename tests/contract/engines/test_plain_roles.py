"""What an account without privileges can do: all that reading needs, and no more."""

import asyncio
from itertools import count

import pytest
from msgspec import structs

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.engine_cases import CASES
from support.eventually import HANG_S, until
from tidegate.engines.postgres.engine import SUPERUSER
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.results import Limits
from tidegate.model.statements import Effect

_numbers = count(1)

RUNAWAY = "SELECT SUM({}) FROM {}".format(
    " + ".join(f"t{i}.id" for i in range(14)), ", ".join(f"items AS t{i}" for i in range(14))
)
"""Made of what the account may read."""


def shop_of(case):
    return case.url.partition("?")[0].rpartition("/")[2]


def grant_postgres(case, role):
    server = postgres_server.shared(case.name.partition("-")[2] or "wheel")
    shop = shop_of(case)
    server.ask(f"CREATE ROLE {role} LOGIN; GRANT SELECT ON items, parts TO {role}", shop)
    yield server.url(shop, role)
    server.ask(f"DROP OWNED BY {role}; DROP ROLE {role}", shop)


def grant_mysql(case, role):
    server, shop = mysql_server.shared(), shop_of(case)
    server.script(
        f"CREATE USER {role}; GRANT SELECT ON {shop}.items TO {role};"
        f"GRANT SELECT ON {shop}.parts TO {role}"
    )
    yield server.url(shop, role)
    server.script(f"DROP USER {role}")


@pytest.fixture(params=[name for name in sorted(CASES) if name.startswith(("postgres", "mysql"))])
def case(request, tmp_path):
    """A shop, opened by a role that may read `items` and `parts`, and nothing else."""
    case = CASES[request.param].prepare(tmp_path)
    grant = grant_mysql if case.name == "mysql" else grant_postgres
    for url in grant(case, f"plain_{next(_numbers)}"):
        case.source = structs.replace(case.source, url=url)
        yield case


async def as_owner(case, text):
    """What the shop's owner sees."""
    case.source = structs.replace(case.source, url=case.url)
    async with case.opened() as engine:
        return await case.ask(engine, text)


async def refused(work):
    with pytest.raises(TidegateError) as caught:
        await work
    assert "plain_" not in caught.value.message
    return caught.value


async def test_a_plain_role_reads_and_explains(case):
    async with case.opened() as engine:
        for table, rows in (("items", 10), ("parts", 20)):
            text = case.spelling.count.format(name=table)
            assert await case.ask(engine, text) == [(rows,)]
            assert await case.explain(engine, text)
        judgement = await case.inspect(engine, "SELECT name FROM items")
        assert judgement is not None
        assert judgement.effect is Effect.READ
        assert engine.status.warnings == ()


async def test_a_plain_role_sees_the_tables_that_it_may_read_in_full(case):
    async with case.opened() as engine:
        catalog = await case.browse(engine, "catalog")
        tables = {table.name: table for table in catalog.tables}
        assert [column.name for column in tables["items"].columns] == ["id", "name"]
        assert [column.key for column in tables["parts"].columns] == [1, 0]
        (key,) = tables["parts"].foreign_keys
        assert (key.columns, key.table) == (("item_id",), "items")
        assert catalog.database in (await case.browse(engine, "databases")).names
        assert "item_id" in (await case.browse(engine, "ddl", table="parts")).text
        assert await engine.schema_version() == catalog.version


async def test_a_plain_role_counts_what_it_may_read(case):
    async with case.opened() as engine:
        counts = (await case.browse(engine, "counts")).rows
        assert {name: rows for (_, name), rows in counts.items()} == {"items": 10, "parts": 20}
        error = await refused(case.browse(engine, "counts", table="void"))
        assert error.code in (Code.SQL_FAILED, Code.TABLE_UNKNOWN)


async def test_what_a_plain_role_may_not_read_is_reported_with_a_way_out(case):
    async with case.opened() as engine:
        for text in ("SELECT * FROM void", "SELECT 1 FROM items, void"):
            error = await refused(case.ask(engine, text))
            assert error.code is Code.SQL_FAILED
            assert "Ask the operator" in error.hint
        add = case.spelling.add
        error = await refused(case.ask(engine, add, (1, "x"), effect=Effect.WRITE))
        assert error.code is Code.SQL_FAILED
        assert "Ask the operator" in error.hint
    assert await as_owner(case, case.spelling.count.format(name="void")) == [(0,)]


@pytest.mark.parametrize("how", ["time", "cancel"])
async def test_a_plain_role_ends_its_own_statement_in_the_server(case, how):
    async with case.opened() as engine:
        cancellation = Cancellation()
        limits = Limits(timeout_s=1 if how == "time" else HANG_S)
        work = asyncio.ensure_future(
            case.ask(engine, RUNAWAY, limits=limits, cancellation=cancellation)
        )
        if how == "cancel":
            await until(lambda: running(case), "the statement in the server")
            cancellation.cancel()
        error = await refused(work)
        assert error.code is (Code.LIMIT_TIME if how == "time" else Code.CALL_CANCELLED)
        await until(lambda: not running(case), "the statement's end in the server")
        assert await case.ask(engine, "SELECT 1") == [(1,)]


def running(case):
    """What the server still does of it."""
    if case.name == "mysql":
        return mysql_server.shared().script(
            "SELECT INFO FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SUM(t0.id%'"
            f" AND DB = '{shop_of(case)}' AND COMMAND IN ('Query', 'Execute')"
        )
    server = postgres_server.shared(case.name.partition("-")[2] or "wheel")
    return server.ask(
        "SELECT query FROM pg_stat_activity WHERE state = 'active'"
        f" AND datname = '{shop_of(case)}' AND query LIKE 'SELECT SUM(t0.id%'"
    )


async def test_a_postgres_superuser_is_warned_of(tmp_path):
    case = CASES["postgres"].prepare(tmp_path)
    async with case.opened() as engine:
        assert engine.status.warnings == SUPERUSER
