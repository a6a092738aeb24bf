"""A provider whose resources are the styles of paging, each with and without its parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.cloud_api import Reply
from support.more_paging_styles import MORE_STYLES
from support.odd_paging_styles import ODD_STYLES
from support.paging_styles import HOST, STYLES, Query

ALL_STYLES = STYLES | MORE_STYLES | ODD_STYLES


def answer(verb: str, path: str, query: Query, body: Any) -> Reply:
    """What the API says: `/NAME`, or `/bare_NAME` for the resource without parameters."""
    value, headers = ALL_STYLES[path.strip("/").removeprefix("bare_")].answer(query)
    reply = Reply(200, value)
    reply[2].update(headers)
    return reply


def write_styles(folder: Path) -> Path:
    """The registry's folder, with the provider `styles`."""
    paths: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    row = {"type": "object", "properties": {"id": {"type": "integer"}}}
    for name, style in ALL_STYLES.items():
        schema: dict[str, Any] = {"type": "array", "items": row}
        for step in reversed([each for each in style.key.split(".") if each]):
            schema = {"type": "object", "properties": {step: schema}}
        for resource, parameters in ((name, style.parameters), (f"bare_{name}", {})):
            paths[f"/{resource}"] = {
                "get": {
                    "parameters": [
                        {"name": each, "in": "query", "schema": {"type": kind}}
                        for each, kind in parameters.items()
                    ],
                    "responses": {
                        "200": {
                            "description": "ok",
                            "content": {"application/json": {"schema": schema}},
                        }
                    },
                }
            }
            response = {"mediaType": "application/json", "openAPIDocKey": "200"}
            if style.key:
                response["objectKey"] = f"$.{style.key}"
            operation = {"$ref": f"#/paths/~1{resource}/get"}
            link = f"#/components/x-stackQL-resources/{resource}/methods/list"
            resources[resource] = {
                "id": f"styles.all.{resource}",
                "name": resource,
                "methods": {"list": {"operation": operation, "response": response}},
                "sqlVerbs": {"select": [{"$ref": link}]},
            }
    document = {
        "openapi": "3.0.3",
        "info": {"title": "all", "version": "1"},
        "servers": [{"url": HOST}],
        "paths": paths,
        "components": {"x-stackQL-resources": resources},
    }
    place = folder / "src" / "styles" / "v00.00.00000"
    (place / "services").mkdir(parents=True)
    (place / "services" / "all.yaml").write_text(json.dumps(document))
    (place / "provider.yaml").write_text(
        "id: styles\nname: styles\nversion: v00.00.00000\ntitle: Styles\n"
        "config: {auth: {type: null_auth}}\nproviderServices:\n"
        "  all: {id: 'all:v1', name: all, preferred: true, title: All,"
        " service: {$ref: styles/v00.00.00000/services/all.yaml}}\n"
    )
    return folder
