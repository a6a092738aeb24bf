"""Accounts on lease at a real MariaDB: a statement is ended by the account that runs it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import support.mysql_server as mysql_server
from products.vault.contract.test_kept_passwords import ACTOR, gate_of
from products.vault.support.openbao import shared
from support.eventually import until
from support.server_keeper import PASSWORD
from tidegate.errors import TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Call, Query
from tidegate.model.statements import Statement

pytestmark = pytest.mark.needs("mysql")


async def test_a_statement_of_the_lease_before_can_still_be_ended(tmp_path: Path) -> None:
    if not mysql_server.available():
        pytest.skip("needs a MariaDB server (the package mariadb-server-core)")
    vault, server = shared(), mysql_server.shared()
    database = server.new_database()
    server.script(f"CREATE OR REPLACE USER giver@'%' IDENTIFIED BY '{PASSWORD}'")
    server.script("GRANT ALL ON *.* TO giver@'%' WITH GRANT OPTION")
    place = f"tcp(127.0.0.1:{server.port})"
    engine = vault.client.secrets.database
    engine.configure(
        name="mariadb",
        plugin_name="mysql-database-plugin",
        allowed_roles=["shop"],
        connection_url=f"{{{{username}}}}:{{{{password}}}}@{place}/",
        username="giver",
        password=PASSWORD,
    )
    make = ["CREATE USER '{{name}}'@'%' IDENTIFIED BY '{{password}}'"]
    may = [f"GRANT SELECT ON {database}.* TO '{{{{name}}}}'@'%'"]
    engine.create_role("shop", "mariadb", make + may, default_ttl="6s", max_ttl="6s")
    user, password = (f"${{VAULT:database/creds/shop#{name}}}" for name in ("username", "password"))
    url = f"mariadb://{user}:{password}@127.0.0.1:{server.port}/{database}"
    token = tmp_path / "token"
    token.write_text(vault.token('path "database/creds/*" { capabilities = ["read"] }'))
    settings = {"address": vault.address, "token": f"${{FILE:{token}}}"}

    def running() -> bool:
        listed = "SELECT count(*) FROM information_schema.PROCESSLIST WHERE INFO"
        return server.script(f"{listed} LIKE 'SELECT SLEEP(100)%'") == [(1,)]

    async with gate_of(url, settings, tmp_path / "state") as gate:
        ((first,),) = await gate.ask("SELECT current_user()")
        cancellation = Cancellation()
        query = Query(Statement("SELECT SLEEP(100)"))
        call = Call(ACTOR, "core", "query", query, "shop", cancellation=cancellation)
        asked = asyncio.ensure_future(gate.app.gateway.handle(call))
        await until(running, "the statement runs")
        while await gate.ask("SELECT current_user()") == [[first]]:
            await asyncio.sleep(0.01)
        cancellation.cancel()
        with pytest.raises(TidegateError):
            await asked
        await until(lambda: not running(), "the server has ended the statement")
        assert json.dumps(await gate.ask("SELECT 1")) == "[[1]]"
    server.script("DROP USER giver@'%'")
