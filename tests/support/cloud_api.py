"""A small API and the provider documents that describe it, for tests of the cloud engine.

The API counts what it is asked. Its documents name `https://api.farm.example`, which a setting of
the source maps to it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from support.thread_server import ThreadHttpServer

PROVIDER = """
id: farm
name: farm
version: v00.00.00000
title: A farm
config:
  auth: {type: null_auth}
providerServices:
  live:
    id: 'live:v1'
    name: live
    preferred: true
    service: {$ref: farm/v00.00.00000/services/live.yaml}
    title: Animals
    description: Animals and their fields
"""


def _operation(
    responses: dict[str, Any] | None = None,
    parameters: list[dict[str, Any]] | None = None,
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    operation: dict[str, Any] = {"responses": responses or {"204": {"description": "done"}}}
    if parameters:
        operation["parameters"] = parameters
    if body:
        operation["requestBody"] = {"content": {"application/json": {"schema": body}}}
    return operation


def _answer(schema: dict[str, Any]) -> dict[str, Any]:
    return {"200": {"description": "ok", "content": {"application/json": {"schema": schema}}}}


def _in(place: str, name: str, kind: str = "string", *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": {"type": kind}}


FIELD = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
}
ANIMAL = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string"},
        "field": {"type": "string"},
        "weight": {"type": "number"},
        "is_old": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
DETAIL = {
    "type": "object",
    "properties": {**ANIMAL["properties"], "diary": {"type": "string"}},
}


def _listed(schema: dict[str, Any]) -> dict[str, Any]:
    return _answer({"type": "object", "properties": {"items": {"type": "array", "items": schema}}})


def _method(path: str, verb: str, status: str = "200", key: str | None = None) -> dict[str, Any]:
    link = path.replace("~", "~0").replace("/", "~1")
    response: dict[str, Any] = {"mediaType": "application/json", "openAPIDocKey": status}
    if key:
        response["objectKey"] = key
    return {"operation": {"$ref": f"#/paths/{link}/{verb}"}, "response": response}


def _resource(name: str, methods: dict[str, Any], verbs: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "id": f"farm.live.{name}",
        "name": name,
        "title": name,
        "methods": methods,
        "sqlVerbs": {
            verb: [
                {"$ref": f"#/components/x-stackQL-resources/{name}/methods/{each}"}
                for each in named
            ]
            for verb, named in verbs.items()
        },
    }


PAGED = {
    "pagination": {
        "requestToken": {"key": "page", "location": "query"},
        "responseToken": {"key": "$.next", "location": "body"},
    }
}

SERVICE: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "live", "version": "1"},
    "servers": [{"url": "https://api.farm.example"}],
    "paths": {
        "/fields": {
            "get": _operation(_listed(FIELD), [_in("query", "min_size", "integer")]),
        },
        "/fields/{field}/animals": {
            "get": _operation(_listed(ANIMAL), [_in("path", "field", required=True)]),
            "post": _operation(_answer(ANIMAL), [_in("path", "field", required=True)], ANIMAL),
        },
        "/animals/{id}": {
            "get": _operation(_answer(DETAIL), [_in("path", "id", "integer", required=True)]),
            "patch": _operation(
                _answer(ANIMAL), [_in("path", "id", "integer", required=True)], ANIMAL
            ),
            "put": _operation(
                _answer(ANIMAL), [_in("path", "id", "integer", required=True)], ANIMAL
            ),
            "delete": _operation(None, [_in("path", "id", "integer", required=True)]),
        },
        "/animals": {"get": _operation(_listed(ANIMAL))},
        "/animals/{id}/feed": {
            "post": _operation(
                _answer({"type": "object", "properties": {"fed": {"type": "integer"}}}),
                [_in("path", "id", "integer", required=True)],
                {"type": "object", "properties": {"grams": {"type": "integer"}}},
            )
        },
        "/pages/{list}": {
            "get": _operation(
                _listed({"type": "object", "properties": {"n": {"type": "integer"}}}),
                [_in("path", "list", required=True)],
            )
        },
        "/open": {"get": _operation(_answer({}))},
        "/stars": {
            "post": {
                **_operation(_listed({"type": "object", "properties": {"n": {"type": "integer"}}})),
                "x-stackQL-graphQL": {
                    "url": "https://api.farm.example/graphql",
                    "query": "{ stars { n } }",
                },
            },
        },
        "/visits": {
            "get": _operation(
                _listed(
                    {
                        "type": "object",
                        "properties": {
                            "animal": {"type": "integer"},
                            "cost": {"type": "number"},
                        },
                    }
                )
            )
        },
    },
    "components": {
        "x-stackQL-resources": {
            "fields": _resource(
                "fields", {"list": _method("/fields", "get", key="$.items")}, {"select": ["list"]}
            ),
            "animals": _resource(
                "animals",
                {
                    "get": _method("/animals/{id}", "get"),
                    "list_by_field": _method("/fields/{field}/animals", "get", key="$.items"),
                    "list": _method("/animals", "get", key="$.items"),
                    "create": _method("/fields/{field}/animals", "post"),
                    "update": _method("/animals/{id}", "patch"),
                    "replace": _method("/animals/{id}", "put"),
                    "delete": _method("/animals/{id}", "delete", "204"),
                    "feed": _method("/animals/{id}/feed", "post"),
                },
                {
                    "select": ["get", "list_by_field", "list"],
                    "insert": ["create"],
                    "update": ["update"],
                    "replace": ["replace"],
                    "delete": ["delete"],
                },
            ),
            "herd": _resource(
                "herd",
                {"list": _method("/fields/{field}/animals", "get", key="$.items")},
                {"select": ["list"]},
            ),
            "poked": _resource(
                "poked", {"poke": _method("/animals/{id}", "put")}, {"select": ["poke"]}
            ),
            "visits": _resource(
                "visits", {"list": _method("/visits", "get", key="$.items")}, {"select": ["list"]}
            ),
            "anything": _resource(
                "anything", {"get": _method("/open", "get")}, {"select": ["get"]}
            ),
            "stars": _resource(
                "stars",
                {"list": _method("/stars", "post", key="$.data.stars")},
                {"select": ["list"]},
            ),
            "numbers": {
                **_resource(
                    "numbers",
                    {"list": _method("/pages/{list}", "get", key="$.items")},
                    {"select": ["list"]},
                ),
                "config": PAGED,
            },
            "heavy_animals": {
                "id": "farm.live.heavy_animals",
                "name": "heavy_animals",
                "methods": {"feed": _method("/animals/{id}/feed", "post")},
                "sqlVerbs": {"select": []},
                "config": {
                    "views": {
                        "select": {
                            "predicate": 'sqlDialect == "sqlite3" && requiredParams == [ field ]',
                            "ddl": "SELECT field, name, json_extract(tags, '$[0]') AS first_tag"
                            " FROM farm.live.herd WHERE field = '<field>' AND weight > 100",
                        }
                    }
                },
            },
        }
    },
}


def write_farm(folder: Path) -> Path:
    """The registry's folder, with the provider `farm`."""
    place = folder / "src" / "farm" / "v00.00.00000"
    (place / "services").mkdir(parents=True)
    (place / "provider.yaml").write_text(PROVIDER)
    (place / "services" / "live.yaml").write_text(json.dumps(SERVICE))
    return folder


class Reply(tuple[int, Any, dict[str, str]]):
    """A status, a value that is sent as JSON, or bytes as they are, and headers."""

    def __new__(cls, status: int = 200, value: Any = None, **headers: str) -> Reply:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return super().__new__(cls, (status, value, named))


class Farm:
    """The API. `asked` holds (verb, path with query, body) of each request, `logins` their
    credentials; `special` answers a
    path in another way than usual, or with the connection cut where it gives None. `usually`
    answers (verb, path, query, body) in place of the farm."""

    def __init__(
        self, usually: Callable[[str, str, dict[str, str], Any], Reply] | None = None
    ) -> None:
        self._usually = usually
        self.asked: list[tuple[str, str, Any]] = []
        self.logins: list[str | None] = []
        self.headers: dict[str, str] = {}
        """Those of the last request."""
        self.special: dict[str, Callable[[int], Reply | None]] = {}
        self.animals: dict[int, dict[str, Any]] = {}
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._seen: dict[str, int] = {}
        farm = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self) -> None:
                farm.answer(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadHttpServer(Handler)
        self._server.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """What a source needs to find it."""
        settings = {"endpoints": {"https://api.farm.example": self.url}}
        return (("settings", json.dumps(settings)),)

    def reset(self) -> None:
        """Three fields, with twelve animals."""
        self.asked.clear()
        self.logins.clear()
        self.special.clear()
        self._seen.clear()
        self.most_at_once = 0
        self.animals = {
            number: {
                "id": number,
                "name": f"animal {number}",
                "field": ("north", "south", "east")[number % 3],
                "weight": number * 25.5,
                "is_old": number > 6,
                "tags": ["a", str(number)],
            }
            for number in range(1, 13)
        }

    def close(self) -> None:
        self._server.close()

    def paths(self, verb: str = "GET") -> list[str]:
        """What was asked for with this verb."""
        return [path for each, path, _ in self.asked if each == verb]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        size = int(handler.headers.get("Content-Length") or 0)
        text = handler.rfile.read(size)
        body = json.loads(text) if text else None
        with self._lock:
            self.asked.append((handler.command, handler.path, body))
            self.logins.append(handler.headers.get("Authorization"))
            self.headers = dict(handler.headers.items())
            count = self._seen[handler.path] = self._seen.get(handler.path, 0) + 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            special = self.special.get(handler.path)
            reply = special(count) if special else self._usual(handler.command, handler.path, body)
        finally:
            with self._lock:
                self._at_once -= 1
        if reply is None:
            handler.close_connection = True
            return
        status, value, headers = reply
        is_raw = isinstance(value, bytes)
        content = value if is_raw else b"" if value is None else json.dumps(value).encode()
        handler.send_response(status)
        for name, each in headers.items():
            handler.send_header(name, each)
        if status != 204:
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content if status != 204 else b"")

    def _usual(self, verb: str, target: str, body: Any) -> Reply:
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query))
        if self._usually is not None:
            return self._usually(verb, parts.path, query, body)
        match [verb, *map(unquote, parts.path.strip("/").split("/"))]:
            case ["GET", "fields"]:
                least = int(query.get("min_size", 0))
                sizes = {"north": 10, "south": 20, "east": 30}
                rows = [{"name": n, "size": s} for n, s in sizes.items() if s >= least]
                return Reply(200, {"items": rows})
            case ["GET", "animals"]:
                return Reply(200, {"items": list(self.animals.values())})
            case ["GET", "animals", number]:
                found = self.animals.get(int(number))
                if found is None:
                    return Reply(404, {"message": "no such animal"})
                return Reply(200, {**found, "diary": f"day {number}"})
            case ["GET", "fields", field, "animals"]:
                rows = [each for each in self.animals.values() if each["field"] == field]
                return Reply(200, {"items": rows}) if rows else Reply(404, {"message": "none"})
            case ["GET", "visits"]:
                rows = [{"animal": n % 12 + 1, "cost": n * 1.5} for n in range(24)]
                return Reply(200, {"items": rows})
            case ["GET", "open"]:
                return Reply(200, {"Alpha": 1, "beta": {"x": [1, 2]}})
            case ["GET", "pages", length]:
                page, last = int(query.get("page", 1)), int(length)
                rows = [{"n": page * 10 + at} for at in range(2)]
                after = {"next": str(page + 1)} if page < last else {}
                return Reply(200, {"items": rows, **after})
            case ["POST", "fields", field, "animals"]:
                number = max(self.animals, default=0) + 1
                self.animals[number] = {**body, "id": number, "field": field}
                return Reply(200, self.animals[number])
            case ["PATCH" | "PUT", "animals", number] if int(number) in self.animals:
                kept = self.animals[int(number)] if verb == "PATCH" else {"id": int(number)}
                self.animals[int(number)] = {**kept, **body}
                return Reply(200, self.animals[int(number)])
            case ["DELETE", "animals", number] if int(number) in self.animals:
                del self.animals[int(number)]
                return Reply(204)
            case ["POST", "animals", number, "feed"]:
                return Reply(200, {"fed": int(number) + (body or {}).get("grams", 0)})
            case _:
                return Reply(404, {"message": "nothing here"})
