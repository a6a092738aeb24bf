"""A PgBouncer before the server of the tests, which gives each transaction another connection."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path

from support.server_keeper import SEARCHED, Keeper, KeptServer, keep

POOL = 4
"""Fewer connections to the server than clients have: they share them."""


def program() -> str | None:
    """Where PgBouncer is; None if it is not installed."""
    return shutil.which("pgbouncer", path=SEARCHED)


class Pooler(KeptServer):
    """A running PgBouncer. Everyone on this machine may pass it as `postgres`."""

    def __init__(self, directory: Path, port: int) -> None:
        super().__init__(__file__, str(directory), str(port))

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"


@functools.cache
def before(directory: Path, port: int) -> Pooler:
    """This process's pooler before a server with a socket in `directory`; it ends with it."""
    import atexit

    pooler = Pooler(directory, port)
    atexit.register(pooler.close)
    return pooler


class _Keeper(Keeper):
    def __init__(self, directory: str, port: str) -> None:
        super().__init__("bouncer")
        self._server = f"host={directory} port={port}"

    def prepare(self) -> None:
        users = self.directory / "users.txt"
        users.write_text('"postgres" ""\n')
        self.give(users)
        settings = self.directory / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = {self._server} user=postgres\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {users}\npool_mode = transaction\n"
            f"default_pool_size = {POOL}\nserver_reset_query_always = 0\n"
            "logfile =\npidfile =\n"
        )
        self.give(settings)

    def command(self) -> list[str]:
        found = program()
        assert found is not None
        return [os.path.realpath(found), "-q", str(self.directory / "pgbouncer.ini")]

    def is_ready(self) -> bool:
        import socket

        with socket.create_connection(("127.0.0.1", self.port), 1.0):
            return True


if __name__ == "__main__":
    keep(lambda: _Keeper(sys.argv[1], sys.argv[2]))
