"""What can be asked of a provider's document: a SELECT for each method that reads, with values that
its parameters' schemas admit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from tidegate.products.cloud.documents.model import Method, Parameter, Provider
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.documents.service_document import ServiceDocument
from tidegate.products.cloud.http.requests import find_method

FORMATS = {
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
    "email": "ann@shop.example",
    "uri": "https://shop.example/a",
    "ipv4": "192.0.2.1",
    "hostname": "shop.example",
}
_VARIABLE = re.compile(r"\{([^{}]+)\}")


class Call(NamedTuple):
    """A statement, the method that it must use, its values and the server's address."""

    statement: str
    method: Method
    values: dict[str, Any]
    server: str


def calls(provider: Provider, service: str, document: ServiceDocument) -> Iterator[Call]:
    """A SELECT for each method of each resource that a SELECT can choose."""
    for name in document.resource_names:
        resource = document.resource(name)
        assert resource is not None
        for each in resource.verbs.get("select", ()):
            method = resource.methods[each]
            if method.http_verb not in ("GET", "HEAD", "POST") or method.graphql is not None:
                continue
            values = values_of(method)
            chosen = find_method(resource, "select", values)
            if chosen is None or chosen.name != each:
                continue
            where = " AND ".join(f'"{key}" = {_literal(value)}' for key, value in values.items())
            path = ".".join(f'"{part}"' for part in (provider.name, service, name))
            statement = f"SELECT * FROM {path}{f' WHERE {where}' if where else ''}"
            yield Call(statement, method, values, _server(method, values))


def values_of(method: Method) -> dict[str, Any]:
    return {each.name: _value(each) for each in method.parameters if each.is_required}


def _value(parameter: Parameter) -> Any:
    schema = parameter.schema
    for key in ("example", "default"):
        if isinstance(schema.get(key), (str, int, float)):
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return max(1, int(schema.get("minimum") or 1))
    if kind == "boolean":
        return True
    if kind == "array":
        return json.dumps([_value(parameter_of(schema.get("items") or {}))])
    if kind == "object":
        return "{}"
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    return "a" * max(3, int(schema.get("minLength") or 0))


def parameter_of(schema: Mapping[str, Any]) -> Parameter:
    return Parameter("", "", "query", True, schema)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return str(value) if isinstance(value, (int, float)) else "'" + value.replace("'", "''") + "'"


def _server(method: Method, values: Mapping[str, Any]) -> str:
    known = {folded(name): str(value) for name, value in values.items()}
    variables = method.server.variables
    return _VARIABLE.sub(
        lambda match: known.get(folded(match[1]), variables.get(match[1], "")), method.server.url
    ).rstrip("/")


def plain_request(call: Call) -> tuple[str, dict[str, str]]:
    """Path with query, and headers, as another client would send them."""
    method = call.method
    places = {each.name: each for each in method.parameters}
    named = {places[name].wire_name: _plain(value) for name, value in call.values.items()}
    path = _VARIABLE.sub(lambda match: quote(named.get(match[1], ""), safe=""), method.path)
    query = list(method.fixed_query)
    headers: dict[str, str] = {}
    for name, value in call.values.items():
        parameter = places[name]
        if parameter.place == "query":
            values = json.loads(value) if parameter.schema.get("type") == "array" else [value]
            query += [(parameter.wire_name, _plain(each)) for each in values]
        elif parameter.place == "header":
            headers[parameter.wire_name] = _plain(value)
    return f"{path}{f'?{urlencode(query)}' if query else ''}", headers


def _plain(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def rows_of(body: Any, key: tuple[str, ...] | None) -> list[Any]:
    """The rows that a reply has where the document says that they are."""
    if key is None:
        listed = body.get("items") if isinstance(body, dict) else None
        return listed if isinstance(listed, list) else body if isinstance(body, list) else [body]
    found = [body]
    for step in key:
        spread = [x for each in found for x in (each if isinstance(each, list) else [each])]
        found = spread if step == "*" else [x[step] for x in spread if x and step in x]
    return [
        x for each in found for x in (each if isinstance(each, list) else [each]) if x is not None
    ]
