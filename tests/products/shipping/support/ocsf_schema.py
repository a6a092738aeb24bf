"""The published schema of OCSF 1.8, by which events are judged."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema

VERSION = "1.8.0"


@cache
def _schema() -> OcsfJsonSchemaEmbedded:
    return OcsfJsonSchemaEmbedded(get_ocsf_schema(version=VERSION))


@cache
def _validator(class_uid: int, profiles: tuple[str, ...]) -> Draft202012Validator:
    schema = _schema()
    name = schema.lookup_class_name_from_uid(class_uid)
    return Draft202012Validator(schema.get_class_schema(name, profiles=list(profiles)))


def validated(body: bytes) -> dict[str, Any]:
    """The event, once the schema of its class and profiles has no fault with it."""
    event: dict[str, Any] = json.loads(body)
    about = event["metadata"]
    assert about["version"] == VERSION
    validator = _validator(event["class_uid"], tuple(about["profiles"]))
    faults = [f"{fault.json_path}: {fault.message}" for fault in validator.iter_errors(event)]
    assert faults == [], event
    assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
    assert event["category_uid"] == event["class_uid"] // 1000
    return event
