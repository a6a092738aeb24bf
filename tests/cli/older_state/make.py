"""Make the state directory of an older version with that version's commands.

    git worktree add ../older 2a83567
    (cd ../older && ./dev environment run)
    ../older/.venv/bin/python tests/cli/older_state/make.py tests/cli/older_state

Run it with the Python of the older version. The files that it writes:
`state.sql` is the state file as text, `state/` the other files of the state directory as they were,
and `expected.json` what its user knows: secrets of tokens, what was shown, a checkpoint that was
kept elsewhere. The keys and secrets were made for this state and open nothing else.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import apsw.shell

FOLDER = Path("/tmp/tidegate-older-state")
"""Where the state and the database of its sources are made."""
URL = f"sqlite:///{FOLDER}/shop.db"
SHOP = """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT);
    INSERT INTO customers VALUES (1, 'Ann', 'ann@example.org'), (2, 'Bo', 'bo@example.org');
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, total REAL);
    INSERT INTO orders VALUES (1, 1, 9.5), (2, 1, 20.0), (3, 2, 7.25);
"""
READS = ("SELECT name, email FROM customers ORDER BY id", "SELECT total FROM orders WHERE id > 1")
FAILS = "SELECT nope FROM customers"
ALLOWED = "UPDATE orders SET total = 10 WHERE id = 1"
USED = "UPDATE orders SET total = 11 WHERE id = 1"
DENIED = "DELETE FROM orders WHERE id = 2"
PENDING = "DELETE FROM orders WHERE id = 3"


def main(target: Path) -> None:
    FOLDER.mkdir(mode=0o700)
    try:
        _save(FOLDER, target, _Maker(FOLDER).made())
    finally:
        shutil.rmtree(FOLDER)


class _Maker:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "TIDEGATE_STATE": str(folder / "state"),
        }
        self._settings = folder / "settings.json"
        # Small segments, so that there are several.
        self._settings.write_text(json.dumps({"audit": {"segment_bytes": 6000}}))

    def made(self) -> dict[str, Any]:
        with sqlite3.connect(self._folder / "shop.db") as shop:
            shop.executescript(SHOP)
        self._run(
            "source", "add", "shop", URL, "--allow-writes", "--tag", "prod", "--safe-mode", "alert",
            "--destructive-scope", "fullAccess", "--mask", "customers.email=hash",
            "--filter", "orders: total > 8",
        )  # fmt: skip
        self._run("source", "add", "asks", URL, "--allow-writes", "--safe-mode", "alert")
        self._run("source", "add", "plain", URL, "--ai-policy", "never")
        secrets = {
            "claude": self._token("claude", "readWrite", "--source", "shop", "--table", "orders"),
            "reader": self._token("reader", "readOnly", "--tag", "prod", "--expires", "90d"),
            "gone": self._token("gone", "fullAccess"),
        }
        self._run("token", "revoke", "gone")
        shown = [json.loads(self._run("query", "shop", sql, "--json")) for sql in READS]
        approvals = self._as_an_agent()
        checkpoint = self._run("audit", "checkpoint")
        self._run("query", "plain", "SELECT count(*) FROM orders")
        return {
            "made_at": time.time(), "shop": SHOP, "secrets": secrets,
            "reads": dict(zip(READS, shown, strict=True)),
            "approvals": approvals, "checkpoint": checkpoint,
            "verified": self._run("audit", "verify"), "key": self._run("audit", "key").strip(),
        }  # fmt: skip

    def _token(self, name: str, scope: str, *words: str) -> str:
        return self._run("token", "create", name, "--scope", scope, *words).strip()

    def _as_an_agent(self) -> dict[str, str]:
        """What an agent did at stdio, and the ids of its questions by their states."""
        command = [sys.executable, "-m", "tidegate", "serve", "--surface", "core", "--allow-writes"]
        server = subprocess.Popen(
            [*command, "--config", str(self._settings)], env=self._environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert server.stdin is not None and server.stdout is not None
        writing, reading = server.stdin, server.stdout

        def ask(sql: str, source: str = "asks") -> str:
            meta = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            arguments = {"sql": sql, "source": source}
            params = {"name": "query", "arguments": arguments, "_meta": meta}
            line = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            writing.write(json.dumps(line) + "\n")
            writing.flush()
            return reading.readline()

        ids: dict[str, str] = {}
        for sql in (*READS, FAILS):
            ask(sql)
        for sql, state in (
            (ALLOWED, "allowed"), (USED, "used"), (DENIED, "denied"), (PENDING, "pending"),
        ):  # fmt: skip
            known = set(ids.values())
            ask(sql)
            listed = json.loads(self._run("approvals", "list", "--json"))["approvals"]
            (ids[state],) = {each["id"] for each in listed} - known
            if state == "denied":
                self._run("approvals", "deny", ids[state], "--reason", "not these")
            elif state != "pending":
                self._run("approvals", "allow", ids[state])
        ask(USED)
        writing.close()
        server.wait()
        return ids

    def _run(self, *words: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "tidegate", *words],
            env=self._environment, check=True, text=True, stdout=subprocess.PIPE,
        ).stdout  # fmt: skip


def _save(folder: Path, target: Path, expected: dict[str, Any]) -> None:
    text = io.StringIO()
    state = apsw.Connection(str(folder / "state" / "state.db"))
    apsw.shell.Shell(stdout=text, db=state).process_command(".dump")
    state.close()
    lines = [line for line in text.getvalue().splitlines() if not line.startswith("--")]
    (target / "state.sql").write_text("\n".join(lines) + "\n")
    shutil.rmtree(target / "state", ignore_errors=True)
    leave = shutil.ignore_patterns("state.db*", "*.lock")
    shutil.copytree(folder / "state", target / "state", ignore=leave)
    (target / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
