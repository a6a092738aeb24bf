"""Two PostgreSQL servers that take turns: one follows the other, is promoted when that is killed,
and the killed one comes back as its standby."""

from __future__ import annotations

import functools
import shutil
import signal
import sys
from pathlib import Path

from support.eventually import wait_until
from support.postgres_server import Server, _reachable
from support.server_keeper import Keeper, KeptServer, keep

SLOTS = 200
"""Connections that a server takes."""


class Node(KeptServer):
    """One of the two. `address` is where it listens beside its Unix socket, if anywhere."""

    def __init__(self, source: KeptServer, binaries: Path, address: str = "") -> None:
        super().__init__(__file__, str(binaries), str(source.directory), str(source.port), address)

    def ask(self, text: str, database: str = "postgres") -> list[tuple]:
        """Run SQL on it."""
        import psycopg

        info = f"host={self.directory} port={self.port} dbname={database} user=postgres"
        with psycopg.connect(info, autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    def pids(self) -> list[int]:
        """Its processes."""
        first = int((self.directory / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def follow(self, primary: Node) -> None:
        """Start again as a standby of the other, with its data."""
        self._command(f"follow {primary.directory} {primary.port}")


class Pair:
    """`primary` takes writes, and waits for `standby` at each commit that must last. Both are made
    of `seed`, which is not needed afterwards."""

    def __init__(self, seed: Server, address: str = "") -> None:
        seed.ask("ALTER SYSTEM SET wal_level = replica")
        seed.ask("ALTER SYSTEM SET max_wal_senders = 4")
        seed.ask("ALTER SYSTEM SET synchronous_commit = on")
        seed.ask(f"ALTER SYSTEM SET max_connections = {SLOTS}")
        seed.restart()
        self.primary = Node(seed, seed.binaries, address)
        self.primary.ask("SELECT pg_promote()")
        self.standby = Node(self.primary, seed.binaries, address)
        self._wait_for_standby()

    def url(self, database: str, address: str = "") -> str:
        """Of both, by their Unix sockets or at an address: the one that takes writes is used."""
        nodes = (self.primary, self.standby)
        hosts = ",".join(address or str(each.directory) for each in nodes)
        return (
            f"postgresql://postgres@/{database}?host={hosts}"
            f"&port={','.join(str(n.port) for n in nodes)}&target_session_attrs=read-write"
        )

    def promote(self) -> None:
        """Kill the primary; the standby takes its place."""
        self.primary.kill()
        self.primary, self.standby = self.standby, self.primary
        self.primary.ask("SELECT pg_promote()")

    def detach(self) -> None:
        """From now on the standby hears of nothing, and the primary does not wait for it."""
        self.primary.ask("ALTER SYSTEM SET synchronous_standby_names = ''")
        self.standby.ask("ALTER SYSTEM SET primary_conninfo = ''")
        for each in (self.primary, self.standby):
            each.ask("SELECT pg_reload_conf()")
        wait_until(
            lambda: not self.standby.ask("SELECT 1 FROM pg_stat_wal_receiver"),
            "the standby to follow no more",
        )

    def rejoin(self) -> None:
        """The one that was killed follows the other."""
        self.standby.follow(self.primary)
        self._wait_for_standby()

    def _wait_for_standby(self) -> None:
        wait_until(
            lambda: self.primary.ask("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"),
            "the standby to follow",
        )
        self.primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.ask("SELECT pg_reload_conf()")

    def close(self) -> None:
        self.standby.close()
        self.primary.close()


class _NodeKeeper(Keeper):
    end_signal = signal.SIGINT
    crash_signal = signal.SIGQUIT

    def __init__(self, binaries: Path, source: str, port: str, address: str) -> None:
        super().__init__("node")
        self.binaries = binaries
        self._source, self._source_port, self._address = source, port, address

    def prepare(self) -> None:
        self.binaries = _reachable(self.binaries, self.directory)
        self._copy()

    def _copy(self) -> None:
        self.run(
            str(self.binaries / "pg_basebackup"), "-h", self._source, "-p", self._source_port,
            "-U", "postgres", "-D", "data", "-R", "-X", "stream", "-c", "fast", "--no-sync",
        )  # fmt: skip
        with (self.directory / "data" / "postgresql.auto.conf").open("a") as settings:
            settings.write(
                f"port = {self.port}\nunix_socket_directories = '{self.directory}'\n"
                f"listen_addresses = '{self._address}'\nsynchronous_standby_names = ''\n"
                "hot_standby = on\nsynchronous_commit = on\nautovacuum = on\n"
            )
        if self._address:
            with (self.directory / "data" / "pg_hba.conf").open("a") as rules:
                rules.write("host all all samenet trust\n")

    def follow(self, source: str, port: str) -> None:
        self._source, self._source_port = source, port
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory / "data")
        self._copy()
        self.start()

    def command(self) -> list[str]:
        return [str(self.binaries / "postgres"), "-D", "data"]

    def is_ready(self) -> bool:
        pid_file = self.directory / "data" / "postmaster.pid"
        return pid_file.read_text().rstrip().endswith(("ready", "standby"))


if __name__ == "__main__":
    keep(functools.partial(_NodeKeeper, Path(sys.argv[1]), *sys.argv[2:5]))
