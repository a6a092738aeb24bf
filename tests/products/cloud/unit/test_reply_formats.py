"""A reply is read in the form that it has, or refused: it never becomes rows of NULLs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import Method, Response, Server, Settings
from tidegate.products.cloud.documents.schema import Schemas
from tidegate.products.cloud.http.reply_formats import type_problem
from tidegate.products.cloud.http.responses import read_page

ROW: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
}
LIST: dict[str, Any] = {"type": "object", "properties": {"items": {"type": "array", "items": ROW}}}
BARE = {"type": "array", "items": ROW}
METHOD = Method(
    name="m",
    http_verb="GET",
    path="/a",
    fixed_query=(),
    server=Server("https://api.example", {}),
    parameters=(),
    body=None,
    response=Response("200", "application/json", LIST, ("items",)),
    settings=Settings(),
    description="",
    casing="",
)


def read(content: bytes, media_type: str, schema: Any = BARE, key: Any = None) -> list[Any]:
    response = Response("200", media_type, schema, key)
    method = structs.replace(METHOD, response=response)
    page = read_page(method, Schemas({}, "d"), content, "api.example", columns=("id", "name"))
    return list(page.rows)


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        ("application/xml", b"<L><row><id>1</id><name>a</name></row><row><id>2</id></row></L>"),
        ("text/xml; charset=utf-8", b'<?xml version="1.0"?><L><r><id>1</id><name>a</name></r>'
         b"<r><id>2</id></r></L>"),
        ("application/atom+xml", b"<L><r><id>1</id><name>a</name></r><r><id>2</id></r></L>"),
        ("application/xml", b'[{"id":1,"name":"a"},{"id":2,"name":null}]'),
        ("application/x-ndjson", b'{"id":1,"name":"a"}\n{"id":2,"name":null}\n'),
        ("application/json", b'\xef\xbb\xbf[{"id":1,"name":"a"},{"id":2,"name":null}]'),
    ],
)  # fmt: skip
def test_rows_come_from_the_form_that_a_document_names(media_type: str, content: bytes) -> None:
    assert read(content, media_type) == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


def test_rows_of_csv_have_the_names_of_its_first_line() -> None:
    content = b'\xef\xbb\xbfid,name\r\n1,"a, ""b"""\r\n2,\r\n'
    assert read(content, "text/csv") == [{"id": "1", "name": 'a, "b"'}, {"id": "2", "name": ""}]
    assert read(b"id,name\n", "text/csv") == read(b"", "text/csv") == []


@pytest.mark.parametrize(
    ("media_type", "content", "schema", "key"),
    [
        ("text/csv", b'id,name\n1,"a', BARE, None),
        ("text/csv", b"id,id\n1,2\n", BARE, None),
        ("text/csv", b"id,name\n1,2,3\n", BARE, None),
        ("text/csv", b"x;y\n1;2\n", BARE, None),
        ("application/xml", b"<html><body>down</body>", BARE, None),
        ("application/x-ndjson", b'{"id":1}\n{"id":', BARE, None),
        ("application/json", b"<html>down</html>", BARE, None),
        ("application/json", b'{"message":"down"}', BARE, None),
        ("application/json", b'["a","b"]', BARE, None),
        ("application/json", b'"down"', BARE, None),
        ("text/plain", b"down", BARE, None),
        ("text/html", b"<html>down</html>", BARE, None),
        ("text/plain", b"\xff\xfe", BARE, None),
        ("application/json", b'{"error":"no"}', LIST, ("items",)),
        ("application/json", b'{"success":false,"kind":"x"}', LIST, ("items",)),
        ("application/json", b'{"message":"down"}', LIST, ("items",)),
        ("application/json", b'{"items":{"message":"down"}}', LIST, ("items",)),
        ("application/json", b'{"items":[[1],[2]]}', LIST, ("items",)),
        ("application/json", b'[{"id":1,"name":"a"}]', LIST, ("items",)),
        ("application/json", b'"down"', LIST, ("items",)),
        ("application/json", b"5", LIST, ("items",)),
        ("text/plain", b"down", LIST, ("items",)),
        ("application/json", b'{"items":null,"errors":[{"message":"down"}]}', LIST, ("items",)),
        ("application/json", b'{"success":false,"items":[]}', LIST, ("items",)),
        ("application/json", b'{"items":"down"}', LIST, ("items", "list")),
    ],
)
def test_a_reply_without_what_the_document_names_is_an_error(
    media_type: str, content: bytes, schema: Any, key: Any
) -> None:
    with pytest.raises(TidegateError) as caught:
        read(content, media_type, schema, key)
    assert caught.value.code is Code.PROVIDER_REPLY
    assert "down" not in caught.value.message


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (b'{"items":5}', ("items",)), (b'{"items":0}', ("items",)), (b'{"items":""}', ("items",)),
        (b'{"items":false}', ("items",)), (b'{"items":"down"}', ("items",)), (b'"down"', None),
        (b"5", None), (b"false", None), (b'{"a":{"items":7}}', ("a", "items")),
    ],
)  # fmt: skip
def test_a_plain_value_is_no_row_of_a_document_with_one_column(content: bytes, key: Any) -> None:
    one = {"type": "object", "properties": {"id": {"type": "string"}}}
    schema: dict[str, Any] = {"type": "array", "items": one}
    for step in reversed(key or ()):
        schema = {"type": "object", "properties": {step: schema}}
    method = structs.replace(METHOD, response=Response("200", "application/json", schema, key))

    def rows(reply: bytes) -> list[Any]:
        page = read_page(method, Schemas({}, "d"), reply, "api.example", columns=("id",))
        return list(page.rows)

    with pytest.raises(TidegateError) as caught:
        rows(content)
    assert caught.value.code is Code.PROVIDER_REPLY
    if key == ("items",):
        assert rows(b'{"items":["a","b"]}') == [{"id": "a"}, {"id": "b"}]
        assert rows(b'{"items":{"id":"a"}}') == [{"id": "a"}]


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{}", b"[]", b"null", b'{"items":[]}', b'{"items":null}', b'{"items":[],"errors":[]}',
        b'{"items":[],"success":true,"message":"no error"}',
    ],
)  # fmt: skip
def test_a_list_that_is_empty_is_no_error(content: bytes) -> None:
    assert read(content, "application/json", LIST, ("items",)) == []


@pytest.mark.parametrize(
    ("media_type", "is_read"),
    [
        ("application/json", True), ("application/vnd.x+json", True), ("text/csv", True),
        ("application/problem+xml", True), ("text/plain", True), ("", True), ("*/*", True),
        ("application/vnd.github.object", True), ("text/html", False),
        ("application/octet-stream", False), ("image/png", False), ("application/pdf", False),
        ("application/yaml", False), ("application/x-protobuf", False),
    ],
)  # fmt: skip
def test_a_type_that_has_no_rows_is_known_before_a_call(media_type: str, is_read: bool) -> None:
    assert (type_problem(media_type) is None) is is_read
