"""A standby of a PostgreSQL server of the tests."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from support.postgres_server import Server, _reachable
from support.server_keeper import Keeper, KeptServer, keep


class Standby(KeptServer):
    """Follows a server, which has `wal_level = replica` and a sender free."""

    def __init__(self, primary: Server) -> None:
        super().__init__(__file__, str(primary.binaries), str(primary.directory), str(primary.port))

    def ask(self, text: str, database: str = "postgres") -> list[tuple]:
        """Run SQL on it."""
        import psycopg

        info = f"host={self.directory} port={self.port} dbname={database} user=postgres"
        with psycopg.connect(info, autocommit=True) as connection:
            cursor = connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else []


class _Keeper(Keeper):
    end_signal = signal.SIGINT
    crash_signal = signal.SIGQUIT

    def __init__(self, binaries: Path, primary: str, port: str) -> None:
        super().__init__("standby")
        self.binaries = binaries
        self._primary = ("-h", primary, "-p", port, "-U", "postgres")

    def prepare(self) -> None:
        self.binaries = _reachable(self.binaries, self.directory)
        self.run(
            str(self.binaries / "pg_basebackup"), *self._primary, "-D", "data", "-R", "-X", "fetch",
            "-c", "fast", "--no-sync",
        )  # fmt: skip
        with (self.directory / "data" / "postgresql.auto.conf").open("a") as settings:
            settings.write(
                f"port = {self.port}\nunix_socket_directories = '{self.directory}'\n"
                "synchronous_standby_names = ''\n"
            )

    def command(self) -> list[str]:
        return [str(self.binaries / "postgres"), "-D", "data"]

    def is_ready(self) -> bool:
        pid_file = self.directory / "data" / "postmaster.pid"
        return pid_file.read_text().rstrip().endswith(("ready", "standby"))


if __name__ == "__main__":
    keep(lambda: _Keeper(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
