"""TRIALS B16: a server that does not answer in time is reported with host, port and setting."""

from __future__ import annotations

import socket

import pytest

from tidegate.engines.registry import engine_of, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
async def test_b16_a_connect_limit_says_host_port_and_setting(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        url = f"{scheme}://ada@127.0.0.1:{port}/shop?connect_timeout=1"
        engine, dialect = engine_of(url)
        with pytest.raises(TidegateError) as caught:
            await open_engine(Source("s", "shop", url, engine, dialect))
    assert caught.value.code is Code.SOURCE_UNREACHABLE
    for word in ("127.0.0.1", str(port), "1 s", "connect_timeout"):
        assert word in caught.value.message
