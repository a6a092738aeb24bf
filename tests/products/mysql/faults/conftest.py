"""MariaDB's shop, by its socket and behind a proxy."""

from contextlib import asynccontextmanager

import pytest

import support.mysql_server as mysql_server
from support.engine_cases import CASES
from support.tcp_proxy import between
from tidegate.model.sources import Source


@pytest.fixture
def server():
    if not mysql_server.available():
        pytest.skip("needs mariadb-server-core")
    return mysql_server.shared()


@pytest.fixture
def shop(server, tmp_path):
    """The shop; what its connections still do at the end is ended, also where no one listens."""
    case = CASES["mysql"].prepare(tmp_path)
    yield case
    server.end_connections(f"DB = '{database_of(case)}'")


def database_of(case):
    return case.url.partition("?")[0].rpartition("/")[2]


@pytest.fixture
def proxied(shop, server, monkeypatch):
    """Opens the shop through a proxy: `async with proxied() as (engine, proxy)`."""
    monkeypatch.setenv("MYTEST_PASSWORD", mysql_server.PASSWORD)
    name = database_of(shop)

    @asynccontextmanager
    async def opened(options="", portions=None):
        """`portions`: the line is cut when the server has sent so many."""
        async with between("127.0.0.1", server.port) as proxy:
            if portions is not None:
                proxy.cut_after(portions)
            url = server.tcp_url(name, proxy.port, options)
            shop.source = Source("s1", "shop", url, "mysql", "mysql")
            async with shop.opened() as engine:
                yield engine, proxy

    return opened
