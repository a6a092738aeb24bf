"""The surface `cloud` in process, over a provider of our own that counts what is sent to it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from support.surface_client import OWNER
from support.thread_server import thread_http_server
from tidegate.app import App
from tidegate.config.loading import convert_settings
from tidegate.model.actors import Actor
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.session import Session
from tidegate.protocol.transport import TransportContext

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
ADDRESS = "https://desk.example/v1"
"""What the document says; a source's `endpoints` lead it to the server on loopback."""

PROVIDER = """
id: desk
name: desk
version: v24.01.00001
title: A help desk
config: {auth: {type: null_auth}}
providerServices:
  tickets:
    id: 'tickets:v1'
    name: tickets
    title: Tickets
    preferred: true
    service: {$ref: desk/v24.01.00001/services/tickets.yaml}
"""

TICKETS = """
openapi: 3.0.3
info: {title: Tickets, version: '1'}
servers: [{url: 'https://desk.example/v1'}]
paths:
  /teams/{team}/tickets:
    parameters: [{name: team, in: path, required: true, schema: {type: string}}]
    get:
      responses:
        200: {description: ok, content: {application/json: {schema: {type: array,
          items: {$ref: '#/components/schemas/Ticket'}}}}}
    post:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Ticket'}}}}
      responses:
        201: {description: made, content: {application/json: {schema:
          {$ref: '#/components/schemas/Ticket'}}}}
  /teams/{team}/tickets/{id}:
    parameters:
    - {name: team, in: path, required: true, schema: {type: string}}
    - {name: id, in: path, required: true, schema: {type: string}}
    get:
      responses:
        200: {description: ok, content: {application/json: {schema:
          {$ref: '#/components/schemas/Ticket'}}}}
    patch:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Ticket'}}}}
      responses: {200: {description: ok, content: {application/json: {schema:
          {$ref: '#/components/schemas/Ticket'}}}}}
    put:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Ticket'}}}}
      responses: {200: {description: ok, content: {application/json: {schema:
          {$ref: '#/components/schemas/Ticket'}}}}}
    delete:
      responses: {204: {description: gone}}
  /teams/{team}/close:
    post:
      parameters: [{name: team, in: path, required: true, schema: {type: string}}]
      responses: {204: {description: done}}
components:
  schemas:
    Ticket:
      type: object
      properties:
        id: {type: string}
        title: {type: string}
        open: {type: boolean}
  x-stackQL-resources:
    tickets:
      id: desk.tickets.tickets
      name: tickets
      title: Tickets
      methods:
        get: {operation: {$ref: '#/paths/~1teams~1{team}~1tickets~1{id}/get'},
          response: {mediaType: application/json, openAPIDocKey: '200'}}
        list: {operation: {$ref: '#/paths/~1teams~1{team}~1tickets/get'},
          response: {mediaType: application/json, openAPIDocKey: '200'}}
        create:
          operation: {$ref: '#/paths/~1teams~1{team}~1tickets/post'}
          config: {requestBodyTranslate: {algorithm: naive}}
          request: {mediaType: application/json}
          response: {mediaType: application/json, openAPIDocKey: '201'}
        update:
          operation: {$ref: '#/paths/~1teams~1{team}~1tickets~1{id}/patch'}
          config: {requestBodyTranslate: {algorithm: naive}}
          request: {mediaType: application/json}
          response: {mediaType: application/json, openAPIDocKey: '200'}
        replace:
          operation: {$ref: '#/paths/~1teams~1{team}~1tickets~1{id}/put'}
          config: {requestBodyTranslate: {algorithm: naive}}
          request: {mediaType: application/json}
          response: {mediaType: application/json, openAPIDocKey: '200'}
        delete: {operation: {$ref: '#/paths/~1teams~1{team}~1tickets~1{id}/delete'},
          response: {openAPIDocKey: '204'}}
        close: {operation: {$ref: '#/paths/~1teams~1{team}~1close/post'},
          response: {openAPIDocKey: '204'}}
      sqlVerbs:
        select:
        - {$ref: '#/components/x-stackQL-resources/tickets/methods/get'}
        - {$ref: '#/components/x-stackQL-resources/tickets/methods/list'}
        insert: [{$ref: '#/components/x-stackQL-resources/tickets/methods/create'}]
        update: [{$ref: '#/components/x-stackQL-resources/tickets/methods/update'}]
        replace: [{$ref: '#/components/x-stackQL-resources/tickets/methods/replace'}]
        delete: [{$ref: '#/components/x-stackQL-resources/tickets/methods/delete'}]
"""

RESOURCE = "desk.tickets.tickets"
SELECT = f"SELECT id, title, open FROM {RESOURCE} WHERE team = 'red'"
INSERT = f"INSERT INTO {RESOURCE} (team, id, title) SELECT 'red', '9', 'New'"
UPDATE = f"UPDATE {RESOURCE} SET title = 'Changed' WHERE team = 'red' AND id = '1'"
REPLACE = f"REPLACE {RESOURCE} SET title = 'Other' WHERE team = 'red' AND id = '1'"
DELETE = f"DELETE FROM {RESOURCE} WHERE team = 'red' AND id = '1'"
EXEC = f"EXEC {RESOURCE}.close @team = 'red'"


def write_desk(folder: Path) -> Path:
    """Write the provider's documents to `folder` and return it."""
    services = folder / "src" / "desk" / "v24.01.00001" / "services"
    services.mkdir(parents=True)
    (services.parent / "provider.yaml").write_text(PROVIDER)
    (services / "tickets.yaml").write_text(TICKETS)
    return folder


class Desk:
    """The provider: teams with tickets. `requests` are (method, path); `writes` those that are no
    GET. A team `failing` answers 403."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.tickets: dict[str, dict[str, Any]] = {
            "1": {"id": "1", "title": "Printer | on fire", "open": True},
            "2": {"id": "2", "title": "Line one\nline two", "open": False},
        }
        self.url = ""
        self.hold = threading.Event()
        self.hold.set()
        """Cleared, it keeps requests waiting; `arrived` says that one came."""
        self.arrived = threading.Event()

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [each for each in self.requests if each[0] != "GET"]

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        self.requests.append((method, target))
        split = urlsplit(target)
        parts = split.path.strip("/").split("/")
        team, id = parts[2], parts[4] if len(parts) > 4 else ""
        if team == "failing":
            return 403, {"message": "not for you"}
        if parts[3] == "close":
            for ticket in self.tickets.values():
                ticket["open"] = False
            return 204, None
        if method == "GET":
            if not id:
                wanted = parse_qs(split.query).get("title")
                return 200, [
                    each for each in self.tickets.values() if not wanted or each["title"] in wanted
                ]
            return (200, self.tickets[id]) if id in self.tickets else (404, {})
        if method == "DELETE":
            return (204, None) if self.tickets.pop(id, None) else (404, {})
        made = {"id": id, "open": True, **(self.tickets.get(id, {}) if method == "PATCH" else {})}
        made |= body or {}
        self.tickets[made["id"]] = made
        return (201 if method == "POST" else 200), made


@contextmanager
def running_desk() -> Iterator[Desk]:
    """The provider on a port of loopback."""
    desk = Desk()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(size)
            desk.arrived.set()
            desk.hold.wait(30)
            status, payload = desk.answer(self.command, self.path, json.loads(raw) if raw else None)
            body = b"" if payload is None else json.dumps(payload).encode()
            with suppress(BrokenPipeError, ConnectionResetError):  # who asked has gone
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with thread_http_server(Handler) as port:
        desk.url = f"http://127.0.0.1:{port}/v1"
        try:
            yield desk
        finally:
            desk.hold.set()


Reply = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def answering(action: str) -> Reply:
    """A person who always answers so; with no action, nobody answers."""
    return lambda asked: {"action": action}


class CloudClient:
    """A client in process, as on stdio. With `reply` it shows forms, which that answers."""

    def __init__(
        self,
        app: App,
        actor: Actor = OWNER,
        revision: str = "2025-11-25",
        reply: Reply | None = None,
    ) -> None:
        self.surface = app.surface("cloud")
        self.kernel = Kernel(self.surface, self.surface.settings)
        self.actor = actor
        self.session = Session(actor)
        self.revision = revision
        self.reply = reply
        self.asked: list[Mapping[str, Any]] = []
        self.notes: list[Mapping[str, Any]] = []
        """The parameters of notifications that came."""
        self.waiting: set[asyncio.Task[Any]] = set()
        self.open = True
        self._greeted = False
        self._last_id = 0

    @property
    def _capabilities(self) -> dict[str, Any]:
        return {} if self.reply is None else {"elicitation": {}}

    def send(self, message: bytes) -> None:
        asked = msgspec.json.decode(message)
        if "id" not in asked:
            self.notes.append(asked["params"])
        elif "method" in asked:
            assert self.reply is not None
            self.asked.append(asked["params"])
            reply = self.reply(asked)
            if not reply["action"]:
                return  # nobody is there
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": reply}
            self.waiting.add(asyncio.ensure_future(self._post(answer)))

    def stop(self) -> None:
        """Nothing is to be stopped."""

    async def _post(self, message: Mapping[str, Any]) -> Any:
        transport = TransportContext(self.actor, self, session=self.session)
        answered = await self.kernel.serve(msgspec.json.encode(message), transport)
        return None if answered is None else msgspec.json.decode(answered.frame)

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """The reply to one request, after the questions that come before it are answered."""
        info = {"name": "client", "version": "1"}
        if self.revision == MODERN:
            meta = {
                f"{META}protocolVersion": MODERN,
                f"{META}clientCapabilities": self._capabilities,
                f"{META}clientInfo": info,
            }
            return await self._modern(method, {**params, "_meta": meta})
        if not self._greeted:
            self._greeted = True
            hello = {
                "protocolVersion": self.revision,
                "capabilities": self._capabilities,
                "clientInfo": info,
            }
            await self._message("initialize", hello)
            await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return await self._message(method, params)

    async def _modern(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        more: dict[str, Any] = {}
        while True:
            reply = await self._message(method, {**params, **more})
            result = reply.get("result", {})
            if result.get("resultType") != "input_required":
                return reply
            asked = result["inputRequests"]
            self.asked += [each["params"] for each in asked.values()]
            assert self.reply is not None
            answers = {key: self.reply(each) for key, each in asked.items()}
            more = {"inputResponses": answers, "requestState": result["requestState"]}

    async def _message(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        return await self._post(message)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool call, which may be an error."""
        reply = await self.request("tools/call", name=tool, arguments=arguments)
        assert "error" not in reply, reply
        return reply["result"]

    async def good(self, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """Text and payload of a call that must succeed."""
        result = await self.call(tool, **arguments)
        assert not result.get("isError"), result
        (block,) = result["content"]
        return block["text"], result["structuredContent"]

    async def bad(self, tool: str, **arguments: Any) -> str:
        """The text of a call that must fail."""
        result = await self.call(tool, **arguments)
        assert result.get("isError"), result
        assert "structuredContent" not in result
        (block,) = result["content"]
        return block["text"]


def settings_of(
    directory: Path,
    surface: Mapping[str, Any] | None = None,
    desk: Desk | None = None,
    source: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Settings with the source `apis`, of which callers may change what their rights say."""
    folder = directory / "registry"
    if not folder.exists():
        write_desk(folder)
    calls = {"server": {"audit": {"file": {"path": str(directory / "calls.log")}}}}
    return {
        "state": str(directory / "state"),
        "sources": [
            {"name": "apis", "url": f"cloud://{folder}", "access": "write", **(source or {})}
        ],
        "surface": {"cloud": merged(calls, surface or {})},
        **({} if desk is None else {"cloud": {"endpoints": {ADDRESS: desk.url}}}),
    }


@asynccontextmanager
async def opened(
    directory: Path,
    surface: Mapping[str, Any] | None = None,
    desk: Desk | None = None,
    source: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[App]:
    """An application with the source `apis` and these settings of the surface."""
    whole = settings_of(directory, surface, desk, source) | settings
    app = App.open(convert_settings(whole))
    try:
        yield app
    finally:
        await app.close()


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables put over each other, key by key."""
    found = dict(below)
    for name, value in above.items():
        inner = found.get(name)
        found[name] = (
            merged(inner, value)
            if isinstance(inner, Mapping) and isinstance(value, Mapping)
            else value
        )
    return found


def recorded(directory: Path) -> list[dict[str, Any]]:
    """The lines of the file of calls."""
    path = directory / "calls.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
