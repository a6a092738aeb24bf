"""Reads the rows of a response: transform, path to the rows, names of columns, values for SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from tidegate.cloud.go_template import render_template
from tidegate.cloud.model import Method
from tidegate.cloud.names import snake_case
from tidegate.cloud.requests import to_json
from tidegate.cloud.schema import ANONYMOUS
from tidegate.cloud.transforms import TEMPLATE
from tidegate.errors import Code, TidegateError

SqlValue = str | int | float | None
"""What a cell holds: objects and lists are JSON text, booleans 1 and 0, as SQLite has them."""
_LARGEST: Final = 2**63 - 1


def parse_body(method: Method, content: bytes, media_type: str) -> Any:
    """The body as values of JSON, before the transform; None: there is none.

    Raises: TidegateError PROVIDER_REPLY: the body is not what its type says.
    """
    if not content.strip():
        return None
    if "json" not in media_type and content.lstrip()[:1] not in (b"{", b"["):
        return content.decode("utf-8", "replace")
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        raise TidegateError(
            Code.PROVIDER_REPLY, f"The reply to {method.name} is cut off or no JSON."
        ) from None


def read_rows(method: Method, body: Any, renames: bool) -> Iterator[dict[str, SqlValue]]:
    """The rows of a body as `parse_body` gives it; with `renames` in snake case.

    Raises: TidegateError PROVIDER_REPLY: the rows are not where the document says;
        DOCUMENT_INVALID: its template fails.
    """
    body = _transformed(method, body)
    for row in _rows(method, body):
        if not isinstance(row, dict):
            yield {ANONYMOUS: sql_value(row)}
            continue
        cells: dict[str, SqlValue] = {}
        for name, value in cast("dict[str, Any]", row).items():
            column = snake_case(name) if renames else name
            # Two names of an API may become one: the first keeps the plain name.
            while column in cells:
                column += "_"
            cells[column] = sql_value(value)
        yield cells


def _transformed(method: Method, body: Any) -> Any:
    transform = method.response.transform
    if transform is None or body is None:
        return body
    kind = TEMPLATE.fullmatch(transform.kind)
    if kind is None or kind[1] == "mxj":
        raise TidegateError(
            Code.DOCUMENT_INVALID, f"The transform {transform.kind[:60]} cannot be applied yet."
        )
    given = to_json(body) if kind[1] == "text" and not isinstance(body, str) else body
    text = render_template(transform.template, given, f"the response of {method.name}")
    return parse_body(method, text.encode(), "application/json")


def _rows(method: Method, body: Any) -> Iterator[Any]:
    key = method.response.object_key
    found: list[Any] = [body]
    if key is None:
        listed = cast("dict[str, Any]", body).get("items") if isinstance(body, dict) else None
        found = [listed if isinstance(listed, list) else body]
    else:
        for step in key:
            found = [inner for each in found for inner in _inner(each, step)]
    for each in found:
        if isinstance(each, list):
            yield from cast("list[Any]", each)
        elif each is not None:
            yield each


def _inner(value: Any, step: str) -> Iterator[Any]:
    if isinstance(value, list):
        members = cast("list[Any]", value)
        yield from members if step == "*" else (x for each in members for x in _inner(each, step))
    elif isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        yield from entries.values() if step == "*" else ([entries[step]] if step in entries else ())


def sql_value(value: Any) -> SqlValue:
    """A value of JSON as a cell: exact, whatever its size."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if -_LARGEST <= value <= _LARGEST else str(value)
    if value is None or isinstance(value, (str, float)):
        return value
    return to_json(value)
