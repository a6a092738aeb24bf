"""The floor: the driver call and the encoding, and as little else as MCP allows.

No identity, no judgement, no record, no limits, no cancellation: what a governed server costs is
the distance to this. Run as a program: `floor.py http DATABASE PORT` or `floor.py stdio DATABASE`;
the database is a SQLite file, or a DuckDB file if its name ends in `.duckdb`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec

TOOL = {
    "name": "query",
    "description": "Run SQL.",
    "inputSchema": {
        "type": "object",
        "properties": {"sql": {"type": "string"}},
        "required": ["sql"],
    },
}


class Arguments(msgspec.Struct, frozen=True):
    sql: str = ""


class Parameters(msgspec.Struct, frozen=True):
    name: str = ""
    arguments: Arguments = Arguments()


class Request(msgspec.Struct, frozen=True):
    method: str
    id: int | None = None
    params: Parameters = Parameters()


Ask = Callable[[str], tuple[list[str], list[Any]]]
"""Runs a statement and gives its columns and rows."""


def _asking(database: str) -> Ask:
    """One connection to the database. A driver is loaded only if it is used."""
    if database.endswith(".duckdb"):
        import duckdb

        duck = duckdb.connect(database, read_only=True)

        def ask_duckdb(sql: str) -> tuple[list[str], list[Any]]:
            cursor = duck.execute(sql)
            return [column[0] for column in cursor.description or ()], cursor.fetchall()

        return ask_duckdb

    import apsw

    connection = apsw.Connection(database, flags=apsw.SQLITE_OPEN_READONLY)

    def ask_sqlite(sql: str) -> tuple[list[str], list[Any]]:
        cursor = connection.execute(sql)
        return [name for name, _ in cursor.get_description()], cursor.fetchall()

    return ask_sqlite


class Floor:
    """Answers one message after the other on one connection to the database."""

    def __init__(self, database: str) -> None:
        self._ask = _asking(database)
        self._decoder = msgspec.json.Decoder(Request)
        self._encoder = msgspec.json.Encoder()

    def answer(self, message: bytes) -> bytes:
        """The reply to one JSON-RPC message; empty for a notification."""
        request = self._decoder.decode(message)
        if request.method == "tools/call":
            result = self._query(request.params.arguments.sql)
        elif request.id is None:
            return b""
        else:
            result = self._encoder.encode(self._describe(request.method))
        return b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (request.id or 0, result)

    def _query(self, sql: str) -> bytes:
        columns, rows = self._ask(sql)
        body = self._encoder.encode({"columns": columns, "rows": rows})
        return b'{"resultType":"complete","content":[{"type":"text","text":%b}]}' % (
            self._encoder.encode(body.decode())
        )

    def _describe(self, method: str) -> dict[str, Any]:
        if method == "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "floor", "version": "1"},
            }
        return {"tools": [TOOL]} if method == "tools/list" else {}


def serve_http(database: str, port: int) -> None:
    """Serve on loopback: a bare ASGI handler on uvicorn, uvloop and httptools."""
    import uvicorn

    floor = Floor(database)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        event = await receive()
        message = event["body"]
        while event.get("more_body"):
            event = await receive()
            message += event["body"]
        body = floor.answer(message)
        length = b"%d" % len(body)
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]
        status = 200 if body else 202
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    uvicorn.run(
        application,
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )


def serve_stdio(database: str) -> None:
    """Serve line by line until standard input ends."""
    floor = Floor(database)
    for line in sys.stdin.buffer:
        reply = floor.answer(line)
        if reply:
            sys.stdout.buffer.write(reply + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    if sys.argv[1] == "http":
        serve_http(sys.argv[2], int(sys.argv[3]))
    else:
        serve_stdio(sys.argv[2])
