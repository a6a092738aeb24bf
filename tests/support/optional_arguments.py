"""The forms in which frameworks for agents send an argument that their model left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

NULL: tuple[Any, ...] = (None,)
NOTHINGS: tuple[Any, ...] = (None, "", "null")

_CHANGING = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(Z|[+-]\d\d:?\d\d)?"
    r'|(?<=[_a-z]ms\\": )[\d.]+|(?<=[_a-z]ms\\":)[\d.]+|(?<=[a-z]_ms":)[\d.]+|\b[\d.]+ ?m?s\b'
    r"|(?<=\b)1[5-9]\d{8}(\.\d+)?\b"
)
"""What differs from one call to the same call: ids, moments, durations."""


def optional_of(schema: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each optional argument that a tool lists, and the forms that mean that it is not given: of
    one that takes any text, null alone."""
    for name, each in schema["properties"].items():
        if name not in schema.get("required", ()):
            text = each.get("type") == "string" and "enum" not in each
            yield name, NULL if text else NOTHINGS


def lasting(reply: Mapping[str, Any]) -> str:
    """What a reply says whenever it is asked for."""
    said = {name: each for name, each in reply.items() if name != "id"}
    return _CHANGING.sub("_", json.dumps(said))
