"""Passwords in a real OpenBao, for sources on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import support.postgres_server as postgres_server
from products.vault.support.openbao import OpenBao, shared
from support.tcp_proxy import Proxy, between
from tidegate.app import App
from tidegate.config.loading import load
from tidegate.engines.common import renewed_login
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Connect, Query
from tidegate.model.statements import Statement

ACTOR = Actor("agent", "agent", Scope.READ_ONLY)
READ = 'path "secret/data/*" { capabilities = ["read"] }'
_numbers = count(1)


class Gate:
    """A gate in this process before one source."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def ask(self, sql: str = "SELECT 1") -> Any:
        call = Call(ACTOR, "core", "query", Query(Statement(sql)), "shop")
        return json.loads((await self.app.gateway.handle(call)).payload.rows)

    async def failure(self, sql: str = "SELECT 1") -> TidegateError:
        with pytest.raises(TidegateError) as caught:
            await self.ask(sql)
        return caught.value

    async def connect(self) -> None:
        await self.app.gateway.handle(Call(ACTOR, "core", "connect", Connect(), "shop"))


@asynccontextmanager
async def gate_of(
    url: str, vault: dict[str, Any], state: Path, **options: str
) -> AsyncIterator[Gate]:
    state.mkdir(mode=0o700)
    source = {"name": "shop", "url": url, "options": options}
    settings = {"vault": vault, "sources": [source]}
    app = App(load(json.dumps(settings)), state)
    try:
        yield Gate(app)
    finally:
        await app.close()


class Account:
    """A role of PostgreSQL with its password in the vault."""

    def __init__(self, vault: OpenBao, database: str) -> None:
        self.vault, self.server = vault, postgres_server.shared()
        self.name = f"kept{next(_numbers)}"
        self.path = f"{self.name}/db"
        self.server.ask(f"CREATE ROLE {self.name} LOGIN")
        self.password = "unguessable first"
        self.change(self.password)
        self.keep(self.password)
        reference = f"${{VAULT:secret/data/{self.path}#password}}"
        self.url = f"postgresql://{self.name}:{reference}@127.0.0.1:{self.server.port}/{database}"

    def change(self, password: str) -> None:
        self.server.ask(f"ALTER ROLE {self.name} PASSWORD '{password}'")

    def keep(self, password: str) -> None:
        self.vault.write(self.path, password=password)

    @property
    def refused_logins(self) -> int:
        """As the server has logged them."""
        log = (self.server.directory / "log").read_text()
        return log.count(f'password authentication failed for user "{self.name}"')

    def end_sessions(self) -> None:
        self.server.ask(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            f" WHERE usename = '{self.name}'"
        )

    def drop(self) -> None:
        self.end_sessions()
        self.server.ask(f"DROP ROLE {self.name}")


@pytest.fixture
def vault() -> OpenBao:
    return shared()


@pytest.fixture
def account(vault: OpenBao) -> Any:
    made = Account(vault, postgres_server.shared().new_database())
    yield made
    made.drop()


@pytest.fixture
def always_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection reads its secret, however short ago it was read."""
    monkeypatch.setattr(renewed_login, "FRESH_S", 0.0)


@pytest.mark.parametrize("login", ["token", "variable", "approle"])
async def test_each_login_reads_the_secret(
    account: Account, vault: OpenBao, login: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"address": vault.address}
    if login == "variable":
        settings = {}
        monkeypatch.setenv("VAULT_ADDR", vault.address)
        monkeypatch.setenv("VAULT_TOKEN", vault.token(READ))
    elif login == "token":
        (tmp_path / "token").write_text(f"{vault.token(READ)}\n")
        settings["token"] = f"${{FILE:{tmp_path}/token}}"
    else:
        role, secret = vault.approle(READ)
        monkeypatch.setenv("GATE_SECRET_ID", secret)
        settings["approle"] = {"role_id": role, "secret_id": "${ENV:GATE_SECRET_ID}"}
    async with gate_of(account.url, settings, tmp_path / "state") as gate:
        assert await gate.ask("SELECT current_user") == [[account.name]]
    assert account.refused_logins == 0


async def test_a_rotated_password_costs_no_refused_login(
    account: Account, vault: OpenBao, tmp_path: Path, always_read: None
) -> None:
    token = {"address": vault.address, "token": "${ENV:GATE_TOKEN}"}
    with pytest.MonkeyPatch.context() as variables:
        variables.setenv("GATE_TOKEN", vault.token(READ))
        async with gate_of(account.url, token, tmp_path / "state") as gate:
            await gate.ask()
            account.change("second")
            account.keep("second")
            account.end_sessions()
            assert await _after_lost(gate) == [[1]]
    assert account.refused_logins == 0


async def _after_lost(gate: Gate) -> Any:
    """The end of a connection that was open may be found first."""
    while True:
        try:
            return await gate.ask()
        except TidegateError as error:
            assert "was lost" in error.message, error


async def test_a_wrong_password_is_no_loop_that_locks_the_account(
    account: Account, vault: OpenBao, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATE_TOKEN", vault.token(READ))
    account.keep("unguessable wrong")
    token = {"address": vault.address, "token": "${ENV:GATE_TOKEN}"}
    async with gate_of(account.url, token, tmp_path / "state") as gate:
        first = await gate.failure()
        assert first.details["cause"] == "account" and account.refused_logins == 1
        again = await asyncio.gather(*[gate.failure() for _ in range(20)])
        assert all("not sent again for" in each.message for each in again), again[0]
        assert account.refused_logins == 1, "20 calls later"
        account.keep("unguessable other")
        await gate.failure()
        assert account.refused_logins == 2, "another one is tried, once"
        account.keep(account.password)
        assert await gate.ask() == [[1]]
        # While it is open: one new read, then an error.
        account.change("unguessable third")
        account.end_sessions()
        while "was lost" in (error := await gate.failure()).message:
            pass
        assert error.details["cause"] == "account" and account.refused_logins == 3
        await asyncio.gather(*[gate.failure() for _ in range(20)])
        assert account.refused_logins == 3
        account.keep("unguessable third")
        assert await gate.ask() == [[1]]
    said = "".join(f"{each}" for each in (first, *again, error))
    assert "unguessable" not in said and vault.root not in said


async def test_while_the_vault_is_down_open_connections_go_on(
    account: Account, vault: OpenBao, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    always_read: None,
) -> None:  # fmt: skip
    secret = vault.token(READ)
    monkeypatch.setenv("GATE_TOKEN", secret)
    async with between("127.0.0.1", vault.port) as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        settings = {"address": address, "token": "${ENV:GATE_TOKEN}", "timeout_s": 0.5}
        async with gate_of(account.url, settings, tmp_path / "state") as gate:
            assert await gate.ask() == [[1]]
            for break_it, why in ((_refuse, "cannot be reached"), (_stall, "within 0.5 s")):
                break_it(proxy)
                assert await gate.ask() == [[1]]
                held = asyncio.ensure_future(gate.ask("SELECT pg_sleep(1)"))
                await asyncio.sleep(0)
                error = await _while_held(gate, held)
                assert error.code is Code.SECRET_UNAVAILABLE and why in error.message
                assert f"secret/data/{account.path}#password" in error.message
                assert address in error.message and secret not in f"{error}{error.details}"
                _mend(proxy)
            assert await gate.ask() == [[1]]
    assert account.refused_logins == 0


async def test_many_who_wait_for_a_vault_that_does_not_answer_wait_once(
    account: Account, vault: OpenBao, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    always_read: None,
) -> None:  # fmt: skip
    monkeypatch.setenv("GATE_TOKEN", vault.token(READ))
    async with between("127.0.0.1", vault.port) as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        settings = {"address": address, "token": "${ENV:GATE_TOKEN}", "timeout_s": 0.5}
        async with gate_of(account.url, settings, tmp_path / "state") as gate:
            assert await gate.ask() == [[1]]
            proxy.stall()
            asked = proxy.accepted
            held = asyncio.ensure_future(gate.ask("SELECT pg_sleep(2)"))
            await asyncio.sleep(0)
            errors = await asyncio.gather(*[gate.failure() for _ in range(5)])
            assert {each.code for each in errors} == {Code.SECRET_UNAVAILABLE}
            assert proxy.accepted - asked == 1
            proxy.flow()
            await held


async def _while_held(gate: Gate, held: asyncio.Future[Any]) -> TidegateError:
    """The failure of a call that needs a further connection; the held one goes on."""
    error = await gate.failure()
    assert await held == [[""]]
    return error


def _refuse(proxy: Proxy) -> None:
    proxy.refusing = True
    proxy.cut()


def _stall(proxy: Proxy) -> None:
    proxy.stall()


def _mend(proxy: Proxy) -> None:
    proxy.refusing = False
    proxy.flow()


@pytest.mark.parametrize(
    ("name", "rules", "said"),
    [
        ("secret/data/nothing#password", READ, "has nothing there"),
        ("secret/data/{path}#passwort", READ, "no text in the field `passwort`"),
        ("secret/data/{path}#password", 'path "x" { capabilities = [] }', "permission denied"),
    ],
)
async def test_what_is_not_there_is_named_by_path_and_server(
    account: Account, vault: OpenBao, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    name: str, rules: str, said: str,
) -> None:  # fmt: skip
    secret = vault.token(rules)
    monkeypatch.setenv("GATE_TOKEN", secret)
    name = name.format(path=account.path)
    url = account.url.replace(f"secret/data/{account.path}#password", name)
    settings = {"address": vault.address, "token": "${ENV:GATE_TOKEN}"}
    async with gate_of(url, settings, tmp_path / "state") as gate:
        error = await gate.failure()
    assert error.code is Code.SECRET_UNAVAILABLE
    assert said in error.message and name in error.message and vault.address in error.message
    assert secret not in str(error) and account.password not in f"{error}{error.hint}"
