"""MariaDB servers for the tests: started when first asked for, gone with the process that asked.

Debian's `mariadbd` (package `mariadb-server-core`), on a free port and a socket of its own, with
its data in a folder that is removed. Each has a keeper (`server_keeper.py`).
"""

from __future__ import annotations

import functools
import os
import shutil
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from support.other_loop import run_in_thread
from support.server_keeper import NOBODY, PASSWORD, SEARCHED, Keeper, KeptServer, keep

_numbers = count(1)


class Server(KeptServer):
    """A running server. `root` may do everything; on the Unix socket it needs no password."""

    def __init__(self, *, tls: bool = False) -> None:
        super().__init__(__file__, *(["tls"] if tls else []))
        self.script(
            f"CREATE USER 'word'@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO 'word'@'%';"
            "CREATE USER 'reader'@'%'; GRANT SELECT, SHOW VIEW ON *.* TO 'reader'@'%'"
        )

    @property
    def socket(self) -> Path:
        return self.directory / "socket"

    def url(self, database: str = "", user: str = "root", options: str = "") -> str:
        """By the Unix socket."""
        return f"mysql://{user}@/{database}?socket={self.socket}{options}"

    def tcp_url(self, database: str = "", port: int = 0, options: str = "") -> str:
        """By TCP, with a reference to the password, which `MYTEST_PASSWORD` must hold."""
        where = f"127.0.0.1:{port or self.port}/{database}"
        return f"mariadb://word:${{ENV:MYTEST_PASSWORD}}@{where}?connect_timeout=5{options}"

    def script(self, text: str, database: str = "", user: str = "root") -> list[tuple]:
        """Run statements, separated by semicolons, as another client would; rows of the last."""

        async def work(connection: Any) -> list[tuple]:
            cursor = connection.cursor()
            await cursor.execute(text)
            rows = await cursor.fetchall() if cursor.description else []
            while await cursor.nextset():
                rows = await cursor.fetchall() if cursor.description else []
            return [tuple(row) for row in rows]

        return self.connected(work, database, user)

    def connected(
        self, work: Callable[[Any], Awaitable[Any]], database: str = "", user: str = "root"
    ) -> Any:
        """Do `work` with a bare connection, which takes several statements at once."""

        async def connect() -> Any:
            from asyncmy import connect

            connection = await connect(
                unix_socket=str(self.socket), user=user, database=database or None, autocommit=True
            )
            try:
                return await work(connection)
            finally:
                await connection.ensure_closed()

        return run_in_thread(connect())

    def end_connections(self, condition: str) -> None:
        """End those that the process list shows under `condition`."""
        from asyncmy.errors import OperationalError

        listed = "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID()"
        for (thread,) in self.script(f"{listed} AND {condition}"):
            with suppress(OperationalError):  # it has ended meanwhile
                self.script(f"KILL {thread}")

    def new_database(self) -> str:
        """A database of its own for one test."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.script(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name: str) -> None:
        self.script(f"DROP DATABASE IF EXISTS {name}")

    def files(self) -> set[str]:
        """The files beside the tables' own that stand where the server could write."""
        return {
            str(path.relative_to(self.directory))
            for path in self.directory.rglob("*")
            if not path.name.startswith(("ib_", "ibtmp", "undo", "aria_log", "log"))
        }


def available() -> bool:
    """Whether a server can be started here."""
    return _program("mariadbd") is not None and shutil.which("mariadb-install-db") is not None


@functools.cache
def shared() -> Server:
    """This process's server; it ends with the process. The test that asks is skipped by name where
    none is installed."""
    import atexit

    if not available():
        import pytest

        pytest.skip("needs a MariaDB server (the package mariadb-server-core)")
    server = Server()
    atexit.register(server.close)
    return server


# What the keeper does.


def _program(name: str) -> str | None:
    return shutil.which(name, path=SEARCHED)


def _make_certificate(directory: Path) -> None:
    """A certificate for 127.0.0.1 that signs itself: `cert.pem` and `key.pem`."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form, cipher = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (directory / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (directory / "key.pem").write_bytes(key.private_bytes(pem, form, cipher))
    if os.getuid() == 0:
        os.chown(directory / "key.pem", NOBODY, NOBODY)


SMALL = "--innodb-buffer-pool-size=32M --innodb-log-file-size=16M"
"""Its log would take 96 MB of the memory that all servers of the tests share."""


class _Keeper(Keeper):
    def __init__(self, *, tls: bool) -> None:
        super().__init__("my")
        self.tls = tls
        self.more: tuple[str, ...] = ()

    def prepare(self) -> None:
        if self.tls:
            _make_certificate(self.directory)
            self.more = tuple(
                f"--ssl-{part}={self.directory}/{file}.pem"
                for part, file in (("cert", "cert"), ("key", "key"), ("ca", "cert"))
            )
        # A server that begins removes what looks like its temporary tables in `tmpdir`: in /tmp
        # those of another installation, which then fails.
        self.run(
            *f"mariadb-install-db --no-defaults --datadir={self.directory}/data "
            f"--tmpdir={self.directory} "
            "--auth-root-authentication-method=normal --skip-test-db --skip-name-resolve "
            f"{SMALL}".split()
        )

    def command(self) -> list[str]:
        path = self.directory / "socket"
        path.unlink(missing_ok=True)
        options = (
            f"--no-defaults --datadir={self.directory}/data --port={self.port} --socket={path} "
            f"--bind-address=127.0.0.1 --skip-name-resolve --skip-log-bin "
            f"--tmpdir={self.directory} --pid-file={self.directory}/pid "
            f"{SMALL} --max-connections=100 --innodb-flush-log-at-trx-commit=2 "
            f"--key-buffer-size=1M --aria-pagecache-buffer-size=8M --secure-file-priv="
        )
        return [str(_program("mariadbd")), *options.split(), *self.more]

    def is_ready(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(self.directory / "socket"))
            return bool(probe.recv(1))


if __name__ == "__main__":
    keep(lambda: _Keeper(tls="tls" in sys.argv))
