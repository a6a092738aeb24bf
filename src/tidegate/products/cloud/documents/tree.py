"""Typed looks into values that came from a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tidegate.products.cloud.documents.yaml_reader import refused


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is a mapping, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def sequence(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def require_mapping(value: Any, what: str, document: str) -> Mapping[str, Any]:
    """`value`, a mapping. Raises: TidegateError DOCUMENT_INVALID that names `what`."""
    if not isinstance(value, Mapping):
        raise refused(document, f"{what} is no mapping")
    return cast("Mapping[str, Any]", value)
