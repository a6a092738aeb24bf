"""A database that is a source is no temporary source, by whatever address it is reached."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.tcp_proxy import between
from tidegate.app import App
from tidegate.config.model import Config, SourceSettings
from tidegate.config.model import TemporarySourceSettings as Settings
from tidegate.errors import Code, TidegateError
from tidegate.gateway.database_identities import place_of
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, OpenTemporary, Query
from tidegate.model.statements import Statement

ACTOR = Actor("agent", "agent", Scope.READ_ONLY)
SPELLED = [
    "127.0.0.1", "localhost", "[::1]", "127.0.0.2", "[::ffff:127.0.0.1]", "[::]", "127.1.2.3",
    "[0:0:0:0:0:0:0:1]", ".".join("0000"), "localhost.", "LOCALHOST", "db.localhost", "127.1",
    "0x7f.1", "2130706433", "017700000001", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]", "[::127.0.0.1]",
]  # fmt: skip


@pytest.mark.parametrize("scheme", ["postgres", "mysql", "mariadb"])
@pytest.mark.parametrize("one", SPELLED)
async def test_this_machine_is_one_server_by_all_of_its_addresses(one: str, scheme: str):
    first = await place_of(f"{scheme}://u@{one}:5999/shop")
    for other in [*SPELLED, *_own_addresses()]:
        second = await place_of(f"{scheme}://u@{other}:5999/shop")
        assert first.is_same_server(second), (one, other)
        elsewhere = await place_of(f"{scheme}://u@{other}:6000/shop")
        assert not first.is_same_server(elsewhere)


@pytest.mark.parametrize("one", SPELLED)
async def test_this_machine_is_one_server_and_another_machine_is_not(one: str):
    unasked = await place_of(f"postgres://u@{one}:5999/shop", ())
    assert unasked.is_same_server(await place_of("postgres://u@127.0.0.1:5999/shop"))
    far = await place_of("postgres://u@192.0.2.7:5999/shop")
    assert not (await place_of(f"postgres://u@{one}:5999/shop")).is_same_server(far)


def _own_addresses() -> list[str]:
    found = socket.getaddrinfo(socket.gethostname(), None, family=socket.AF_INET)
    return sorted({str(address[0]) for *_, address in found})


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
async def test_a_server_says_itself_which_database_it_is(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
):
    if kind == "mariadb" and not mysql_server.available():
        pytest.skip("needs a MariaDB server (the package mariadb-server-core)")
    monkeypatch.setenv("PGTEST_PASSWORD", postgres_server.PASSWORD)
    (tmp_path / "state").mkdir(mode=0o700)
    if kind == "postgres":
        server = postgres_server.shared()
        server.ask("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN PASSWORD 'pw'")
        name, other = server.new_database(), server.new_database()
        saved, port, login = server.url(name), server.port, "postgres://stranger:pw@"
    else:
        server = mysql_server.shared()
        server.script("CREATE OR REPLACE USER stranger@'%' IDENTIFIED BY 'pw'")
        server.script("GRANT SELECT ON *.* TO stranger@'%'")
        name, other = server.new_database(), ""
        saved, port, login = server.url(name), server.port, "mariadb://stranger:pw@"
    # Another port, which no name or number gives away.
    async with between("127.0.0.1", port) as proxy:
        config = Config(
            sources=(SourceSettings("shop", saved),),
            temporary_sources=Settings(hosts=(f"127.0.0.1:{proxy.port}",)),
        )
        app = App(config, tmp_path / "state")
        try:
            where = f"127.0.0.1:{proxy.port}"
            await _ask(app, OpenTemporary("twin", f"{login}{where}/{name}"), None)
            with pytest.raises(TidegateError) as caught:
                await _ask(app, Query(Statement("SELECT 1")), "twin")
            assert caught.value.code is Code.POLICY_DENIED
            assert "already" in caught.value.message
            if other:
                await _ask(app, OpenTemporary("other", f"{login}{where}/{other}"), None)
                assert (await _ask(app, Query(Statement("SELECT 1")), "other")).rows
        finally:
            await app.close()
            await asyncio.sleep(0)
    if kind == "postgres":
        server.ask("DROP ROLE stranger")
    else:
        server.script("DROP USER stranger@'%'")


async def _ask(app: App, request: OpenTemporary | Query, source: str | None):
    call = Call(ACTOR, "core", "query", request, source)
    return (await app.gateway.handle(call)).payload
