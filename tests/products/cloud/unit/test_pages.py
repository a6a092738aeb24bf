"""Responses become rows, and a list is followed to its last page on the same host."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import structs

from products.cloud.support.following_pages import next_request
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import (
    Method,
    Pagination,
    Parameter,
    Response,
    Server,
    Transform,
)
from tidegate.products.cloud.documents.model import Settings as CloudSettings
from tidegate.products.cloud.documents.schema import Schemas
from tidegate.products.cloud.documents.settings import read_settings
from tidegate.products.cloud.documents.xml_rows import read_xml
from tidegate.products.cloud.http.requests import ApiRequest
from tidegate.products.cloud.http.responses import read_page, sql_value
from tidegate.products.cloud.http.usual_pages import envelope_of, read_usual_pages


def method(pagination: Pagination | None = None, verb: str = "GET", **response: Any) -> Method:
    fields: dict[str, Any] = {
        "status": "200", "media_type": "application/json", "schema": None, "object_key": None,
    }  # fmt: skip
    return Method(
        "m", verb, "/a", (), Server("https://api.example", {}), (), None,
        Response(**(fields | response)), CloudSettings(pagination=pagination), "", "",
    )  # fmt: skip


HOST = "https://api.example"
PAGE = ApiRequest("GET", f"{HOST}/a?x=1&t=old", (), None, False)


def token(request_place: Any, request_key: str, place: Any, key: str) -> Pagination:
    return Pagination("token", request_place, request_key, place, key)


@pytest.mark.parametrize(
    ("pagination", "headers", "body", "address"),
    [
        (token("query", "t", "body", "$.next"), {}, {"next": "n&w"}, "/a?x=1&t=n%26w"),
        (token("query", "t", "body", "a.b"), {}, {"a": {"b": 7}}, "/a?x=1&t=7"),
        (token("query", "t", "body", "next"), {}, {"next": ""}, None),
        (token("query", "t", "body", "next"), {}, [1], None),
        (
            token("request", "", "header", "Link"),
            {"link": '</a?p=2>; rel="next", <x>; rel=last'},
            [],
            "/a?p=2",
        ),
        (token("request", "", "header", "Link"), {"link": '</a?p=2>; rel="prev"'}, [], None),
        (
            token("request", "", "body", "$.links.pages.next"),
            {},
            {"links": {"pages": {"next": "/b?p=2"}}},
            "/b?p=2",
        ),
        (
            Pagination("page_number", "query", "page", "body", "$.page", "$.pages"),
            {},
            {"page": 1, "pages": 2},
            "/a?x=1&t=old&page=2",
        ),
        (
            Pagination("page_number", "query", "page", "body", "$.page", "$.pages"),
            {},
            {"page": 2, "pages": 2},
            None,
        ),
        (None, {}, {"nextPageToken": "k"}, "/a?x=1&t=old&pageToken=k"),
        (None, {}, {"@odata.nextLink": "/a?skip=2"}, "/a?skip=2"),
        (None, {"link": '</a?p=3>; rel="next"'}, [], "/a?p=3"),
        (None, {}, {"value": []}, None),
    ],
)
def test_the_next_page_is_asked_for(
    pagination: Pagination | None, headers: dict[str, str], body: Any, address: str | None
) -> None:
    following = next_request(method(pagination), PAGE, headers, body)
    assert (following.url if following else None) == (address and f"{HOST}{address}")


# stackql_rest_pagination.robot: forms of `pagination` that name no token of the request, or an
# address in a header of any name, or a token that is sent as it came.
LINKED = '</a?p=2>; rel="next"'
ODATA = "@odata.nextLink"


@pytest.mark.parametrize(
    ("pagination", "headers", "body", "address"),
    [
        ({"responseToken": {"key": "link", "location": "header"}}, {"link": LINKED}, {}, "/a?p=2"),
        (
            {
                "requestToken": {"key": "from", "location": "query"},
                "responseToken": {"key": "Link", "location": "header"},
            },
            {"link": LINKED},
            {},
            "/a?p=2",
        ),
        (
            {
                "algorithm": "link_header_next",
                "responseToken": {"key": "X-Next", "location": "header"},
            },
            {"x-next": LINKED},
            {},
            "/a?p=2",
        ),
        (
            {"responseToken": {"key": "Link", "location": "header"}},
            {"link": '</a?p=0>; rel="prev"'},
            {},
            None,
        ),
        ({"algorithm": "odata_next_link"}, {}, {ODATA: "/a?$skip=2"}, "/a?$skip=2"),
        ({"algorithm": "odata_next_link"}, {}, {"value": []}, None),
        (
            {
                "requestToken": {"key": "t", "location": "query", "encoding": "none"},
                "responseToken": {"key": "next", "location": "body"},
            },
            {},
            {"next": "page_A==#&x"},
            "/a?x=1&t=page_A==%23%26x",
        ),
    ],
)
def test_the_forms_of_a_documents_pages_are_followed(
    pagination: dict[str, Any], headers: dict[str, str], body: Any, address: str | None
) -> None:
    settings = read_settings({"pagination": pagination}, "a.yaml")
    following = next_request(method(settings.pagination), PAGE, headers, body)
    assert (following and following.url) == (None if address is None else f"{HOST}{address}")


def test_a_token_goes_into_the_body_or_a_header() -> None:
    in_body = token("body", "NextToken", "body", "NextToken")
    page = ApiRequest("POST", "https://api.example/", (), b'{"a":1}', False)
    following = next_request(method(in_body, "POST"), page, {}, {"NextToken": "t"})
    assert following is not None and following.body == b'{"a":1,"NextToken":"t"}'
    form = ApiRequest("POST", "https://api.example/", (), b"Action=List&NextToken=s", False)
    following = next_request(method(in_body, "POST"), form, {}, {"NextToken": "t"})
    assert following is not None and following.body == b"Action=List&NextToken=t"
    in_header = token("header", "X-Next", "header", "x-after")
    following = next_request(method(in_header), PAGE, {"x-after": "t"}, None)
    assert following is not None and following.headers == (("X-Next", "t"),)


def taking(*names: str, place: str = "query", verb: str = "GET") -> Method:
    """A method with these parameters, whose document says nothing of pages."""
    parameters = tuple([Parameter(name, name, place, False, {}) for name in names])  # type: ignore[arg-type]
    return structs.replace(method(verb=verb), parameters=parameters)


@pytest.mark.parametrize(
    ("names", "body", "query"),
    [
        (("nextToken",), {"nextToken": "a b"}, "nextToken=a%20b"),
        (("NextToken",), {"nextToken": "k"}, "NextToken=k"),
        (("page_token",), {"next_page_token": "k"}, "page_token=k"),
        (("cursor",), {"next_cursor": "k"}, "cursor=k"),
        (("cursor",), {"meta": {"nextCursor": "k"}}, "cursor=k"),
        (("page",), {"next_page": 3}, "page=3"),
        (("page",), {"page": 1, "total_pages": 2}, "page=2"),
        (("page",), {"result_info": {"page": 2, "total_pages": 3}}, "page=3"),
        (("cursor",), {"result_info": {"cursors": {"after": "k"}}}, "cursor=k"),
        (("offset", "limit"), {"pagination": {"next_offset": 40}}, "offset=40"),
        (("after",), {"has_more": True, "last_id": "k"}, "after=k"),
        (("Marker",), {"IsTruncated": "true", "Marker": "k"}, "Marker=k"),
        (("Marker",), {"NextMarker": "k"}, "Marker=k"),
        (
            ("key-marker", "version-id-marker"),
            {
                "IsTruncated": "true",
                "KeyMarker": "",
                "NextKeyMarker": "k",
                "NextVersionIdMarker": "v",
            },
            "key-marker=k&version-id-marker=v",
        ),
        (
            ("continuation-token",),
            {"IsTruncated": "true", "ContinuationToken": "a", "NextContinuationToken": "b"},
            "continuation-token=b",
        ),
        (("continuation-token",), {"ContinuationToken": "b"}, "continuation-token=b"),
        (("ExclusiveStartName",), {"LastEvaluatedName": "k"}, "ExclusiveStartName=k"),
    ],
)
def test_a_token_beside_the_rows_is_followed_where_a_parameter_takes_it(
    names: tuple[str, ...], body: Any, query: str
) -> None:
    following = next_request(taking(*names), PAGE, {}, body)
    assert following is not None and following.url == f"{PAGE.url}&{query}"
    lacking = taking("other")
    assert next_request(lacking, PAGE, {}, body) is None


@pytest.mark.parametrize(
    ("names", "body"),
    [
        (("page",), {"page": 2, "total_pages": 2}),
        (("page",), {"page": "x", "total_pages": 2}),
        (("nextToken",), {"nextToken": ""}),
        (("nextToken",), {"nextToken": None}),
        (("nextToken",), {"nextToken": {"a": 1}}),
        (("step",), {"next_step": "k"}),
        (("page",), {"next_page": "https://api.example/a?page=2"}),
        (("nextToken",), {"nextToken": "k", "isTruncated": False}),
        (("marker",), {"IsTruncated": "true", "Marker": "a"}),
        (("continuation-token",), {"IsTruncated": "false", "ContinuationToken": "a"}),
        (("after",), {"has_more": False, "last_id": "k"}),
        (("nextToken",), {"nextForwardToken": "k", "nextBackwardToken": "k"}),
        (("nextToken",), [{"nextToken": "k"}]),
    ],
)
def test_what_names_no_further_page_ends_the_list(names: tuple[str, ...], body: Any) -> None:
    assert next_request(taking(*names), PAGE, {}, body) is None


def test_a_token_goes_where_the_method_takes_it() -> None:
    posted = ApiRequest("POST", f"{HOST}/", (), b'{"a":1}', False)
    following = next_request(
        taking("nextToken", place="body", verb="POST"), posted, {}, {"nextToken": "k"}
    )
    assert following is not None and following.body == b'{"a":1,"nextToken":"k"}'
    following = next_request(
        taking("X-Cursor", "cursor", place="header"), PAGE, {}, {"next_cursor": "k"}
    )
    assert following is not None and following.headers == (("cursor", "k"),)
    form = ApiRequest("POST", f"{HOST}/", (), b"Action=ListUsers", False)
    queries = CloudSettings(request_translation="get_query_to_post_form_utf_8")
    listing = structs.replace(taking("Marker"), settings=queries)
    following = next_request(listing, form, {}, {"IsTruncated": "true", "Marker": "k"})
    assert following is not None and following.body == b"Action=ListUsers&Marker=k"


@pytest.mark.parametrize("verb", ["PUT", "PATCH", "DELETE"])
def test_no_token_is_followed_where_a_method_changes_something(verb: str) -> None:
    assert next_request(taking("nextToken", verb=verb), PAGE, {}, {"nextToken": "k"}) is None


@pytest.mark.parametrize(
    ("body", "says_more"),
    [
        ({"has_more": True}, True),
        ({"IsTruncated": "true"}, True),
        ({"result_info": {"page": 1, "total_pages": 4}}, True),
        ({"has_more": False}, False),
        ({"result_info": {"page": 4, "total_pages": 4}}, False),
        ({"truncated": "maybe"}, False),
        ({"total": 5}, False),
        ([], False),
        (None, False),
    ],
)
def test_a_reply_says_whether_its_list_goes_on(body: Any, says_more: bool) -> None:
    assert read_usual_pages(method(), body).says_more is says_more


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        (
            "<ListUsersResponse><ListUsersResult><IsTruncated>true</IsTruncated><Marker>k</Marker>"
            "<Users><member><Marker>no</Marker></member></Users></ListUsersResult>"
            "<Meta><Id>no</Id></Meta></ListUsersResponse>",
            {"IsTruncated": "true", "Marker": "k"},
        ),
        (
            "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>a</Key></Contents>"
            "<Contents><Key> b&amp;</Key></Contents></ListBucketResult>",
            {"IsTruncated": "true", "NextMarker": " b&"},
        ),
        (
            "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key></Contents>"
            "</ListBucketResult>",
            {"IsTruncated": "false"},
        ),
        ("<R><nextToken>k</nextToken><set><item/></set></R>", {"nextToken": "k"}),
    ],
)
def test_what_stands_beside_the_rows_of_xml_is_read(text: str, beside: dict[str, str]) -> None:
    assert envelope_of(read_xml(text.encode(), "api.example")) == beside


def test_nothing_is_followed_by_guess_where_a_method_may_change_something() -> None:
    assert (
        next_request(method(verb="POST"), PAGE, {}, {"nextLink": "https://api.example/b"}) is None
    )


@pytest.mark.parametrize(
    "link", ["https://evil.example/a", "http://api.example/a", "//evil.example/"]
)
def test_a_next_page_on_another_host_is_an_error(link: str) -> None:
    with pytest.raises(TidegateError, match="on another host") as caught:
        next_request(method(), PAGE, {}, {"nextLink": link})
    assert caught.value.code is Code.PROVIDER_REPLY


@pytest.mark.parametrize("link", ["https://[", "//[x", "https://[::1"])
def test_a_next_page_without_an_address_is_an_error(link: str) -> None:
    for headers, body in (({"link": f'<{link}>; rel="next"'}, []), ({}, {"nextLink": link})):
        with pytest.raises(TidegateError, match="no address") as caught:
            next_request(method(), PAGE, headers, body)
        assert caught.value.code is Code.PROVIDER_REPLY


def test_a_page_that_names_itself_as_the_next_is_an_error() -> None:
    with pytest.raises(TidegateError, match="the same page"):
        next_request(method(), PAGE, {}, {"nextLink": PAGE.url})


SCHEMAS = Schemas({}, "test.yaml")


def read(content: bytes, renames: bool = False, **response: Any) -> list[dict[str, Any]]:
    page = read_page(method(**response), SCHEMAS, content, "api.example", renames=renames)
    return list(page.rows)


def rows(body: Any, renames: bool = False, **response: Any) -> list[dict[str, Any]]:
    return read(json.dumps(body).encode(), renames, **response)


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b'[{"a": "\xff"}]',
        b'{"\xc3": 1}',
        b'"\xed\xa0\x80"',
        b"[" * 200_000,
        b'[{"a": NaN}]',
        b"\xff\xfe[\x00",
    ],
)
def test_a_reply_that_is_no_json_is_said_to_be_none(content: bytes) -> None:
    with pytest.raises(TidegateError, match="is cut off or no JSON") as caught:
        read(content)
    assert caught.value.code is Code.PROVIDER_REPLY


def test_rows_are_where_the_document_says() -> None:
    nested = {"data": {"items": [{"a": 1}, {"a": 2}]}}
    assert rows(nested, object_key=("data", "items")) == [{"a": 1}, {"a": 2}]
    assert rows({"items": [{"a": 1}]}) == [{"a": 1}]
    assert rows([{"a": 1}, "x", None]) == [{"a": 1}, {"_": "x"}, {"_": None}]
    assert rows({"a": 1}) == [{"a": 1}]
    assert rows({"data": None}, object_key=("data",)) == rows({}, object_key=("data",)) == []
    grouped = {"g": [{"m": [1, 2]}, {"m": [3]}]}
    assert rows(grouped, object_key=("g", "*", "m")) == [{"_": 1}, {"_": 2}, {"_": 3}]


def test_names_in_snake_case_stay_apart() -> None:
    body = {"VpcId": 1, "vpcId": 2, "vpc_id": 3}
    assert rows(body, renames=True) == [{"vpc_id": 1, "vpc_id_": 2, "vpc_id__": 3}]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (True, 1), (None, None), (2**63 - 1, 2**63 - 1), (2**63, str(2**63)), (1.5, 1.5),
        ({"a": [True, "ü"]}, '{"a":[true,"ü"]}'), ([], "[]"),
    ],
)  # fmt: skip
def test_cells_are_exact(value: Any, cell: Any) -> None:
    made = sql_value(value)
    assert (made, type(made)) == (cell, type(cell))


def test_a_template_is_applied_before_rows_are_read() -> None:
    json_ = Transform("golang_template_json_v0.3.0", '{"rows": {{ toJson .value }}}')
    assert rows({"value": [{"a": ",}"}]}, object_key=("rows",), transform=json_) == [{"a": ",}"}]
    text = Transform("golang_template_text_v0.3.0", '{"rows": {{ . }}}')
    assert rows([{"a": 1}], object_key=("rows",), transform=text) == [{"a": 1}]


@pytest.mark.parametrize("content", [b'{"a": ', b"[1, 2", b'{"a": 1} x', b"<html>"])
def test_a_body_that_is_cut_off_is_an_error_and_no_short_result(content: bytes) -> None:
    with pytest.raises(TidegateError, match=r"api\.example to m is cut off or no JSON") as caught:
        read(content)
    assert caught.value.code is Code.PROVIDER_REPLY


def test_a_body_that_is_no_json_is_text() -> None:
    assert read(b"plain", media_type="text/plain") == [{"_": "plain"}]
    assert read(b" \n") == []


XML = Transform("schema_driven_xml_v0.1.0", "")
ROW = {
    "properties": {
        "Name": {"type": "string"},
        "Size": {"type": "integer"},
        "IsOpen": {"type": "boolean"},
        "Tags": {"type": "array", "items": {"properties": {"Key": {"type": "string"}}}},
        "Marker": {"type": "string"},
    }
}


def xml(inner: str) -> list[dict[str, Any]]:
    content = f'<?xml version="1.0"?><R xmlns="urn:x"><Result>{inner}</Result></R>'.encode()
    schema = {"properties": {"line_items": {"type": "array", "items": ROW}}}
    return read(content, transform=XML, schema=schema, object_key=("line_items",))


def test_rows_of_xml_are_the_elements_with_the_columns_of_the_schema() -> None:
    one = "<member><Name> a </Name><Size>3</Size><IsOpen>true</IsOpen><Tags><member><Key>k</Key>"
    one += "</member></Tags></member>"
    two = "<member><Name>b</Name><Other>x</Other></member>"
    assert xml(f"<Things>{one}{two}</Things><Marker>m</Marker>") == [
        {"Name": " a ", "Size": 3, "IsOpen": 1, "Tags": '[{"Key":"k"}]', "Marker": None},
        {"Name": "b", "Size": None, "IsOpen": None, "Tags": None, "Marker": None},
    ]


def test_an_empty_list_in_xml_is_no_row_although_its_envelope_has_a_column() -> None:
    assert xml("<Things/><Marker>m</Marker><IsTruncated>false</IsTruncated>") == []
    assert read(b"", transform=XML) == []


def test_a_single_thing_in_xml_is_one_row() -> None:
    assert [row["Name"] for row in xml("<Thing><Name>a</Name></Thing>")] == ["a"]
    assert [row["Name"] for row in xml("<Name>a</Name><Size>1</Size>")] == ["a"]


@pytest.mark.parametrize(
    "content", [b"<a>", b"{}", b'<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', b"<a>" * 100]
)
def test_xml_that_cannot_be_read_is_an_error(content: bytes) -> None:
    with pytest.raises(TidegateError, match=r"The reply of api\.example is no XML") as caught:
        read(content, transform=XML, schema=ROW)
    assert caught.value.code is Code.PROVIDER_REPLY


def test_a_template_may_be_given_a_map_of_xml() -> None:
    template = '{"rows": {{ toJson (index . "R" "a") }} }'
    transform = Transform("golang_template_mxj_v0.3.0", template)
    content = b"<R><a>1</a><a><b>007</b><c>false</c><d>1.50</d><e>-0.5</e></a></R>"
    made = read(content, transform=transform, object_key=("rows",))
    assert made == [{"_": 1}, {"b": "007", "c": 0, "d": "1.50", "e": -0.5}]


def test_a_template_may_be_given_the_text_of_xml_whatever_comes_of_it() -> None:
    template = '{"rows": [{"a": "{{ getXPath . "/R/a" }}"}]}'
    transform = Transform("golang_template_text_v0.3.0", template)
    made = read(b"<R><a>x</a></R>", transform=transform, object_key=("rows",))
    assert made == [{"a": "x"}]


def test_a_plain_value_fills_the_one_column_that_the_document_has() -> None:
    def read_with(*columns: str) -> list[dict[str, Any]]:
        content = b'["C", {"name": "D"}]'
        return list(read_page(method(), SCHEMAS, content, "api.example", columns=columns).rows)

    assert read_with("name") == [{"name": "C"}, {"name": "D"}]
    assert read_with("name", "size") == [{"_": "C"}, {"name": "D"}]
    assert read_with("_") == read_with() == [{"_": "C"}, {"name": "D", "_": '{"name":"D"}'}]
