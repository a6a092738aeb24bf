"""PostgreSQL by TCP, through a line that the tests can spoil."""

import pytest

import support.postgres_server as postgres_server
from support.engine_cases import CASES


@pytest.fixture
def server():
    return postgres_server.shared("wheel")


@pytest.fixture
def case(tmp_path, monkeypatch):
    """A shop, to be opened by the Unix socket, or by TCP with `by_tcp`."""
    monkeypatch.setenv("PGTEST_PASSWORD", postgres_server.PASSWORD)
    return CASES["postgres"].prepare(tmp_path)


@pytest.fixture
def database(case):
    return case.url.partition("?")[0].rpartition("/")[2]


@pytest.fixture
def by_tcp(case, server, database):
    """Lead the case's source to a port of this machine; further options may follow."""
    from msgspec import structs

    def lead(port=0, options=""):
        url = server.tcp_url(database, port=port) + options
        case.source = structs.replace(case.source, url=url)
        return case

    return lead


@pytest.fixture
def activity(server, database):
    """What the server does for our connections: (state, query) of each."""

    def look():
        return server.ask(
            "SELECT state, query FROM pg_stat_activity WHERE application_name = 'tidegate'"
            f" AND datname = '{database}'"
        )

    return look
