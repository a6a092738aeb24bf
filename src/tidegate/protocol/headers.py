"""The request headers of revision 2026-07-28 that must repeat what the body says.

Source: specification 2026-07-28, `basic/transports/streamable-http` (standard and custom
headers, base64 sentinel). Header names are lower-case bytes, values stripped by the edge.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, cast

from tidegate.protocol.model import HEADER_MISMATCH, RpcError

Headers = Mapping[bytes, bytes]

NAMED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "task_id",
    "tasks/update": "task_id",
    "tasks/cancel": "task_id",
}
"""The parameter that `Mcp-Name` repeats, by method."""
_WRITTEN = {"task_id": "taskId"}
_PREFIX, _SUFFIX = b"=?base64?", b"?="


def mismatch(text: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"Header mismatch: {text}", status=400)


def check_standard(headers: Headers, version: str, method: str, name: str | None) -> None:
    """Compare version, method and name with the headers. Raises: RpcError HEADER_MISMATCH."""
    if headers.get(b"mcp-protocol-version") != version.encode():
        raise mismatch("MCP-Protocol-Version must equal the version in _meta")
    if headers.get(b"mcp-method") != method.encode():
        raise mismatch("Mcp-Method must equal the method")
    if name is not None and decode_value(headers.get(b"mcp-name")) != name:
        raise mismatch(f"Mcp-Name must equal params.{_WRITTEN.get(NAMED[method], NAMED[method])}")


def check_parameters(
    headers: Headers, marked: Mapping[str, str], arguments: Mapping[str, Any]
) -> None:
    """Compare arguments marked with `x-mcp-header` (argument -> header suffix) with the
    `Mcp-Param-*` headers. Raises: RpcError HEADER_MISMATCH."""
    for argument, suffix in marked.items():
        header = f"mcp-param-{suffix}".lower().encode()
        value = arguments.get(argument)
        if value is None:
            if header in headers:
                raise mismatch(f"Mcp-Param-{suffix} has no value in the arguments")
            continue
        if decode_value(headers.get(header)) != as_text(value):
            raise mismatch(f"Mcp-Param-{suffix} must equal the argument {argument}")


def marked_arguments(schema: Mapping[str, Any]) -> dict[str, str]:
    """Which arguments of an input schema are repeated in headers."""
    properties: dict[str, Any] = schema.get("properties") or {}
    marks: dict[str, str] = {}
    for name, field in properties.items():
        if isinstance(field, dict) and "x-mcp-header" in field:
            marks[name] = cast(dict[str, str], field)["x-mcp-header"]
    return marks


def decode_value(value: bytes | None) -> str | None:
    """A header value as text; `=?base64?...?=` is decoded. Raises: RpcError HEADER_MISMATCH."""
    if value is None:
        return None
    if value.startswith(_PREFIX) and value.endswith(_SUFFIX):
        inner = value[len(_PREFIX) : -len(_SUFFIX)]
        try:
            return b64decode(inner, validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            raise mismatch("a base64 header value cannot be decoded") from None
    return value.decode("latin-1")


def as_text(value: Any) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    return str(value)
