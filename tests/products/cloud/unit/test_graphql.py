"""GraphQL methods send the document's query, page after page, and no value adds to the query."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from products.cloud.support.following_pages import next_request
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import Method, Parameter, Response, Server
from tidegate.products.cloud.documents.model import Settings as CloudSettings
from tidegate.products.cloud.documents.schema import Schemas
from tidegate.products.cloud.http.graphql import GraphQlRequest, find_at, problem_of_graphql
from tidegate.products.cloud.http.requests import ApiRequest, build_request
from tidegate.products.cloud.http.responses import read_page

QUERY = """query {
  # the stars of "one" repository
  repository(owner: "{{ .owner }}", name: "{{ .repo }}") {
    stars(first: {{ if .limit }}{{ .limit }}{{ else }}100{{ end }}{{ .cursor }}) {
      pageInfo { endCursor hasNextPage } nodes { login }
    }
  }
}
"""
STARS = "$.data.repository.stars"
PAGE_INFO = {
    "strategy": "page_info", "jsonPath": f"{STARS}.pageInfo.endCursor",
    "terminateOnJsonPath": f"{STARS}.pageInfo.hasNextPage",
}  # fmt: skip


def method(cursor: dict[str, Any] | None = None, query: str = QUERY) -> Method:
    graphql = {"url": "https://api.example/graphql", "query": query, "cursor": cursor or {}}
    names = ("owner", "repo", "limit")
    return Method(
        "list", "POST", "/stars", (), Server("https://api.example", {}),
        tuple(Parameter(name, name, "query", name != "limit", {}) for name in names),
        None, Response("200", "application/json", None, ("data", "repository", "stars", "nodes")),
        CloudSettings(), "", "", graphql,
    )  # fmt: skip


def build(wanted: Method, **values: Any) -> ApiRequest:
    return build_request(wanted, Schemas({}, "d"), {"owner": "o", "repo": "r", **values})


def query_of(request: ApiRequest | None) -> str:
    assert request is not None and request.body is not None
    return str(json.loads(request.body)["query"])


def reply(cursor: str | None, more: bool, *logins: str) -> dict[str, Any]:
    info = {"endCursor": cursor, "hasNextPage": more}
    nodes = [{"login": each} for each in logins]
    return {"data": {"repository": {"stars": {"pageInfo": info, "nodes": nodes}}}}


def test_a_query_is_posted_to_the_documents_address() -> None:
    request = build(method(), limit=5)
    assert (request.verb, request.url) == ("POST", "https://api.example/graphql")
    assert 'repository(owner: "o", name: "r")' in query_of(request)
    assert "stars(first: 5)" in query_of(request)
    assert "stars(first: 100)" in query_of(build(method()))


def test_pages_follow_until_the_reply_says_that_there_are_no_more() -> None:
    wanted = method(PAGE_INFO)
    first = build(wanted)
    second = next_request(wanted, first, {}, reply('c"1', True, "a"))
    assert 'first: 100, after: "c\\"1")' in query_of(second)
    assert second is not None and 'owner: "o"' in query_of(second)
    assert next_request(wanted, second, {}, reply("c2", False, "b")) is None
    assert next_request(wanted, second, {}, reply(None, True, "b")) is None
    with pytest.raises(TidegateError, match="without end"):
        next_request(wanted, second, {}, reply('c"1', True, "a"))


def test_a_key_of_the_last_row_begins_the_next_page() -> None:
    cursor = {
        "strategy": "keyset", "jsonPath": f"{STARS}.nodes[-1:].login",
        "format": ', AND login_gt: "{{ .value }}"',
    }  # fmt: skip
    wanted = method(cursor)
    second = next_request(wanted, build(wanted), {}, reply(None, False, "a", "b"))
    assert 'first: 100, AND login_gt: "b")' in query_of(second)
    assert next_request(wanted, build(wanted), {}, reply(None, False)) is None


def test_an_offset_counts_the_rows_until_a_page_is_short() -> None:
    cursor = {
        "strategy": "offset", "jsonPath": f"{STARS}.nodes", "pageSize": 2,
        "format": ", offset: {{ .value }}",
    }  # fmt: skip
    wanted = method(cursor)
    second = next_request(wanted, build(wanted), {}, reply(None, True, "a", "b"))
    assert second is not None and "first: 100, offset: 2)" in query_of(second)
    third = next_request(wanted, second, {}, reply(None, True, "c", "d"))
    assert third is not None and "offset: 4" in query_of(third)
    assert next_request(wanted, third, {}, reply(None, True, "e")) is None


def test_a_reply_with_errors_is_an_error_although_it_has_rows() -> None:
    content = json.dumps(reply(None, False, "a") | {"errors": [{"message": "no\nright"}]})
    with pytest.raises(TidegateError, match="no right") as failure:
        read_page(method(), Schemas({}, "d"), content.encode(), "api.example")
    assert failure.value.code is Code.PROVIDER_FAILED
    page = read_page(method(), Schemas({}, "d"), json.dumps(reply(None, False, "a")).encode(), "h")
    assert list(page.rows) == [{"login": "a"}]


@pytest.mark.parametrize(
    "value", ["1) { id } x(first: 1", "1 2", '"a"', "{a: 1}", "[1]", "#", "\ue0000\ue001", "$a"]
)
def test_a_value_outside_of_a_text_is_a_number_or_a_name(value: str) -> None:
    with pytest.raises(TidegateError) as refusal:
        build(method(), limit=value)
    assert refusal.value.code is Code.ARGUMENT_INVALID


def strings(query: str) -> list[str]:
    query = query.replace('# the stars of "one" repository', "")
    return [json.loads(each) for each in re.findall(r'"(?:[^"\\]|\\.)*"', query, re.DOTALL)]


@given(st.text(), st.text(min_size=1))
def test_whatever_is_in_a_text_the_query_stays_the_documents(owner: str, cursor: str) -> None:
    wanted = method(PAGE_INFO)
    try:
        request = build(wanted, owner=owner)
        following = next_request(wanted, request, {}, reply(cursor, True, "a"))
        found = strings(query_of(following))
    except TidegateError as refusal:
        assert refusal.code is Code.ARGUMENT_INVALID
        return
    assert found == [owner, "r", cursor]


def test_values_of_another_kind_keep_their_place() -> None:
    request = build(method(), owner=7, limit=0)
    assert isinstance(request, GraphQlRequest)
    assert 'owner: "7"' in query_of(request) and "first: 100" in query_of(request)


def test_a_path_reads_members_and_lists() -> None:
    body = {"a": [{"b": 1}, {"b": 2}], "x-y": {"c": 3}}
    assert find_at(body, "$.a[*].b") == [1, 2]
    assert find_at(body, "$.a[0].b") == [1]
    assert find_at(body, "$.a[-1:].b") == [2]
    assert find_at(body, "$.a[-1].b") == [2]
    assert find_at(body, '$["x-y"].c') == [3]
    assert find_at(body, "$.a[5].b") == find_at(body, "$.a[-5].b") == find_at(body, "$.?") == []


def test_a_cursor_that_is_not_known_is_said() -> None:
    assert problem_of_graphql({"query": "x", "cursor": {"strategy": "guess"}}) is not None
    assert problem_of_graphql({"cursor": {}}) is not None
    assert problem_of_graphql({"query": "x"}) is None
