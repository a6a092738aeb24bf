"""Requests of methods carry the values given, and no value leads them anywhere else."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import (
    Body,
    Method,
    Parameter,
    Place,
    Resource,
    Response,
    Schema,
    Server,
    Transform,
)
from tidegate.products.cloud.documents.model import Settings as CloudSettings
from tidegate.products.cloud.documents.schema import Schemas
from tidegate.products.cloud.http.requests import ApiRequest, build_request, find_method, typed

SCHEMAS = Schemas({}, "test.yaml")
TEXT: Schema = {"type": "string"}


def parameter(
    name: str, place: Place, required: bool = False, schema: Schema = TEXT, **more: Any
) -> Parameter:
    return Parameter(name, more.pop("wire_name", name), place, required, schema, **more)


def method(*parameters: Parameter, **more: Any) -> Method:
    fields: dict[str, Any] = {
        "name": "m",
        "http_verb": "GET",
        "path": "/a",
        "fixed_query": (),
        "server": Server("https://api.example/v1/", {}),
        "parameters": parameters,
        "body": None,
        "response": Response("200", "application/json", None, None),
        "settings": CloudSettings(),
        "description": "",
        "casing": "",
    }
    return Method(**(fields | more))


def build(wanted: Method, **values: Any) -> ApiRequest:
    return build_request(wanted, SCHEMAS, values)


def test_values_go_where_the_document_says() -> None:
    wanted = method(
        parameter("id", "path", True),
        parameter("q", "query"),
        parameter("X-Trace", "header"),
        parameter("region", "server", True),
        parameter("seen", "cookie"),
        path="/items/{id}/x",
        fixed_query=(("v", "2"),),
        server=Server("https://{region}.shop.example/v1", {"region": "eu"}),
    )
    request = build(wanted, ID="a/b c", q="x&y", x_trace="t", region="us", seen="1;2")
    assert request.url == "https://us.shop.example/v1/items/a%2Fb%20c/x?v=2&q=x%26y"
    assert request.headers == (("X-Trace", "t"), ("Cookie", "seen=1%3B2"))
    assert (request.verb, request.body, request.has_free_host) == ("GET", None, False)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({}, "the parameter id is missing"),
        ({"id": None}, "must not be NULL"),
        ({"id": ".."}, "must not be empty"),
        ({"id": ""}, "must not be empty"),
        ({"id": "1", "other": "2"}, "it has no parameter other"),
        ({"id": "1", "trace": "a\r\nHost: evil"}, "trace is no header"),
        ({"id": "1", "Host": "evil.example"}, "Host is no header"),
    ],
)
def test_what_does_not_fit_is_refused(values: dict[str, Any], problem: str) -> None:
    wanted = method(
        parameter("id", "path", True),
        parameter("trace", "header"),
        parameter("Host", "header"),
        path="/items/{id}",
    )
    with pytest.raises(TidegateError, match=problem) as caught:
        build(wanted, **values)
    assert caught.value.code is Code.ARGUMENT_INVALID


@pytest.mark.parametrize(
    "value",
    [
        "evil.example/",
        "evil.example#",
        "a@evil.example",
        "a:1",
        "a b",
        "",
        "..",
        "-a",
        "a%2f",
        "ü",
        "a\n",
    ],
)
def test_a_variable_of_the_server_is_no_more_than_a_part_of_its_host(value: str) -> None:
    wanted = method(
        parameter("sub", "server", True), server=Server("https://{sub}.shop.example/", {"sub": ""})
    )
    with pytest.raises(TidegateError, match="a part of a host's name"):
        build(wanted, sub=value)


@pytest.mark.parametrize("value", ["a" * 64, ".".join(["a" * 60] * 4), "b." + "a" * 64 + ".c"])
def test_a_host_is_no_longer_than_a_name_may_be(value: str) -> None:
    wanted = method(
        parameter("sub", "server", True), server=Server("https://{sub}.shop.example/", {"sub": ""})
    )
    with pytest.raises(TidegateError, match="longer than a name of a host may be"):
        build(wanted, sub=value)
    assert build(wanted, sub="a" * 63).url.startswith(f"https://{'a' * 63}.shop.example/")


def test_a_host_that_a_value_alone_decides_is_said_to_be_free() -> None:
    server = Server("{protocol}://{host}/api", {"protocol": "https", "host": ""})
    wanted = method(
        parameter("host", "server", True), parameter("protocol", "server"), server=server
    )
    request = build(wanted, host="127.0.0.1:8080", protocol="http")
    assert (request.url, request.has_free_host) == ("http://127.0.0.1:8080/api/a", True)
    with pytest.raises(TidegateError, match="must be http or https"):
        build(wanted, host="a", protocol="file")


@given(st.text(max_size=30), st.text(max_size=30))
@settings(max_examples=300)
def test_no_value_moves_a_request_to_another_host_or_path(sub: str, item: str) -> None:
    wanted = method(
        parameter("sub", "server", True),
        parameter("item", "path", True),
        path="/items/{item}/end",
        server=Server("https://{sub}.shop.example/v1", {"sub": ""}),
    )
    try:
        url = urlsplit(build(wanted, sub=sub, item=item).url)
    except TidegateError:
        return
    assert url.hostname == f"{sub.lower()}.shop.example"
    assert (url.username, url.port, url.query, url.fragment) == (None, None, "", "")
    segments = url.path.split("/")
    assert [segments[at] for at in (1, 2, 4)] == ["v1", "items", "end"]
    assert unquote(segments[3]) == item


def test_the_form_of_aws_queries() -> None:
    wanted = method(
        parameter("tags", "query", schema={"type": "array"}, wire_name="Tags"),
        fixed_query=(("Action", "CreateUser"), ("__hidden", "1")),
        settings=CloudSettings(
            request_translation="get_query_to_post_form_utf_8", query_transposition="AWSCanonical"
        ),
    )
    request = build(wanted, tags='[{"Key": "a", "Value": "b"}, "c"]')
    assert (request.verb, request.url) == ("POST", "https://api.example/v1/a")
    assert request.body == b"Action=CreateUser&__hidden=1&Tags.1.Key=a&Tags.1.Value=b&Tags.2=c"
    assert request.headers == (
        ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"),
    )


def test_lists_and_objects_in_a_query_follow_their_style() -> None:
    many: Schema = {"type": "array"}
    wanted = method(
        parameter("a", "query", schema=many),
        parameter("b", "query", schema=many, style="form", explodes=False),
        parameter("c", "query", schema={"type": "object"}, style="deepObject"),
        parameter("__d", "query"),
        fixed_query=(("__e", "1"),),
        settings=CloudSettings(request_translation="drop_double_underscore_params"),
    )
    request = build(wanted, a="[1, 2]", b='["x", "y"]', c='{"k": true}', __d="gone")
    assert urlsplit(request.url).query == "a=1&a=2&b=x%2Cy&c%5Bk%5D=true"


def post(*parameters: Parameter, names: str = "naive", **body: Any) -> Method:
    fields: dict[str, Any] = {"media_type": "application/json", "schema": {}, "is_required": False}
    return method(
        *parameters, http_verb="POST", body=Body(**(fields | body)),
        settings=CloudSettings(body_names=names),
    )  # fmt: skip


def test_a_body_has_the_fields_given_over_its_base() -> None:
    wanted = post(
        parameter("name", "body"),
        parameter("size", "body", schema={"type": "integer"}, wire_name="Size"),
        parameter("on", "body", schema={"type": "boolean"}),
        parameter("deep", "body", schema={"type": "object"}),
        base='{"kind": "x", "deep": {"a": 1, "b": 2}}',
    )
    request = build(wanted, name="7", size="7", on=1, deep='{"b": 3}')
    assert request.body is not None
    assert json.loads(request.body) == {
        "kind": "x", "deep": {"a": 1, "b": 3}, "name": "7", "Size": 7, "on": True,
    }  # fmt: skip


def test_a_body_of_nothing_is_sent_only_where_one_is_wanted() -> None:
    assert build(post(parameter("name", "body"))).body is None
    assert build(post(parameter("name", "body"), is_required=True)).body == b"{}"
    assert build(post(parameter("name", "body"), default='{"a": 1}')).body == b'{"a":1}'


def test_a_desired_state_is_text_in_a_field() -> None:
    wanted = post(
        parameter("BucketName", "body"), names="naive_DesiredState", base='{"TypeName": "B"}'
    )
    request = build(wanted, BucketName="b1")
    assert request.body == b'{"TypeName":"B","DesiredState":"{\\"BucketName\\":\\"b1\\"}"}'


def test_a_template_writes_the_body() -> None:
    transform = Transform("golang_template_json_v0.3.0", "<a>{{ .name }}</a>")
    wanted = post(parameter("name", "body"), media_type="application/xml", transform=transform)
    request = build(wanted, name="x")
    assert (request.body, request.headers) == (b"<a>x</a>", (("Content-Type", "application/xml"),))


def test_a_body_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(TidegateError, match="image/png cannot be sent yet"):
        build(post(parameter("name", "body"), media_type="image/png"), name="x")


def test_a_body_of_the_document_that_is_no_json_is_its_fault() -> None:
    with pytest.raises(TidegateError, match="is no JSON") as refusal:
        build(post(parameter("name", "body"), base="{"), name="x")
    assert refusal.value.code is Code.DOCUMENT_INVALID


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(TidegateError, match="surrogate") as refusal:
        build(method(parameter("q", "query")), q="\ud800")
    assert refusal.value.code is Code.ARGUMENT_INVALID


def test_headers_have_the_documents_own_value() -> None:
    schema: Schema = {"type": "string", "default": "Service.Do"}
    wanted = method(parameter("X-Target", "header", schema=schema))
    assert build(wanted).headers == (("X-Target", "Service.Do"),)
    assert build(wanted, x_target="Other").headers == (("X-Target", "Other"),)


def test_a_target_header_makes_the_path_the_root() -> None:
    schema: Schema = {"type": "string", "default": "Tables_1.List"}
    wanted = method(parameter("X-Amz-Target", "header", schema=schema), path="/ListTables")
    assert build(wanted).url == "https://api.example/v1/"


def test_the_first_method_whose_required_parameters_are_given_is_used() -> None:
    one = method(parameter("item-id", "path", True), name="one")
    all_ = method(parameter("page", "query"), name="all")
    resource = Resource("r", "r", "", "", {"one": one, "all": all_}, {"select": ("one", "all")}, ())
    assert find_method(resource, "select", ["ITEM_ID"]) is one
    assert find_method(resource, "select", ["page"]) is all_
    assert find_method(resource, "delete", ["page"]) is None


@pytest.mark.parametrize(
    ("value", "kind", "result"),
    [
        (1, "boolean", True), ("false", "boolean", False), (1, "string", "1"), ("1", "string", "1"),
        ("12345678901234567890", "integer", 12345678901234567890), ("1.5", "number", 1.5),
        ("x", "integer", "x"), ('{"a": 1}', "object", {"a": 1}), ("[1", "array", "[1"),
        ("[1]", "object", "[1]"), ('{"a": 1}', "string", '{"a": 1}'), ("[1]", "", [1]),
    ],
)  # fmt: skip
def test_values_become_those_of_the_schema_only_where_they_fit(
    value: Any, kind: str, result: Any
) -> None:
    made = typed(value, {"type": kind} if kind else {}, SCHEMAS)
    assert (made, type(made)) == (result, type(result))


def test_requests_are_compared_by_value() -> None:
    assert build(method()) == msgspec.structs.replace(build(method()))
