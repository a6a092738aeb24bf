"""The shop of the masking tests as a provider: what its API lists, and the documents for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.cloud_api import Reply
from support.masking_shop import ROWS

COLUMNS = {
    "customers": {"id": "integer", "name": "string", "email": "string", "phone": "string",
                  "spent": "integer"},
    "orders": {"id": "integer", "customer_id": "integer", "tenant_id": "integer",
               "total": "integer", "notes": "string", "memo": "string"},
    "products": {"id": "integer", "title": "string", "price": "integer"},
}  # fmt: skip
"""By resource; `customers` can be searched by `q`, `email`, `name`, sorted and read one by one."""

_PROVIDER = """
id: shop
name: shop
version: v00.00.00000
title: A shop
config:
  auth: {type: null_auth}
providerServices:
  all:
    id: 'all:v1'
    name: all
    preferred: true
    service: {$ref: shop/v00.00.00000/services/all.yaml}
    title: The shop
"""
_VIEWS = {
    "vip": "SELECT id, email AS contact, phone FROM shop.all.customers WHERE spent > 100",
    "vip_orders": "SELECT o.id, v.contact, o.notes, o.total FROM shop.all.orders o"
    " JOIN shop.all.vip v ON v.id = o.customer_id",
}


def write_shop(folder: Path) -> Path:
    """The registry's folder, with the provider `shop`."""
    paths: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    for name, columns in COLUMNS.items():
        row = {"type": "object", "properties": {k: {"type": v} for k, v in columns.items()}}
        several = {"type": "array", "items": row}
        words = ("q", "email", "name", "sort", "limit") if name == "customers" else ()
        searches = [_parameter("query", each) for each in words]
        key = [_parameter("path", "id", "integer")]
        paths[f"/{name}"] = {"get": _operation(several, searches)}
        paths[f"/{name}/{{id}}"] = {
            "get": _operation(row, key),
            "patch": {**_operation(row, key), "requestBody": {
                "content": {"application/json": {"schema": row}}}},
            "delete": _operation(row, key),
        }  # fmt: skip
        one = f"~1{name}~1{{id}}"
        links = {"list": f"~1{name}/get", "get": f"{one}/get", "update": f"{one}/patch",
                 "remove": f"{one}/delete"}  # fmt: skip
        verbs = {"select": ["get", "list"], "update": ["update"], "delete": ["remove"]}
        resources[name] = {
            "id": f"shop.all.{name}",
            "name": name,
            "title": name,
            "methods": {
                each: {"operation": {"$ref": f"#/paths/{link}"},
                       "response": {"mediaType": "application/json", "openAPIDocKey": "200"}}
                for each, link in links.items()
            },
            "sqlVerbs": {
                verb: [{"$ref": f"#/components/x-stackQL-resources/{name}/methods/{each}"}
                       for each in named]
                for verb, named in verbs.items()
            },
        }  # fmt: skip
    for name, query in _VIEWS.items():
        resources[name] = {
            "id": f"shop.all.{name}", "name": name, "methods": {}, "sqlVerbs": {"select": []},
            "config": {"views": {"select": {"predicate": 'sqlDialect == "sqlite3"',
                                            "ddl": query}}},
        }  # fmt: skip
    document = {
        "openapi": "3.0.3",
        "info": {"title": "all", "version": "1"},
        "servers": [{"url": "https://api.farm.example"}],
        "paths": paths,
        "components": {"x-stackQL-resources": resources},
    }
    place = folder / "src" / "shop" / "v00.00.00000"
    (place / "services").mkdir(parents=True)
    (place / "provider.yaml").write_text(_PROVIDER)
    (place / "services" / "all.yaml").write_text(json.dumps(document))
    return folder


def answer(verb: str, path: str, query: dict[str, str], body: Any) -> Reply:
    """What the shop's API says. A change is refused with a word of the row."""
    name, _, number = path.strip("/").partition("/")
    rows = [dict(zip(COLUMNS[name], row, strict=True)) for row in ROWS[name]]
    rows = [row for row in rows if not number or row["id"] == int(number)]
    if not rows:
        return Reply(404, {"message": "none"})
    if verb == "DELETE":
        return Reply(409, {"message": f"in use: {rows[0]}"})
    if verb == "PATCH":
        return Reply(200, {**rows[0], **body, "whole": rows[0]})
    rows = [row for row in rows if all(str(row.get(k)) == v for k, v in query.items() if k in row)]
    return Reply(200, rows[0] if number else rows)


def _parameter(place: str, name: str, kind: str = "string") -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": kind}}


def _operation(schema: dict[str, Any], parameters: list[dict[str, Any]]) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "ok", "content": content}},
    }
