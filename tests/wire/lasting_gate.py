"""The real server over HTTP on one SQLite database, with short times, that a test can kill."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from support.command_line import Ended, tidegate
from support.eventually import wait_until
from support.free_ports import claim_port
from wire.served import Served
from wire.wires import MODERN, HttpPeer

TAKES_TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


class Gate:
    """The real server over HTTP, on one database, with hasty settings."""

    def __init__(self, directory: Path) -> None:
        self.database = directory / "towns.db"
        self.state = directory / "state"
        self.settings = directory / "gate.toml"
        self.port = claim_port()
        self.served: Served | None = None
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
            connection.execute("INSERT INTO towns VALUES (1, 'Köln'), (2, 'Lemberg')")
        self.write()
        made = self.run("token", "create", "agent", "--scope", "readWrite")
        assert made.status == 0, made.err
        self.token = made.out.strip()

    def write(
        self, source: str = 'approval_for = "nothing"', tasks: str = "", more: str = ""
    ) -> None:
        self.settings.write_text(
            f'state = "{self.state}"\nhttp = "127.0.0.1:{self.port}"\n'
            f"surfaces = {json.dumps(['core', 'workbench', 'postgres'])}\n{more}\n"
            f"[limits]\ntimeout_s = 120\n[tasks]\n{tasks or 'after_s = 0.2'}\n"
            f'[[sources]]\nname = "towns"\nurl = "sqlite:///{self.database}"\n'
            f'access = "write"\n{source}\n'
        )

    def run(self, *words: str) -> Ended:
        return tidegate(*words, "--config", str(self.settings))

    def start(self) -> None:
        command = [sys.executable, "-m", "tidegate", "serve", "--config", str(self.settings)]
        self.served = Served(command, self.port)

    def kill(self) -> None:
        assert self.served is not None
        self.served.process.kill()
        self.served.process.wait()
        self.served.close()
        self.served = None

    def close(self) -> None:
        if self.served is not None:
            self.served.close()

    def client(self, revision: str = MODERN, capabilities: Any = TAKES_TASKS) -> HttpPeer:
        peer = HttpPeer(self.port, revision, capabilities=capabilities)
        peer.token = self.token
        return peer.connect()

    def names(self) -> list[str]:
        with closing(sqlite3.connect(self.database)) as connection:
            return [row[0] for row in connection.execute("SELECT name FROM towns ORDER BY id")]

    def until_changing(self, task: str = "%") -> None:
        """Return when it is kept that the task, or any, may change data."""

        def look() -> bool:
            with closing(sqlite3.connect(self.state / "state.db")) as connection:
                query = "SELECT max(changes) FROM tasks WHERE id LIKE ?"
                return bool(connection.execute(query, (task,)).fetchone()[0])

        wait_until(look, "the change is sent")

    def question(self) -> str:
        waiting = wait_until(
            lambda: self.run("approvals", "list", "--json").json["approvals"], "a question waits"
        )
        return waiting[-1]["id"]
