"""How a server is reached: by socket, by address, with a password that the URL only refers to."""

import socket
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.engine_cases import CASES
from support.loop_server import loop_server
from support.tcp_proxy import Proxy
from tidegate.engines.postgres.url import parse_conninfo
from tidegate.errors import Code, TidegateError

BY_NETWORK = ("postgres", "mysql")


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.fixture(params=BY_NETWORK)
def case(request, tmp_path):
    return CASES[request.param].prepare(tmp_path)


def led(case, password, host="127.0.0.1", port=0):
    """The case's source by TCP, with a password as its URL has it."""
    database = case.url.partition("?")[0].rpartition("/")[2]
    if case.name == "mysql":
        user, port = "word", port or mysql_server.shared().port
    else:
        user, port = "postgres", port or postgres_server.shared("wheel").port
    url = f"{case.name}://{user}:{password}@{host}:{port}/{database}"
    case.source = structs.replace(case.source, url=url)
    return case


async def count(case):
    async with case.opened() as engine:
        return await case.ask(engine, case.spelling.count.format(name="items"))


async def test_a_unix_socket_needs_no_password(case):
    assert "host=/" in case.url or "socket=/" in case.url
    assert await count(case) == [(10,)]


async def test_a_password_is_taken_from_the_environment_or_a_file(case, monkeypatch, tmp_path):
    secret = tmp_path / "password"
    secret.write_text(postgres_server.PASSWORD + "\n")
    assert await count(led(case, f"${{FILE:{secret}}}")) == [(10,)]
    monkeypatch.setenv("URL_PASSWORD", mysql_server.PASSWORD)
    assert await count(led(case, "${ENV:URL_PASSWORD}")) == [(10,)]


async def test_a_password_that_is_not_there_is_reported_by_the_name_of_its_place(case, tmp_path):
    for reference in ("ENV:NO_SUCH_VARIABLE", f"FILE:{tmp_path}/nothing"):
        with pytest.raises(TidegateError) as caught:
            await count(led(case, f"${{{reference}}}"))
        assert caught.value.code is Code.SOURCE_URL
        assert reference.partition(":")[2] in caught.value.message


@asynccontextmanager
async def on_ipv6(port):
    """A port of the IPv6 loopback that leads to one of the IPv4 loopback."""
    proxy = Proxy("127.0.0.1", port)
    async with loop_server(proxy.carry, "::1") as near:
        yield near


@pytest.mark.skipif(not has_ipv6(), reason="needs IPv6")
async def test_an_ipv6_address_stands_in_brackets(case, monkeypatch):
    monkeypatch.setenv("URL_PASSWORD", mysql_server.PASSWORD)
    server = mysql_server.shared() if case.name == "mysql" else postgres_server.shared("wheel")
    async with on_ipv6(server.port) as port:
        assert await count(led(case, "${ENV:URL_PASSWORD}", "[::1]", port)) == [(10,)]


def test_a_postgres_url_is_read_in_all_its_parts(monkeypatch):
    monkeypatch.setenv("URL_PASSWORD", "a/b@c")
    target = parse_conninfo(
        "postgresql://u%40x:${ENV:URL_PASSWORD}@[::1]:5433,two/my%20db?sslmode=require&pool=3"
    )
    parameters = target.parameters
    assert (parameters["user"], parameters["password"]) == ("u@x", "a/b@c")
    assert (parameters["host"], parameters["port"]) == ("::1,two", "5433,")
    assert (parameters["dbname"], parameters["sslmode"], target.pool) == ("my db", "require", 3)
