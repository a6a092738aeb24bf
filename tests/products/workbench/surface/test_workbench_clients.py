"""Official clients and the HTTP statuses of errors: the session lives on, the words arrive."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.command_line import serving, tidegate
from wire.conversations import python_sdk

CLIENTS = {
    "python 1": lambda config: python_sdk(1, config),
    "python 2": lambda config: python_sdk(2, {**config, "mode": "auto"}),
    "python 2 of the era before": lambda config: python_sdk(2, {**config, "mode": "legacy"}),
}
SELECT = "SELECT name FROM towns"


@pytest.fixture
def where(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """How a client with a reading token reaches a server over HTTP."""
    database, state = tmp_path / "towns.db", tmp_path / "state"
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE towns (name TEXT)")
    connection.execute("INSERT INTO towns VALUES ('Köln')")
    connection.commit()
    connection.close()
    token = tidegate("token", "create", "peer", "--scope", "readOnly", state=state).out.strip()
    own = json.dumps({"surface": {"workbench": {"errors": "document"}}})
    words = ["serve", "--surface", "workbench", "--source", f"towns=sqlite:///{database}",
             "--state", str(state), "--http", "127.0.0.1:0",
             "--config", own]  # fmt: skip
    with serving(words, state) as server:
        said = server.until("serving").split()
        address = next(word for word in said if word.startswith("http"))
        port = int(address.removesuffix("/mcp").rpartition(":")[2])
        yield {"url": f"http://127.0.0.1:{port}/mcp/workbench", "token": token}


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_after_errors_of_every_status_the_session_lives_on(
    where: dict[str, Any], client: str
) -> None:
    converse = CLIENTS[client]
    listed = converse({**where, "calls": [["list_connections", {}]]})
    on = {"connection_id": json.loads(listed["results"][0]["text"])["connections"][0]["id"]}
    large = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9)"
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    wrong: list[tuple[str, dict[str, Any], int]] = [
        ("execute_query", {"query": "DELETE FROM towns WHERE name = ''"}, -32007),
        ("disconnect", {}, -32007),
        ("no_such_tool", {}, -32601),
        ("execute_query", {"query": "SELECT nope"}, -32602),
        ("execute_query", {"query": endless, "timeout_seconds": 1}, -32003),
        (
            "export_data",
            {"format": "csv", "query": f"{large} SELECT printf('%.*c', 999999, 'x') FROM n"},
            -32005,
        ),
    ]
    calls = [call for tool, arguments, _ in wrong for call in (
        [tool, on | arguments], ["execute_query", on | {"query": SELECT}],
    )]  # fmt: skip
    results = converse({**where, "calls": calls})["results"]
    for (tool, _, code), refused, after in zip(wrong, results[::2], results[1::2], strict=True):
        assert refused["code"] == code, (tool, refused)
        assert "Köln" in after["text"], tool
