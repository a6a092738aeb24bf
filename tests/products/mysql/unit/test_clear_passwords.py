"""A server that asks for the password in the clear gets it by verified TLS alone."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from support.certificates import Authority
from support.mysql_login import clear_logins
from tidegate.errors import Code, TidegateError
from tidegate.products.mysql.engine.packets import log_in
from tidegate.products.mysql.engine.url import parse_conninfo

PASSWORD = "unguessable"


def context_of(authority: Authority) -> ssl.SSLContext:
    cert, key = authority.sign("db", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


async def refusal_of(monkeypatch: pytest.MonkeyPatch, port: int, options: str) -> TidegateError:
    """Log in, which fails one way or another."""
    monkeypatch.setenv("CLEAR", PASSWORD)
    url = f"mysql://ann:${{ENV:CLEAR}}@127.0.0.1:{port}/shop?connect_timeout=20{options}"
    with pytest.raises(TidegateError) as caught:
        await log_in(parse_conninfo(url))
    assert PASSWORD not in f"{caught.value.message}{caught.value.hint}"
    return caught.value


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog"])
@pytest.mark.parametrize(("tls", "options"), [(False, ""), (True, ""), (True, "&tls=require")])
async def test_who_may_be_another_server_gets_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: str, tls: bool, options: str
) -> None:
    context = context_of(Authority(tmp_path, "authority")) if tls else None
    async with clear_logins(context, plugin) as server:
        error = await refusal_of(monkeypatch, server.port, options)
    assert server.passwords == []
    assert error.code is Code.SOURCE_UNREACHABLE
    assert "in the clear" in error.message and "tls=verify" in (error.hint or "")


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog"])
async def test_a_server_that_is_verified_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: str
) -> None:
    authority = Authority(tmp_path, "authority")
    async with clear_logins(context_of(authority), plugin) as server:
        options = f"&tls=verify&tls_ca={authority.file}"
        error = await refusal_of(monkeypatch, server.port, options)
    assert server.passwords == [PASSWORD]
    assert "refused the login" in error.message
