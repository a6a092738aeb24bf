"""Reads the rows of a response: transform, path to the rows, names of columns, values for SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple, cast

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import Method
from tidegate.products.cloud.documents.names import snake_case
from tidegate.products.cloud.documents.schema import ANONYMOUS, Schemas, XPath
from tidegate.products.cloud.documents.template_functions import to_json
from tidegate.products.cloud.documents.xml_rows import (
    read_xml,
    read_xml_at,
    read_xml_map,
    read_xml_rows,
)
from tidegate.products.cloud.http.go_template import render_template
from tidegate.products.cloud.http.graphql import check_errors
from tidegate.products.cloud.http.reply_formats import (
    check_place,
    check_shape,
    is_xml,
    no_columns,
    parse_reply,
)
from tidegate.products.cloud.http.transforms import SCHEMA_DRIVEN_XML, TEMPLATE
from tidegate.products.cloud.http.usual_pages import envelope_of

SqlValue = str | int | float | None
"""What a cell holds: objects and lists are JSON text, booleans 1 and 0, as SQLite has them."""
_LARGEST: Final = 2**63 - 1
_NO_ROWS: Final = frozenset({"error", "errorresponse", "html"})
"""Root elements of what is sent in the place of rows, with a status of success."""
_PLAIN: Final = frozenset({str, float, type(None)})
"""Types of values that a cell holds as they are."""


class ApiPage(NamedTuple):
    """What one response gave. `body` is as it came, of XML what is beside the rows, for what
    says where the next page is."""

    rows: Iterator[dict[str, SqlValue]]
    body: Any


def read_page(
    method: Method,
    schemas: Schemas,
    content: bytes,
    host: str,
    *,
    renames: bool = False,
    columns: Collection[str] | None = None,
) -> ApiPage:
    """The rows of a successful response; with `renames` their names are in snake case.

    `columns` are those of the document, if they are known. If there are none but `_`, that has the
    row itself, as JSON; if there is one, it has what comes where the document shows a list of
    objects and the provider sends one of plain values.

    Rows are read while they are taken.

    Raises: TidegateError PROVIDER_REPLY: the body is not what its type says; DOCUMENT_INVALID: the
        document's template fails.
    """
    response = method.response
    transform = response.transform
    reads_xml = transform is None and is_xml(response.media_type) and not _is_json(content)
    is_found = reads_xml and not isinstance(response.object_key, XPath)
    if is_found or (transform is not None and transform.kind == SCHEMA_DRIVEN_XML):
        if not content.strip():
            return ApiPage(iter(()), None)
        row = schemas.row(response.schema or {}, response.object_key)
        root = read_xml(content, host)
        found = read_xml_rows(root, row, schemas)
        return ApiPage(_cells(found, renames, columns), envelope_of(root))
    if transform is None and isinstance(response.object_key, XPath):
        if not content.strip():
            return ApiPage(iter(()), None)
        root = read_xml(content, host)
        if root.name.lower() in _NO_ROWS and root.name not in response.object_key:
            raise TidegateError(
                Code.PROVIDER_REPLY,
                f"The reply of {host} to {method.name} is `{root.name}`, and no rows.",
            )
        found = read_xml_at(root, response.object_key, response.schema or {}, schemas)
        # What a document says of pages may be a path from the root.
        beside = read_xml_map(root) if method.settings.pagination is not None else {}
        return ApiPage(_cells(found, renames, columns), {**envelope_of(root), **beside})
    kind = "" if transform is None else _template_kind(transform.kind)
    mapped: dict[str, Any] = {}
    if kind == "mxj" and content.strip():
        root = read_xml(content, host)
        mapped = read_xml_map(root)
        body: Any = {**envelope_of(root), **mapped}
    elif kind == "text" and content.lstrip()[:1] == b"<":
        body = content.decode("utf-8", "replace")  # XML, whatever the type of what is made of it
    else:
        body = parse_reply(method, content, host)
    if method.graphql is not None:
        check_errors(method, body, host)
    shaped = mapped or body
    if transform is not None and body is not None:
        given = content.decode("utf-8", "replace") if kind == "text" else shaped
        text = render_template(transform.template, given, f"the response of {method.name}")
        shaped = parse_reply(method, text.encode(), host)
    if transform is None and method.graphql is None and columns is not None:
        schema = response.schema
        check_shape(method, body, schemas.properties(schema) if schema else (), host)
        if columns and ANONYMOUS not in columns:
            check_place(method, body, host)
    rows = _cells(_rows(shaped, response.object_key), renames, columns)
    if columns and ANONYMOUS not in columns:
        rows = _documented(rows, frozenset(columns), method, host)
    return ApiPage(rows, body)


def _documented(
    rows: Iterator[dict[str, SqlValue]], columns: frozenset[str], method: Method, host: str
) -> Iterator[dict[str, SqlValue]]:
    """The rows. Raises: TidegateError PROVIDER_REPLY after the last, if none had a column that the
    document names: they would be rows of NULLs."""
    is_known = is_any = False
    for row in rows:
        is_any = is_any or bool(row)
        is_known = is_known or not columns.isdisjoint(row)
        yield row
    if is_any and not is_known:
        raise no_columns(method, host)


def _template_kind(kind: str) -> str:
    match = TEMPLATE.fullmatch(kind)
    if match is None:
        raise TidegateError(Code.DOCUMENT_INVALID, f"The transform {kind[:60]} is not known.")
    return match[1]


def _is_json(content: bytes) -> bool:
    return content.lstrip()[:1] in (b"{", b"[")


def _cells(
    rows: Iterator[Any], renames: bool, columns: Collection[str] | None
) -> Iterator[dict[str, SqlValue]]:
    keeps_whole = columns is not None and set(columns) <= {ANONYMOUS}
    plain = next(iter(columns)) if columns is not None and len(columns) == 1 else ANONYMOUS
    for row in rows:
        if not isinstance(row, dict):
            yield {plain: sql_value(row)}
            continue
        entries = cast("dict[str, Any]", row)
        cells: dict[str, SqlValue] = {
            (snake_case(name) if renames else name): value
            if type(value) in _PLAIN or (type(value) is int and -_LARGEST <= value <= _LARGEST)
            else sql_value(value)
            for name, value in entries.items()
        }
        if len(cells) < len(entries):
            cells = _distinct(entries)
        if keeps_whole:
            cells.setdefault(ANONYMOUS, to_json(entries))
        yield cells


def _distinct(entries: dict[str, Any]) -> dict[str, SqlValue]:
    """The cells of a row of which two names become one: the first keeps the plain name."""
    cells: dict[str, SqlValue] = {}
    for name, value in entries.items():
        column = snake_case(name)
        while column in cells:
            column += "_"
        cells[column] = sql_value(value)
    return cells


def _rows(body: Any, key: tuple[str, ...] | None) -> Iterator[Any]:
    found: list[Any] = [body]
    if key is None:
        listed = cast("dict[str, Any]", body).get("items") if isinstance(body, dict) else None
        found = [cast("Any", listed) if isinstance(listed, list) else body]
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
