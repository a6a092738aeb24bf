"""A password that was changed while a source is open is read again where it is referred to, once
for each login that the server refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.engine_cases import CASES, Case
from support.eventually import until
from support.jdbc_drivers import QUICK, driver_path
from support.tcp_proxy import Proxy, between
from tidegate.app import App
from tidegate.config.model import Config, SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Call, Connect, Query, Request, ShowStatus
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

KINDS = ["postgres", "mariadb", pytest.param("pgjdbc", marks=pytest.mark.needs("jdbc"))]
ACTOR = Actor("agent", "agent", Scope.READ_ONLY)


class Account(NamedTuple):
    """A source whose account has its password in `file`. `change` gives the account another one at
    the server and ends its sessions."""

    case: Case
    file: Path
    proxy: Proxy
    change: Callable[[str], None]


@asynccontextmanager
async def account_of(kind: str, tmp_path: Path) -> AsyncIterator[Account]:
    file = tmp_path / "password"
    file.write_text("first\n")
    if kind == "mariadb":
        if not mysql_server.available():
            pytest.skip("needs a MariaDB server (the package mariadb-server-core)")
        server = mysql_server.shared()
        database = server.new_database()
        server.script("CREATE OR REPLACE USER rotated@'%' IDENTIFIED BY 'first'")
        server.script("GRANT SELECT ON *.* TO rotated@'%'")

        def change(password: str) -> None:
            server.script(f"ALTER USER rotated@'%' IDENTIFIED BY '{password}'")
            server.end_connections("USER = 'rotated'")

    else:
        server = postgres_server.shared("wheel")
        database = server.new_database()
        server.ask("DROP ROLE IF EXISTS rotated; CREATE ROLE rotated LOGIN PASSWORD 'first'")

        def change(password: str) -> None:
            server.ask(
                f"ALTER ROLE rotated PASSWORD '{password}';"
                " SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE usename = 'rotated'"
            )

    async with between("127.0.0.1", server.port) as proxy:
        place = f"127.0.0.1:{proxy.port}/{database}"
        login = f"rotated:${{FILE:{file}}}"
        if kind == "pgjdbc":
            case = CASES["postgres"].prepare(tmp_path)
            case.source = Source(
                *("s1", "shop", f"jdbc:postgresql://{place}", "jdbc", "postgres"),
                options=(
                    ("driver_path", driver_path("postgresql")),
                    ("user", "rotated"),
                    ("password", f"${{FILE:{file}}}"),
                    ("jvm_options", QUICK),
                ),
            )
        else:
            case = CASES["mysql" if kind == "mariadb" else "postgres"].prepare(tmp_path)
            scheme = "mariadb" if kind == "mariadb" else "postgresql"
            engine = "mysql" if kind == "mariadb" else "postgres"
            case.source = Source("s1", "shop", f"{scheme}://{login}@{place}", engine, engine)
        try:
            yield Account(case, file, proxy, change)
        finally:
            change("last")
    if kind == "mariadb":
        mysql_server.shared().script("DROP USER rotated@'%'")
    else:
        postgres_server.shared("wheel").ask("DROP ROLE rotated")


async def refused(account: Account, engine: object) -> TidegateError:
    """The refusal of the login; the end of a connection that was open may be found first."""
    found: list[TidegateError] = []

    async def ask() -> bool:
        with pytest.raises(TidegateError) as caught:
            await account.case.ask(engine, "SELECT 1")
        found.append(caught.value)
        return caught.value.details.get("cause") == "account"

    for _ in range(3):
        if await ask():
            break
    assert found[-1].code is Code.SOURCE_UNREACHABLE and found[-1].details["cause"] == "account"
    return found[-1]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_changed_password_is_read_again_and_each_refusal_is_one_login(
    kind: str, tmp_path: Path
) -> None:
    async with account_of(kind, tmp_path) as account, account.case.opened() as engine:
        assert await account.case.ask(engine, "SELECT 1") == [(1,)]
        account.change("second")
        await refused(account, engine)
        before = account.proxy.accepted
        error = await refused(account, engine)
        assert account.proxy.accepted - before == 1, "a refused login is not tried again"
        assert "second" not in str(error) and "first" not in str(error)
        account.file.write_text("wrong\n")
        before = account.proxy.accepted
        await refused(account, engine)
        assert account.proxy.accepted - before == 2, "once more for another password"
        before = account.proxy.accepted
        await refused(account, engine)
        assert account.proxy.accepted - before == 1
        account.file.write_text("second\n")
        assert await account.case.ask(engine, "SELECT 1") == [(1,)]
        account.file.unlink()
        account.change("third")
        await refused(account, engine)
        account.file.write_text("third\n")
        assert await account.case.ask(engine, "SELECT 1") == [(1,)]


@pytest.mark.needs("mysql")
async def test_a_session_that_outlives_its_password_is_stopped_by_the_new_one(
    tmp_path: Path,
) -> None:
    async with account_of("mariadb", tmp_path) as account, account.case.opened() as engine:
        server = mysql_server.shared()
        assert await account.case.ask(engine, "SELECT 1") == [(1,)]
        server.script("ALTER USER rotated@'%' IDENTIFIED BY 'second'")
        account.file.write_text("second\n")
        cancellation = Cancellation()

        def running() -> bool:
            listed = "SELECT count(*) FROM information_schema.PROCESSLIST WHERE INFO"
            return server.script(f"{listed} LIKE 'SELECT SLEEP(100)%'") == [(1,)]

        asked = asyncio.ensure_future(
            account.case.ask(engine, "SELECT SLEEP(100)", cancellation=cancellation)
        )
        await until(running, "the statement runs")
        before = account.proxy.accepted
        cancellation.cancel()
        with pytest.raises(TidegateError):
            await asked
        await until(lambda: not running(), "the server has ended the statement")
        assert account.proxy.accepted - before == 2, "the old password, and the new one"
        assert await account.case.ask(engine, "SELECT 1") == [(1,)]


async def test_a_source_whose_login_is_refused_is_not_called_connected(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    async with account_of("postgres", tmp_path) as account:
        config = Config(sources=(SourceSettings("shop", account.case.source.url),))
        app = App(config, tmp_path / "state")

        async def ask(request: Request) -> Any:
            call = Call(ACTOR, "core", "query", request, "shop")
            return (await app.gateway.handle(call)).payload

        async def failure(request: Request) -> TidegateError:
            with pytest.raises(TidegateError) as caught:
                await ask(request)
            return caught.value

        query = Query(Statement("SELECT 1"))
        try:
            assert (await ask(Connect())).status == "connected"
            account.change("second")
            while (await failure(query)).details.get("cause") != "account":
                pass  # the end of the connection that was open is found first
            state = await ask(ShowStatus())
            assert state.status == "error" and "refused the login" in state.error
            assert (await failure(Connect())).details["cause"] == "account"
            account.file.write_text("second\n")
            assert (await ask(Connect())).status == "connected"
            assert (await ask(query)).rows == b"[[1]]"
            state = await ask(ShowStatus())
            assert (state.status, state.error) == ("connected", None)
        finally:
            await app.close()
