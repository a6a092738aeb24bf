"""The command `./dev bench cloud`: statements over a provider's API, beside a bare client's loop.

The API is a process of its own that answers after a fixed delay. Each round runs the statements
through the gate, and where only requests count, the same requests by httpx with as many at once.

    ./dev bench cloud                  three rounds: half a minute
    ./dev bench cloud --delay-ms 100
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar

import httptools
import httpx
import msgspec

from bench.figures import median, percentile, rotate
from tidegate.app import App
from tidegate.config.model import Config, SourceSettings
from tidegate.engines.registry import engine_of, language_of, open_engine
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER
from tidegate.model.decisions import Permit
from tidegate.model.requests import Call, Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.products.cloud.documents.document_catalog import DocumentCatalog
from tidegate.products.cloud.documents.registry_folder import RegistryFolder

AT_ONCE = 16
KEYS, PAGES, SIDE, ROWS, COLUMNS = 200, 100, 5_000, 100_000, 20
ACTOR = Actor("bench", "bench", Scope.READ_ONLY)
IN_LIST = ", ".join(f"'{n}'" for n in range(50))
STATEMENTS = {
    "IN list of 50": (
        f"SELECT count(*) FROM api.bench.things WHERE key IN ({IN_LIST})", 50, 0.5,
    ),
    "dependent join of 200 keys": (
        "SELECT count(*) FROM api.bench.keys k JOIN api.bench.things t ON t.key = k.key", 200, 1.0,
    ),
    "100 pages": ("SELECT count(*) FROM api.bench.pages", 200, 0.0),
    "join of 5,000 and 5,000": (
        "SELECT count(*), sum(l.n + r.n) FROM api.bench.left_side l"
        " JOIN api.bench.right_side r ON r.id = l.id", 5_000, 0.2,
    ),
    "join of 5,000 with 5,000 of SQLite": (
        "SELECT count(*), sum(l.n + r.n) FROM api.bench.left_side l"
        " JOIN other.main.right_side r ON r.id = l.id", 5_000, 0.2,
    ),
    "100,000 rows of 20 columns": (
        "SELECT " + ", ".join(f"sum(c{n})" for n in range(COLUMNS)) + " FROM api.bench.wide",
        None, 0.0,
    ),
}  # fmt: skip
"""The statement, the first value of its result, and how many seconds it should take at most. Of the
join the seconds are those of the join alone: both sides are fetched before."""

PROVIDER = """
id: api
name: api
version: v00.00.00000
title: A bench
providerServices:
  bench: {name: bench, title: bench, service: {$ref: api/v00.00.00000/services/bench.yaml}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench cloud", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay-ms", type=float, default=30)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(serve(float(chosen.serve)))
        return
    folder = Path(tempfile.mkdtemp(prefix="tidegate-bench-cloud-"))
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.cloud", "--serve", str(chosen.delay_ms / 1000)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        write_documents(folder)
        rounds = asyncio.run(measure(folder, f"http://127.0.0.1:{port}", chosen.rounds))
        print(render(rounds, chosen.delay_ms))
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder)


async def measure(folder: Path, url: str, rounds: int) -> list[dict[str, float]]:
    """Seconds by name, for each round."""
    settings = json.dumps({"endpoints": {"https://api.bench.example": url}})
    place = f"cloud://{folder}"
    source = Source("b", "b", place, *engine_of(place), options=(("settings", settings),))
    results: list[dict[str, float]] = []
    async with httpx.AsyncClient(
        base_url=url, limits=httpx.Limits(max_connections=AT_ONCE)
    ) as client:
        loops = {
            "IN list of 50": lambda: get_all(client, [f"/things/{n}" for n in range(50)]),
            "dependent join of 200 keys": lambda: get_keys(client),
            "100 pages": lambda: get_pages(client),
        }
        for number in range(rounds):
            row: dict[str, float] = {"load": os.getloadavg()[0]}
            began = time.perf_counter()
            DocumentCatalog(RegistryFolder(folder)).resource(("api", "bench", "things"))
            row["a service read"] = time.perf_counter() - began
            for name in rotate(list(STATEMENTS), number):
                row[name] = await run_statement(source, name)
                if name in loops:
                    row[f"{name}, bare"] = await timed(loops[name])
            results.append(row)
    return results


async def run_statement(source: Source, name: str) -> float:
    text, expected, _ = STATEMENTS[name]
    if "other." in text:
        return await run_joined(source, text, expected)
    engine = await open_engine(source)
    try:
        if name.startswith("join"):
            # What both sides take to be fetched is taken off.
            alone = await timed(
                lambda: ask(
                    source,
                    engine,
                    "SELECT count(l.id) + count(l.n) FROM api.bench.left_side l UNION ALL"
                    " SELECT count(r.id) + count(r.n) FROM api.bench.right_side r",
                )
            )
            whole = await timed(lambda: ask(source, engine, text, expected))
            return max(0.0, whole - alone)
        return await timed(lambda: ask(source, engine, text, expected))
    finally:
        await engine.close()


async def run_joined(source: Source, text: str, expected: int | None) -> float:
    """Seconds of a join with a table of SQLite, through the gate, less what it takes to read both
    sides."""
    folder = Path(tempfile.mkdtemp(prefix="tidegate-bench-joined-"))
    database = folder / "other.db"
    with contextlib.closing(sqlite3.connect(database)) as made:
        made.execute("CREATE TABLE right_side (id INTEGER, n INTEGER)")
        rows = [(n, n % 7) for n in reversed(range(SIDE))]
        made.executemany("INSERT INTO right_side VALUES (?, ?)", rows)
        made.commit()
    sources = (
        SourceSettings(source.name, source.url, options=dict(source.options)),
        SourceSettings("other", f"sqlite:///{database}"),
    )
    app = App.open(Config(sources=sources, state=str(folder / "state")))

    async def handle(text: str) -> Any:
        query = Query(Statement(text), limits=Limits(timeout_s=120))
        call = Call(ACTOR, "bench", "bench", query, source=source.name)
        return msgspec.json.decode((await app.gateway.handle(call)).payload.rows)

    try:
        await handle("SELECT count(*) FROM api.bench.keys, other.main.right_side LIMIT 1")
        alone = await timed(
            lambda: handle(
                "SELECT count(l.id) + count(l.n) FROM api.bench.left_side l UNION ALL"
                " SELECT count(r.id) + count(r.n) FROM other.main.right_side r"
            )
        )
        began = time.perf_counter()
        found = await handle(text)
        whole = time.perf_counter() - began
        if found[0][0] != expected:
            raise AssertionError(f"{text}: {found[0]}")
        return max(0.0, whole - alone)
    finally:
        await app.close()
        shutil.rmtree(folder)


async def ask(source: Source, engine: Any, text: str, expected: int | None = None) -> None:
    query = Query(Statement(text), limits=Limits(timeout_s=120))
    judgement = language_of(source).classify(query, source)
    permit = Permit(
        *("bench", ACTOR, source, query, Effect.READ, query.limits),
        judgement=judgement,
        judged_text=text,
    )
    cursor = await engine.run(permit, NEVER)
    try:
        rows = await cursor.fetch(10)
    finally:
        await cursor.close()
    if expected is not None and rows[0][0] != expected:
        raise AssertionError(f"{text}: {rows[0]}")


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def get_all(client: httpx.AsyncClient, paths: list[str]) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def get(path: str) -> None:
        async with turns:
            (await client.get(path)).raise_for_status().json()

    await asyncio.gather(*(get(path) for path in paths))


async def get_keys(client: httpx.AsyncClient) -> None:
    keys = (await client.get("/keys")).json()["items"]
    await get_all(client, [f"/things/{each['key']}" for each in keys])


async def get_pages(client: httpx.AsyncClient) -> None:
    path: str | None = "/pages"
    while path is not None:
        page = (await client.get(path)).json()
        path = f"/pages?page={page['next']}" if "next" in page else None


def render(rounds: list[dict[str, float]], delay_ms: float) -> str:
    lines = [
        f"An API that answers after {delay_ms:g} ms, {AT_ONCE} requests at once, {len(rounds)}"
        f" rounds, load {median(rounds, 'load'):.1f}. Medians, in seconds.",
        "",
        "| statement | at most | measured | bare httpx | ratio |",
        "|---|---|---|---|---|",
    ]
    for name, (_, _, most) in STATEMENTS.items():
        bare = f"{name}, bare"
        aim = f"{most:g}" if most else ""
        if bare in rounds[0]:
            ratio = percentile([row[name] / row[bare] for row in rounds], 0.5)
            shown = f"{median(rounds, bare):.3f} | {ratio:.2f}"
        else:
            shown = " | "
        lines.append(f"| {name} | {aim} | {median(rounds, name):.3f} | {shown} |")
    lines.append(
        f"| a service of 6 resources read | | {median(rounds, 'a service read'):.3f} | | |"
    )
    return "\n".join(lines)


def write_documents(folder: Path) -> None:
    def resource(name: str, path: str, columns: dict[str, str], config: Any = None) -> None:
        link = path.replace("/", "~1")
        properties = {each: {"type": kind} for each, kind in columns.items()}
        items = {"type": "array", "items": {"type": "object", "properties": properties}}
        schema = {"type": "object", "properties": {"items": items}}
        parameters = [{"name": "key", "in": "path", "required": True, "schema": {"type": "string"}}]
        paths[path] = {
            "get": {
                "parameters": parameters if "{key}" in path else [],
                "responses": {"200": {"content": {"application/json": {"schema": schema}}}},
            }
        }
        entry: dict[str, Any] = {
            "name": name,
            "methods": {
                "list": {
                    "operation": {"$ref": f"#/paths/{link}/get"},
                    "response": {
                        "mediaType": "application/json",
                        "openAPIDocKey": "200",
                        "objectKey": "$.items",
                    },
                }
            },
            "sqlVerbs": {
                "select": [{"$ref": f"#/components/x-stackQL-resources/{name}/methods/list"}]
            },
        }
        resources[name] = entry | ({"config": config} if config else {})

    paths: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    pagination = {
        "requestToken": {"key": "page", "location": "query"},
        "responseToken": {"key": "$.next", "location": "body"},
    }
    resource("things", "/things/{key}", {"name": "string"})
    resource("keys", "/keys", {"key": "string"})
    resource("pages", "/pages", {"n": "integer"}, {"pagination": pagination})
    resource("left_side", "/left", {"id": "integer", "n": "integer"})
    resource("right_side", "/right", {"id": "integer", "n": "integer"})
    resource("wide", "/wide", {f"c{n}": "integer" for n in range(COLUMNS)})
    service = {
        "openapi": "3.0.0",
        "info": {"title": "bench", "version": "1"},
        "servers": [{"url": "https://api.bench.example"}],
        "paths": paths,
        "components": {"x-stackQL-resources": resources},
    }
    place = folder / "src" / "api" / "v00.00.00000"
    (place / "services").mkdir(parents=True)
    (place / "provider.yaml").write_text(PROVIDER)
    (place / "services" / "bench.yaml").write_text(json.dumps(service))


class Api(asyncio.Protocol):
    """One connection to the API."""

    bodies: ClassVar[dict[str, bytes]] = {}
    delay_s = 0.03

    def __init__(self) -> None:
        self._parser: Any = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url.decode()

    def on_message_complete(self) -> None:
        asyncio.get_running_loop().call_later(self.delay_s, self._answer, self._url)

    def _answer(self, url: str) -> None:
        path, _, query = url.partition("?")
        body = self.bodies.get(path)
        if body is None and path == "/pages":
            page = int(query.removeprefix("page=") or 1)
            after = {"next": str(page + 1)} if page < PAGES else {}
            body = json.dumps({"items": [{"n": page}, {"n": -page}], **after}).encode()
        body = body or b'{"items": [{"name": "x"}]}'
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        self._transport.write(f"{head}\r\n\r\n".encode() + body)


async def serve(delay_s: float) -> None:
    """Answer on a free port, whose number is printed."""
    side = [{"id": n, "n": n % 7} for n in range(SIDE)]
    wide = [{f"c{n}": row + n for n in range(COLUMNS)} for row in range(ROWS)]
    for path, items in (
        ("/keys", [{"key": f"k{n}"} for n in range(KEYS)]),
        ("/left", side),
        ("/right", side[::-1]),
        ("/wide", wide),
    ):
        Api.bodies[path] = json.dumps({"items": items}).encode()
    Api.delay_s = delay_s
    server = await asyncio.get_running_loop().create_server(Api, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    main()
