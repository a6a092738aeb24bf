"""Accounts on lease from a real OpenBao, at a real PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

import support.postgres_server as postgres_server
from products.vault.contract.test_kept_passwords import Gate, gate_of
from products.vault.support.openbao import OpenBao, shared
from support.certificates import Authority
from support.eventually import until
from support.jdbc_drivers import QUICK, driver_path
from support.tcp_proxy import between
from tidegate.engines.common.renewed_login import Term
from tidegate.errors import Code, TidegateError
from tidegate.products.vault.settings import AppRoleSettings, KubernetesSettings, VaultSettings
from tidegate.secrets.readers import Reading, read_elsewhere, use_settings

RULES = 'path "database/creds/*" { capabilities = ["read"] }'


class Leased:
    """A role of the vault for accounts at a database of its own."""

    def __init__(self, ttl: str, may: str = "LOGIN") -> None:
        self.vault, self.server = shared(), postgres_server.shared()
        self.database = self.server.new_database()
        self.path = self.vault.lease_role(self.server, self.database, ttl, may=may)
        self.token = self.vault.token(RULES)

    @property
    def url(self) -> str:
        user, password = (f"${{VAULT:{self.path}#{field}}}" for field in ("username", "password"))
        return f"postgresql://{user}:{password}@127.0.0.1:{self.server.port}/{self.database}"

    def accounts(self) -> set[str]:
        """Those that the server has."""
        name = self.path.rpartition("/")[2]
        found = self.server.ask(f"SELECT rolname FROM pg_roles WHERE rolname LIKE 'v-%{name}-%'")
        return {account for (account,) in found}

    def connected(self) -> set[str]:
        """The accounts of open connections to the database, but those that are gone."""
        found = self.server.ask(
            f"SELECT usename FROM pg_stat_activity WHERE datname = '{self.database}'"
            " AND application_name = 'tidegate' AND usename IS NOT NULL"
        )
        return {account for (account,) in found}

    @asynccontextmanager
    async def gate(self, tmp_path: Path, address: str = "", **more: Any) -> AsyncIterator[Gate]:
        (tmp_path / "token").write_text(self.token)
        vault = {
            "address": address or self.vault.address,
            "token": f"${{FILE:{tmp_path}/token}}",
            **more,
        }
        async with gate_of(self.url, vault, tmp_path / "state") as gate:
            yield gate


@pytest.mark.parametrize("lease_s", [2, 60, 3_600, 2_764_800])
def test_another_account_is_taken_before_two_thirds_of_a_lease_are_over(lease_s: int) -> None:
    reading = Reading("x", session_until=0.0)
    reading.session_until = reading.read_at + lease_s
    term = Term.of([Reading("kept"), reading])
    assert term is not None and term.retire_at is not None
    assert term.retire_at - reading.read_at < lease_s * 2 / 3


async def test_connections_get_the_account_of_a_new_lease_and_what_runs_ends_first(
    tmp_path: Path,
) -> None:
    leased = Leased("4s")
    async with leased.gate(tmp_path) as gate:
        await asyncio.gather(*[gate.ask("SELECT pg_sleep(0.1)") for _ in range(3)])
        (first,) = leased.accounts()
        assert leased.connected() == {first}
        (connection,) = gate.app.connections.in_use()
        lease = connection.lease
        assert lease is not None and 1 < lease.ends_at - lease.renewal_at < 3
        running = asyncio.ensure_future(gate.ask("SELECT pg_sleep(3.5), 'went on'"))
        await until(lambda: leased.accounts() - {first}, "another lease")
        while await gate.ask("SELECT current_user") == [[first]]:
            pass  # the vault has made it, and has not answered yet
        assert not running.done(), "it began before, and runs on the account from before"
        assert await running == [["", "went on"]]
        await until(lambda: first not in leased.accounts(), "the end of the first lease")
        await until(lambda: first not in leased.connected(), "the end of its connections")
        ((now,),) = await gate.ask("SELECT current_user")
        assert now != first and now in leased.accounts()
        assert connection.lease is not None
        assert connection.lease.ends_at > lease.ends_at, "as Prometheus is told"


@pytest.mark.parametrize("login", ["token", "approle"])
async def test_a_source_that_is_closed_gives_its_lease_back(tmp_path: Path, login: str) -> None:
    leased = Leased("1h")
    revokes = 'path "sys/leases/revoke" { capabilities = ["update"] }'
    if login == "token":
        leased.token = leased.vault.token(RULES, revokes)
        opened = leased.gate(tmp_path)
    else:
        role, secret = leased.vault.approle(RULES)
        (tmp_path / "secret").write_text(secret)
        approle = {"role_id": role, "secret_id": f"${{FILE:{tmp_path}/secret}}"}
        vault = {"address": leased.vault.address, "approle": approle}
        opened = gate_of(leased.url, vault, tmp_path / "state")
    async with opened as gate:
        await asyncio.gather(*[gate.ask("SELECT pg_sleep(0.1)") for _ in range(3)])
        assert len(leased.accounts()) == 1
    await until(lambda: not leased.accounts(), "the end of the account, long before its lease's")


async def test_a_stop_does_not_wait_for_a_vault_that_is_away(tmp_path: Path) -> None:
    leased = Leased("1h")
    async with between("127.0.0.1", leased.vault.port) as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        async with leased.gate(tmp_path, address, timeout_s=60) as gate:
            await gate.connect()
            proxy.stall()
        proxy.flow()
    assert len(leased.accounts()) == 1, "its token may not end it, so the vault does in an hour"
    leased.vault.client.sys.revoke_prefix(leased.path)


@pytest.mark.needs("jdbc")
async def test_a_source_of_a_driver_gets_the_account_of_a_new_lease(tmp_path: Path) -> None:
    leased = Leased("6s")
    url = f"jdbc:postgresql://127.0.0.1:{leased.server.port}/{leased.database}"
    (tmp_path / "token").write_text(leased.token)
    vault = {"address": leased.vault.address, "token": f"${{FILE:{tmp_path}/token}}"}
    options = {
        "driver_path": driver_path("postgresql"),
        "jvm_options": QUICK,
        "user": f"${{VAULT:{leased.path}#username}}",
        "password": f"${{VAULT:{leased.path}#password}}",
    }
    async with gate_of(url, vault, tmp_path / "state", **options) as gate:
        first = await gate.ask("SELECT current_user")
        while await gate.ask("SELECT current_user") == first:
            await asyncio.sleep(0.01)


async def test_while_the_vault_is_down_the_account_is_used_until_its_lease_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leased = Leased("4s")
    async with between("127.0.0.1", leased.vault.port) as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        async with leased.gate(tmp_path, address, timeout_s=0.5) as gate:
            ((account,),) = await gate.ask("SELECT current_user")
            proxy.refusing = True
            proxy.cut()
            with caplog.at_level(logging.WARNING, "tidegate.engines"):
                await until(lambda: caplog.records, "the note that no lease can be had")
            said = caplog.records[0].getMessage()
            assert leased.path in said and address in said and leased.token not in said
            held = asyncio.ensure_future(gate.ask("SELECT pg_sleep(0.2)"))
            assert await gate.ask("SELECT current_user") == [[account]], "a further connection"
            await held
            await until(lambda: account not in leased.accounts(), "the end of the lease")
            assert await gate.ask() == [[1]], "what is open goes on"
            held = asyncio.gather(*[gate.ask("SELECT pg_sleep(1)") for _ in range(2)])
            await asyncio.sleep(0)
            error = await gate.failure()
            await held
            assert error.code is Code.SECRET_UNAVAILABLE
            assert leased.path in error.message and address in error.message
            proxy.refusing = False
            assert await _next_account(gate) in leased.accounts()


async def test_a_vault_that_does_not_answer_holds_up_no_connection_of_a_lease(
    tmp_path: Path,
) -> None:
    leased = Leased("4s")
    async with between("127.0.0.1", leased.vault.port) as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        async with leased.gate(tmp_path, address, timeout_s=60) as gate:
            ((account,),) = await gate.ask("SELECT current_user")
            proxy.stall()
            asked = proxy.accepted
            await until(lambda: proxy.accepted > asked, "another lease is asked for")
            held = asyncio.ensure_future(gate.ask("SELECT pg_sleep(0.2)"))
            assert await gate.ask("SELECT current_user") == [[account]], "a further connection"
            await held
            proxy.flow()


async def _next_account(gate: Gate) -> str:
    """The account of the next lease: PostgreSQL does not find the name of one that is gone."""
    while True:
        try:
            ((account,),) = await gate.ask("SELECT current_user")
        except TidegateError as error:
            assert "invalid role" in error.message, error
        else:
            return account


async def test_an_account_that_may_not_log_in_is_not_asked_for_again_and_again(
    tmp_path: Path,
) -> None:
    leased = Leased("1h", "NOLOGIN")
    async with leased.gate(tmp_path) as gate:
        assert "not permitted to log in" in (await gate.failure()).message
        asked = len(leased.accounts())
        assert asked == 2, "one, and one new read"
        for _ in range(10):
            assert "not sent again for" in (await gate.failure()).message
        assert len(leased.accounts()) == asked
    leased.vault.client.sys.revoke_prefix(leased.path)


async def test_a_lease_ends_with_the_token_that_took_it(monkeypatch: pytest.MonkeyPatch) -> None:
    leased = Leased("1h")
    role, secret = leased.vault.approle(RULES, ttl="90s")
    monkeypatch.setenv("GATE_SECRET_ID", secret)
    login = AppRoleSettings(role, "${ENV:GATE_SECRET_ID}")
    reading = await read_by(VaultSettings(address=leased.vault.address, approle=login), leased.path)
    assert reading.session_until is not None
    assert reading.session_until - reading.read_at <= 90
    monkeypatch.setenv("GATE_TOKEN", leased.vault.token(RULES, ttl="80s"))
    given = VaultSettings(address=leased.vault.address, token="${ENV:GATE_TOKEN}")
    reading = await read_by(given, leased.path)
    assert reading.session_until is not None
    assert reading.session_until - reading.read_at <= 80


async def read_by(settings: VaultSettings, path: str) -> Reading:
    use_settings({"vault": settings})
    try:
        name = "VAULT", f"{path}#password"
        return (await read_elsewhere([name]))[name]
    finally:
        use_settings({})


class _TokenReview(BaseHTTPRequestHandler):
    """The one thing that the vault asks of Kubernetes: whose token it is."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        user = {"username": "system:serviceaccount:db:gate", "uid": "u1"}
        good = body["spec"]["token"] == self.server.token  # type: ignore[attr-defined]
        answer = {**body, "status": {"authenticated": good, "user": user if good else {}}}
        text = json.dumps(answer).encode()
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def kubernetes() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _TokenReview)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


async def test_a_pod_logs_in_by_its_service_account(
    kubernetes: ThreadingHTTPServer, tmp_path: Path
) -> None:
    import jwt

    claims = {
        "sub": "system:serviceaccount:db:gate",
        "kubernetes.io": {"namespace": "db", "serviceaccount": {"name": "gate", "uid": "u1"}},
    }
    key = ec.generate_private_key(ec.SECP256R1())
    token = jwt.encode(claims, key, algorithm="ES256")
    kubernetes.token = token  # type: ignore[attr-defined]
    vault: OpenBao = shared()
    api = vault.client
    if "kubernetes/" not in api.sys.list_auth_methods()["data"]:
        api.sys.enable_auth_method("kubernetes")
    host = f"http://127.0.0.1:{kubernetes.server_address[1]}"
    authority = Authority(tmp_path, "kubernetes")
    api.auth.kubernetes.configure(
        host,
        authority.file.read_text(),
        token_reviewer_jwt=token,
        disable_local_ca_jwt=True,
    )
    rule = 'path "secret/data/*" { capabilities = ["read"] }'
    api.auth.kubernetes.create_role(
        "gate", ["gate"], ["db"], policies=[vault.policy(rule)], ttl="1h"
    )
    vault.write("pod", password="of the pod")
    (tmp_path / "token").write_text(token)
    login = KubernetesSettings("gate", str(tmp_path / "token"))
    settings = VaultSettings(address=vault.address, kubernetes=login)
    assert (await read_by(settings, "secret/data/pod")).secret == "of the pod"
