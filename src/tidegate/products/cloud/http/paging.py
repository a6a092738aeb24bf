"""What comes after a page: the request of the next one, or the end.

A document says where the token is. Where it says nothing, usual forms are followed, so that a list
is whole: the `Link` header (RFC 8288), `nextLink` or `@odata.nextLink` in the body, and a token
beside the rows that a parameter of the method takes (`usual_pages`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import Method, Pagination, Parameter
from tidegate.products.cloud.documents.schema import parse_object_key
from tidegate.products.cloud.http.graphql import GraphQlRequest, next_page
from tidegate.products.cloud.http.requests import ApiRequest, sends_form
from tidegate.products.cloud.http.usual_pages import AskedPage, list_of, read_usual_pages

_LINK: Final = re.compile(r"<([^<>]*)>((?:\s*;\s*[\w*]+\s*=\s*(?:\"[^\"]*\"|[^\s;,\"]*))*)")
_NO_RESULTS: Final = re.compile(r";\s*results\s*=\s*\"?false\b", re.IGNORECASE)
"""A link says that its page is empty."""
_REL: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,]*))", re.IGNORECASE)
_PLAIN: Final = "!$'()*+,;=:@/?-._~%[]|\\^`{}\"<>"
_NEXT_LINKS: Final = ("nextLink", "@odata.nextLink", "odata.nextLink")
_GOOGLE: Final = ("nextPageToken", "pageToken", "page_token")
"""A field of the body, and the parameters that take its value; it may be one of its own name."""


class Following(NamedTuple):
    """The next `request`; None: the page was the last, or with `says_more` the next cannot be asked
    for. `is_counted`: numbers alone say that there is one. `is_guessed`: it may be this one again,
    which `is_same_list` tells."""

    request: ApiRequest | None
    says_more: bool = False
    is_counted: bool = False
    is_guessed: bool = False


Resolve = Callable[[str, str], str]
"""The whole address for one that a reply names, and the address that the reply came from. Raises
ValueError for what is no address."""


def _join(address: str, url: str) -> str:
    return urljoin(url, address)


def find_following(
    method: Method,
    request: ApiRequest,
    headers: Mapping[str, str],
    body: Any,
    resolve: Resolve = _join,
    *,
    is_first: bool = True,
    is_counted: bool = True,
) -> Following:
    """What follows the page that `request` gave.

    `headers` have names in lower case; `body` is the response's, before its transform. `is_first`
    and `is_counted` are as `AskedPage` has them.

    Raises: TidegateError PROVIDER_REPLY: the next page is on another host, or is this one again,
        or has no address that can be read.
    """
    pagination = method.settings.pagination
    asked = AskedPage(request.url, is_first, is_counted, _members(method, body))
    if isinstance(request, GraphQlRequest):
        following = Following(next_page(method, request, body))
    elif pagination is None:
        following = _usual(method, request, headers, body, resolve, asked)
    else:
        following = Following(_declared(pagination, request, headers, body, resolve))
    if following.request == request and asked.members == [] and pagination is None:
        return Following(None)  # after the last page some name an empty one, and that again
    if following.request == request:
        raise TidegateError(
            Code.PROVIDER_REPLY,
            f"{urlsplit(request.url).hostname} names the same page as the next one, without end.",
        )
    if following.request is None and not following.says_more:
        # What a document says of pages comes first; it has no use for totals.
        counts = pagination is None and not isinstance(request, GraphQlRequest)
        pages = read_usual_pages(method, body, headers, asked, counts=counts)
        return following._replace(says_more=pages.says_more)
    return following


def is_same_list(method: Method, body: Any, other: Any) -> bool:
    """Whether two replies hold the same members."""
    members = _members(method, body)
    return members is not None and members == _members(method, other)


def _members(method: Method, body: Any) -> list[Any] | None:
    return list_of(body, None if method.response.transform else method.response.object_key)


def _declared(
    pagination: Pagination,
    request: ApiRequest,
    headers: Mapping[str, str],
    body: Any,
    resolve: Resolve,
) -> ApiRequest | None:
    if pagination.algorithm == "page_number":
        page, last = _find(body, pagination.response_key), _find(body, pagination.end_key)
        if not isinstance(page, int) or not isinstance(last, int) or page >= last:
            return None
        return _with_query(request, pagination.request_key, str(page + 1))
    if pagination.response_place == "header":
        value = headers.get(pagination.response_key.lower())
        is_linked = value is not None and (
            pagination.response_key.lower() == "link" or _LINK.match(value.strip())
        )
        if is_linked:
            # An address, whatever the document says of the request.
            following = _linked(value or "")
            return None if following is None else _at(request, following, resolve)
    else:
        value = _find(body, pagination.response_key)
    if value is None or value == "":
        return None
    if pagination.request_place == "request":
        return _at(request, str(value), resolve)
    if pagination.request_place == "query":
        text, key = str(value), pagination.request_key
        return (_with_plain_query if pagination.is_plain else _with_query)(request, key, text)
    if pagination.request_place == "header":
        return _with_header(request, pagination.request_key, str(value))
    return _with_field(request, pagination.request_key, value)


def _usual(
    method: Method,
    request: ApiRequest,
    headers: Mapping[str, str],
    body: Any,
    resolve: Resolve,
    asked: AskedPage,
) -> Following:
    if method.http_verb not in ("GET", "HEAD", "POST"):
        return Following(None)
    reads = method.http_verb != "POST"
    if reads and (linked := _linked(headers.get("link", ""))) is not None:
        return Following(_at(request, linked, resolve))
    entries = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    token = entries.get(_GOOGLE[0])
    if reads and isinstance(token, str) and token:
        named = {each.wire_name for each in method.parameters if each.place == "query"}
        taker = next((each for each in (*_GOOGLE[1:], _GOOGLE[0]) if each in named), _GOOGLE[1])
        return Following(_with_query(request, taker, token))
    for name in _NEXT_LINKS:
        link = entries.get(name)
        if reads and isinstance(link, str) and link:
            return Following(_at(request, link, resolve))
    pages = read_usual_pages(method, body, headers, asked)
    if pages.address is not None:
        return Following(_at(request, pages.address, resolve))
    following = request
    for parameter, value in pages.values:
        following = _with_value(method, following, parameter, value)
    return Following(
        following if pages.values else None,
        pages.says_more,
        pages.is_counted,
        pages.is_guessed,
    )


def _with_value(
    method: Method, request: ApiRequest, parameter: Parameter, value: Any
) -> ApiRequest:
    """The request with another value of one parameter."""
    name = parameter.wire_name
    if parameter.place == "header":
        return _with_header(request, name, str(value))
    # AWS's query protocol has parameters of the query in a form.
    if parameter.place == "body" or sends_form(method):
        return _with_field(request, name, value)
    return _with_query(request, name, str(value))


def _linked(header: str) -> str | None:
    """The address of the relation `next` in a `Link` header."""
    for match in _LINK.finditer(header):
        relation = _REL.search(match[2])
        if relation is None or "next" not in (relation[1] or relation[2] or "").lower().split():
            continue
        return None if _NO_RESULTS.search(match[2]) else match[1]
    return None


def _at(request: ApiRequest, address: str, resolve: Resolve) -> ApiRequest:
    """The request at another address of the same host: a credential never goes to another."""
    here = urlsplit(request.url)
    try:
        url = resolve(address, request.url)
        there = urlsplit(url)
    except ValueError:
        raise TidegateError(
            Code.PROVIDER_REPLY,
            f"{here.hostname} names the next page by what is no address: {address[:120]!r}.",
        ) from None
    if (here.scheme, here.netloc) != (there.scheme, there.netloc):
        raise TidegateError(
            Code.PROVIDER_REPLY,
            f"{here.hostname} says that the next page is on another host, {there.hostname}, which "
            "is not asked.",
        )
    return _changed(request, url, request.headers, request.body)


def _with_header(request: ApiRequest, name: str, value: str) -> ApiRequest:
    kept = tuple(each for each in request.headers if each[0].lower() != name.lower())
    return _changed(request, request.url, (*kept, (name, value)), request.body)


def _with_query(request: ApiRequest, name: str, value: str) -> ApiRequest:
    parts = urlsplit(request.url)
    pairs = [each for each in parse_qsl(parts.query, keep_blank_values=True) if each[0] != name]
    query = urlencode([*pairs, (name, value)], quote_via=quote)
    return _changed(request, parts._replace(query=query).geturl(), request.headers, request.body)


def _with_plain_query(request: ApiRequest, name: str, value: str) -> ApiRequest:
    """As `_with_query`, and the value as it is, less what would end it."""
    parts = urlsplit(request.url)
    kept = [each for each in parts.query.split("&") if each and each.partition("=")[0] != name]
    query = "&".join([*kept, f"{name}={quote(value, safe=_PLAIN)}"])
    return _changed(request, parts._replace(query=query).geturl(), request.headers, request.body)


def _with_field(request: ApiRequest, name: str, value: Any) -> ApiRequest:
    """The request with a field of its body, which is JSON or a form."""
    import msgspec

    content = request.body or b"{}"
    if content[:1] == b"{":
        fields: dict[str, Any] = msgspec.json.decode(content)
        fields[name] = value
        return _changed(request, request.url, request.headers, msgspec.json.encode(fields))
    pairs = [each for each in parse_qsl(content.decode(), True) if each[0] != name]
    body = urlencode([*pairs, (name, str(value))]).encode()
    return _changed(request, request.url, request.headers, body)


def _changed(
    request: ApiRequest, url: str, headers: tuple[tuple[str, str], ...], body: bytes | None
) -> ApiRequest:
    return ApiRequest(request.verb, url, headers, body, request.has_free_host)


def _find(body: Any, key: str) -> Any:
    """The value at a path such as `$.links.next` or `/*/NextToken`, or of a field; None if it is
    not there."""
    if key.startswith("@"):  # `@odata.nextLink` is a field, and no path
        return cast("dict[str, Any]", body).get(key) if isinstance(body, dict) else None
    found: list[Any] = [body]
    for step in parse_object_key(key, "the pagination"):
        inner: list[Any] = []
        for each in found:
            if isinstance(each, dict):
                entries = cast("dict[str, Any]", each)
                inner += entries.values() if step == "*" else [entries.get(step)]
        found = inner
    return next((each for each in found if each is not None), None)
