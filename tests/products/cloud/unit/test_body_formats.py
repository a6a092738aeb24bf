"""Bodies in XML, as forms of several parts and as plain content say what the values say."""

from __future__ import annotations

import email
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import XmlForm
from tidegate.products.cloud.documents.schema import Schemas
from tidegate.products.cloud.http.body_formats import multipart_body, plain_body, xml_body

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "Delete": {
            "properties": {
                "Objects": {
                    "type": "array", "xml": {"name": "Object"},
                    "items": {"properties": {"Key": {"type": "string"}}},
                },
                "Tags": {
                    "type": "array", "xml": {"wrapped": True},
                    "items": {"xml": {"name": "Tag"}},
                },
                "kind": {"xml": {"attribute": True}},
            },
            "xml": {"namespace": "http://s3.example/"},
        }
    },
}  # fmt: skip


def xml(fields: dict[str, Any], schema: dict[str, Any] | None = None) -> str:
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return xml_body(fields, schema or SCHEMA, Schemas({}, "d")).decode().removeprefix(head)


def test_one_field_is_the_root_and_a_list_is_its_element_again_and_again() -> None:
    value = {"Objects": [{"Key": "a&<b>"}, {"Key": "c"}], "Quiet": True, "Skipped": None}
    assert xml({"Delete": value}) == (
        '<Delete xmlns="http://s3.example/"><Object><Key>a&amp;&lt;b&gt;</Key></Object>'
        "<Object><Key>c</Key></Object><Quiet>true</Quiet></Delete>"
    )
    assert xml({"Delete": {"Tags": ["x", "y"], "kind": 'a"b'}}) == (
        '<Delete kind=\'a"b\' xmlns="http://s3.example/"><Tags><Tag>x</Tag><Tag>y</Tag></Tags>'
        "</Delete>"
    )
    assert xml({"Rules": {"Rule": [1, 2]}}) == "<Rules><Rule>1</Rule><Rule>2</Rule></Rules>"
    assert xml({"a": 1, "b": 2}, {"xml": {"name": "Root"}}) == "<Root><a>1</a><b>2</b></Root>"


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"a": 1, "b": 2}, "one root"),
        ({"a b": 1}, "not the name"),
        ({"a": {"x/><y": 1}}, "not the name"),
        ({"a": "\x00"}, "cannot hold"),
        ({"a": nested(40)}, "deep"),
    ],
)
def test_what_xml_cannot_say_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(TidegateError, match=problem) as refusal:
        xml(fields)
    assert refusal.value.code is Code.ARGUMENT_INVALID


@given(st.text())
def test_no_value_adds_an_element(value: str) -> None:
    try:
        content = xml_body({"a": {"b": value}}, {}, Schemas({}, "d"))
    except TidegateError as refusal:
        assert refusal.code is Code.ARGUMENT_INVALID
        return
    root = ElementTree.fromstring(content)
    assert [(each.tag, len(each)) for each in root] == [("b", 0)]
    assert (root[0].text or "") == value.replace("\r\n", "\n").replace("\r", "\n")


@given(st.text(), st.text())
def test_the_parts_of_a_form_are_those_that_were_given(first: str, second: str) -> None:
    kind, content = multipart_body({"a": first, "file": second, "meta": {"x": 1}})
    message = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + content)
    parts = message.get_payload()
    assert isinstance(parts, list) and len(parts) == 3
    names = [part.get_param("name", header="content-disposition") for part in parts]  # type: ignore[union-attr]
    assert names == ["a", "file", "meta"]
    for given_, place in ((first, b'name="a"\r\n\r\n'), (second, b"octet-stream\r\n\r\n")):
        assert place + given_.encode() + b"\r\n--" in content
    assert b'{"x":1}' in content


@pytest.mark.parametrize("name", ['a"; filename="x', "a\r\nX: y"])
def test_no_name_ends_its_header(name: str) -> None:
    with pytest.raises(TidegateError):
        multipart_body({name: "x"})


def test_plain_content_is_sent_as_it_is() -> None:
    assert plain_body("ä\n") == "ä\n".encode()
    with pytest.raises(TidegateError):
        plain_body("\ud800")


def test_a_document_may_say_what_stands_around_a_body_whose_value_is_xml() -> None:
    form = XmlForm("ChangeRequest", 'xmlns="https://dns.example/"', "<?xml version='1.0'?>", True)

    def made(**fields: Any) -> str:
        return xml_body(fields, {}, Schemas({}, "d"), form).decode()

    change = "<Changes><Change><Name>a.example</Name></Change></Changes>"
    assert made(ChangeBatch=change, Comment="a < b") == (
        "<?xml version='1.0'?><ChangeRequest xmlns=\"https://dns.example/\">"
        f"<ChangeBatch>{change}</ChangeBatch><Comment>a &lt; b</Comment></ChangeRequest>"
    )
    for value in ("<Changes>", "</ChangeBatch><Other/>", "<!DOCTYPE x><a/>"):
        with pytest.raises(TidegateError, match="is no XML"):
            made(ChangeBatch=value)
