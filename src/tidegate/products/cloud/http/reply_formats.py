"""The values of a reply by its media type: JSON, lines of JSON, CSV, or text. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping
from typing import Any, Final, cast

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import Method
from tidegate.products.cloud.documents.schema import XPath

_BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = ("ndjson", "jsonl", "jsonlines", "json-seq", "stream+json")
_LINE_DECODER: Final = msgspec.json.Decoder()
_CSV: Final = ("text/csv", "application/csv")
_UNREADABLE: Final = (
    "html", "octet-stream", "pdf", "zip", "tar", "image/", "audio/", "video/", "font/", "yaml",
    "protobuf", "msgpack", "cbor", "avro", "parquet", "excel", "spreadsheet", "event-stream",
)  # fmt: skip
"""Parts of types whose replies are no rows."""
_MOST_FIELD: Final = 16_777_216
_ERRORS: Final = ("error", "errors", "fault", "exception")


def is_xml(media_type: str) -> bool:
    """Whether a reply of the type is XML."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind.endswith(("/xml", "+xml")) and "html" not in kind


def type_problem(media_type: str) -> str | None:
    """Why a reply of the type has no rows that can be read; None if it may have some."""
    kind = media_type.partition(";")[0].strip().lower()
    if "json" in kind or "xml" in kind.removeprefix("application/xhtml+xml"):
        return None
    if not any(each in kind for each in _UNREADABLE):
        return None
    return f"replies of the type `{kind[:60]}` cannot be read as rows"


def parse_reply(method: Method, content: bytes, host: str) -> Any:
    """Values of JSON, rows of CSV; text if it is neither and need not be; None if there is nothing.

    Raises: TidegateError PROVIDER_REPLY: it is not what its type says, or no text.
    """
    content = content.removeprefix(_BOM)
    if not content.strip():
        return None
    kind = method.response.media_type.partition(";")[0].strip().lower()
    begins_as_json = content.lstrip()[:1] in (b"{", b"[")
    try:
        if any(each in kind for each in _LINES):
            return _LINE_DECODER.decode_lines(content.replace(b"\x1e", b""))
        if "json" in kind or begins_as_json:
            return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _no_reply(method, host, "is cut off or no JSON") from None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise _no_reply(method, host, "is no text in UTF-8") from None
    return _csv_rows(method, text, host) if kind in _CSV else text


def _csv_rows(method: Method, text: str, host: str) -> list[dict[str, str]]:
    """Rows by the names in the first line."""
    csv.field_size_limit(_MOST_FIELD)
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = next(lines, cast("list[str]", []))
        rows = [row for row in lines if row]
    except csv.Error:
        raise _no_reply(method, host, "is cut off or no CSV") from None
    if len(set(names)) < len(names) or any(len(row) != len(names) for row in rows):
        raise _no_reply(method, host, "is no CSV whose first line names its columns")
    return [dict(zip(names, row, strict=True)) for row in rows]


def check_shape(method: Method, body: Any, documented: Collection[str], host: str) -> None:
    """Refuse a reply that lacks the list which the document has, and is not said to be empty.

    `documented` are the fields that the document's reply has. Raises: TidegateError PROVIDER_REPLY.
    """
    key = method.response.object_key
    if not body or not key or isinstance(key, XPath) or key[0] == "*":
        if isinstance(body, (int, float)) and key and not isinstance(key, XPath):
            raise _no_reply(method, host, f"is a plain value, and has no `{key[0]}`")
        return
    if isinstance(body, list):
        members = cast("list[Any]", body)
        if not any(isinstance(each, Mapping) and key[0] in each for each in members):
            raise _no_reply(method, host, f"is a list, and has no `{key[0]}`")
        return
    if not isinstance(body, Mapping):
        raise _no_reply(method, host, f"is a plain value, and has no `{key[0]}`")
    fields = cast("Mapping[str, Any]", body)
    inner: Any = fields
    for step in key:
        if isinstance(inner, (list, tuple)) or step == "*" or inner is None:
            break
        if not isinstance(inner, Mapping):
            raise _no_reply(method, host, f"has a plain value in the place of `{step}`")
        inner = cast("Mapping[str, Any]", inner).get(step)
    if inner:
        return
    failed = next((name for name in fields if name.lower() in _ERRORS and fields[name]), None)
    if failed is None and fields.get("success") is False:
        failed = "success"
    if failed is None and fields.get("ok") is False:
        failed = "ok"
    if failed is None and key[0] in fields:
        return
    if failed is not None:
        raise _no_reply(
            method, host, f"has no `{key[-1]}`, and says in `{failed[:60]}` that it failed"
        )
    if documented and not any(name in documented for name in fields):
        shown = ", ".join(f"`{name[:40]}`" for name in list(fields)[:5])
        raise _no_reply(method, host, f"has {shown}, and nothing that its document names")


def check_place(method: Method, body: Any, host: str) -> None:
    """Refuse a plain value where the document has its list of objects, or the one object: as a row
    it would show a count, a message or `false` as the value of a column.

    Raises: TidegateError PROVIDER_REPLY.
    """
    key = method.response.object_key
    if isinstance(key, XPath):
        return
    inner: Any = body
    for step in key or ():
        if not isinstance(inner, Mapping) or step == "*":
            return  # `check_shape` has checked the way there
        inner = cast("Mapping[str, Any]", inner).get(step)
    if inner is None or isinstance(inner, (list, tuple, Mapping)):
        return
    what = f"has a plain value in the place of `{key[-1]}`" if key else "is a plain value"
    raise _no_reply(method, host, what)


def no_columns(method: Method, host: str) -> TidegateError:
    """The error for a reply whose rows have none of the document's columns."""
    return _no_reply(method, host, "has none of the columns that its document names")


def _no_reply(method: Method, host: str, problem: str) -> TidegateError:
    return TidegateError(
        Code.PROVIDER_REPLY,
        f"The reply of {host} to {method.name} {problem}.",
        hint=f"DESCRIBE METHOD shows what the document of {method.name} says of its reply.",
    )
