"""Small provider documents in the forms that the original's own tests use, and an API that answers
them: replies are given as text, and what was asked is kept as it came.

The behaviours are those of the public test suite of `stackql/stackql` (`test/robot/functional`);
documents, replies and expectations here are our own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

from support.thread_server import ThreadHttpServer

HOST = "https://api.forms.example"


class Asked(NamedTuple):
    """A request: `target` is the path with its query."""

    verb: str
    target: str
    body: str
    headers: Mapping[str, str]


Answer = str | tuple[int, str] | Callable[[Asked], str]


class FormsApi:
    """Answers by `VERB /path` or by the path alone, with or without its query."""

    def __init__(self) -> None:
        self.replies: dict[str, Answer] = {}
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size).decode()
                status, text = api.answer(
                    Asked(self.command, self.path, body, dict(self.headers.items()))
                )
                self.send_response(status)
                kind = "text/xml" if text.lstrip()[:1] == "<" else "application/json"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadHttpServer(Handler)
        self._server.start()

    @property
    def options(self) -> dict[str, str]:
        """What a source needs to find it."""
        url = f"http://127.0.0.1:{self._server.port}"
        return {"settings": json.dumps({"endpoints": {HOST: url}})}

    def reset(self) -> None:
        self.replies.clear()
        self.asked.clear()

    def close(self) -> None:
        self._server.close()

    def answer(self, asked: Asked) -> tuple[int, str]:
        with self._lock:
            self.asked.append(asked)
        path = asked.target.partition("?")[0]
        for key in (f"{asked.verb} {asked.target}", f"{asked.verb} {path}", asked.target, path):
            if key in self.replies:
                reply = self.replies[key]
                if callable(reply):
                    return 200, reply(asked)
                return reply if isinstance(reply, tuple) else (200, reply)
        return 404, "{}"


def schema(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def given(name: str, place: str = "query", kind: str = "string", *, required: bool = False) -> Any:
    """A parameter of an operation."""
    return {"name": name, "in": place, "required": required, "schema": {"type": kind}}


def operation(
    shown: Mapping[str, Any] | None = None,
    parameters: list[Any] | None = None,
    body: Mapping[str, Any] | None = None,
    media: str = "application/json",
    body_media: str = "application/json",
) -> dict[str, Any]:
    content = {} if shown is None else {"content": {media: {"schema": shown}}}
    node: dict[str, Any] = {"responses": {"200": {"description": "ok", **content}}}
    if parameters:
        node["parameters"] = parameters
    if body is not None:
        node["requestBody"] = {"content": {body_media: {"schema": body}}}
    return node


def method(path: str, verb: str = "get", *, request: Any = None, **response: Any) -> dict[str, Any]:
    link = path.replace("~", "~0").replace("/", "~1")
    shown = {"mediaType": "application/json", "openAPIDocKey": "200", **response}
    node: dict[str, Any] = {"operation": {"$ref": f"#/paths/{link}/{verb}"}, "response": shown}
    return node if request is None else {**node, "request": request}


def resource(
    name: str, methods: Mapping[str, Any], config: Mapping[str, Any] | None = None, **verbs: str
) -> dict[str, Any]:
    """`verbs` name methods, with blanks between them."""
    link = f"#/components/x-stackQL-resources/{name}/methods"
    node: dict[str, Any] = {
        "id": name,
        "name": name,
        "methods": methods,
        "sqlVerbs": {
            verb: [{"$ref": f"{link}/{each}"} for each in names.split()]
            for verb, names in verbs.items()
        },
    }
    return node if config is None else {**node, "config": config}


def document(
    paths: Mapping[str, Any],
    schemas: Mapping[str, Any],
    resources: list[dict[str, Any]],
    servers: list[Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    return {
        "openapi": "3.0.0",
        "info": {"title": "forms", "version": "1"},
        "servers": servers or [{"url": HOST}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "x-stackQL-resources": {each["name"]: each for each in resources},
        },
        **more,
    }


def write_provider(folder: Path, services: Mapping[str, Any], **config: Any) -> Path:
    """The registry's folder with the provider `forms`."""
    place = folder / "src" / "forms" / "v1"
    (place / "services").mkdir(parents=True)
    tree = {
        "id": "forms",
        "name": "forms",
        "version": "v1",
        "config": {"auth": {"type": "null_auth"}, **config},
        "providerServices": {
            name: {"id": name, "name": name, "service": {"$ref": f"forms/v1/services/{name}.yaml"}}
            for name in services
        },
    }
    (place / "provider.yaml").write_text(json.dumps(tree))
    for name, each in services.items():
        (place / "services" / f"{name}.yaml").write_text(json.dumps(each))
    return folder
