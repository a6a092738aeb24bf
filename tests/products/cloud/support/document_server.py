"""A server that answers as one OpenAPI document says, for documents that Prism cannot serve: their
paths have queries, by which operations are told apart.

It reads the document itself, and shares no code with what is tested but the reader of YAML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from support.thread_server import ThreadHttpServer, running
from tidegate.products.cloud.documents.yaml_reader import read_yaml

DEEPEST = 6
_VARIABLE = re.compile(r"\\\{[^{}]+\\\}")


class Operation(NamedTuple):
    """What the document has for a verb and a path."""

    verb: str
    path: re.Pattern[str]
    query: frozenset[tuple[str, str]]
    required: frozenset[str]
    """Parameters of the query that must be there."""
    answer: Any


class DocumentServer(ThreadHttpServer):
    """Serves one document at a time; `misses` are requests that it has nothing for."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.operations: list[Operation] = []
        self.misses: list[str] = []

    def serve(self, document: Path, *, checks_login: bool = True) -> str:
        """Serve a document instead of the one before; the address on loopback."""
        tree = read_yaml(document.read_bytes(), document.name)
        found = [
            _operation(tree, verb, path, item, operation)
            for path, item in tree["paths"].items()
            for verb, operation in item.items()
            if verb in ("get", "post") and isinstance(operation, dict)
        ]
        # What is fixed in a path comes before what a variable of another path would take.
        self.operations = sorted(found, key=lambda each: each.path.pattern.count("[^/]+"))
        return f"http://127.0.0.1:{self.port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        server = self.server
        assert isinstance(server, DocumentServer)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        query = parse_qsl(parts.query, keep_blank_values=True)
        names = {name for name, _ in query}
        for each in server.operations:
            if (
                each.verb == self.command
                and each.path.fullmatch(parts.path)
                and each.query <= set(query)
            ):
                missing = sorted(each.required - names)
                if missing:
                    return self._send(400, {"message": f"missing: {', '.join(missing)}"})
                return self._send(200, each.answer)
        server.misses.append(f"{self.command} {self.path}")
        return self._send(404, {"message": f"nothing at {unquote(parts.path)}"})

    do_GET = do_POST = _answer

    def _send(self, status: int, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _operation(
    tree: Any, verb: str, path: str, item: Mapping[str, Any], operation: Mapping[str, Any]
) -> Operation:
    plain, _, fixed = path.partition("?")
    parameters = [
        _resolved(tree, each)
        for each in (*item.get("parameters", ()), *operation.get("parameters", ()))
    ]
    required = {
        each["name"] for each in parameters if each["in"] == "query" and each.get("required")
    }
    responses = operation.get("responses", {})
    key = next((each for each in responses if str(each).startswith("2")), None)
    content = {} if key is None else _resolved(tree, responses[key]).get("content", {})
    media = next((content[each] for each in content if "json" in each), {})
    return Operation(
        verb.upper(),
        re.compile(_VARIABLE.sub("[^/]+", re.escape(plain))),
        # A parameter with two underscores only keeps paths apart, and is not sent.
        frozenset(each for each in parse_qsl(fixed) if not each[0].startswith("__")),
        frozenset(required),
        media["example"] if "example" in media else _example(tree, media.get("schema", {}), 0),
    )


def _resolved(tree: Any, node: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in node:
        found = tree
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[unquote(step).replace("~1", "/").replace("~0", "~")]
        node = found
    return node


def _example(tree: Any, schema: Mapping[str, Any], depth: int) -> Any:
    """A value of a schema: its own example, else the simplest of its kind."""
    schema = _resolved(tree, schema)
    for key in ("example", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "array":
        return [] if depth >= DEEPEST else [_example(tree, schema.get("items", {}), depth + 1)]
    fields = _fields(tree, schema)
    if fields or kind == "object":
        if depth >= DEEPEST:
            return {}
        return {name: _example(tree, each, depth + 1) for name, each in fields.items()}
    return {"integer": 7, "number": 7.5, "boolean": True, "string": "a word"}.get(str(kind))


def _fields(tree: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for part in schema.get("allOf", ()):
        fields |= _fields(tree, _resolved(tree, part))
    return fields | dict(schema.get("properties", {}))


@contextmanager
def document_server() -> Iterator[DocumentServer]:
    server = DocumentServer()
    with running(server):
        yield server
