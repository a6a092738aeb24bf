"""Methods that are GraphQL: the request of each page, from the query's template in the document.

`x-stackQL-graphQL` of an operation holds a Go template of the query, and the cursor: where a reply
says what comes next, and how the next query says it. Values of a statement are filled in so that
none can add to the query: in a string they are escaped, elsewhere only a number, a boolean or a
name is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import ApiRequest, Method
from tidegate.products.cloud.documents.tree import mapping, sequence
from tidegate.products.cloud.http.body_formats import plain_body
from tidegate.products.cloud.http.go_template import render_template
from tidegate.secrets.redaction import mask_shapes

_MARK: Final = re.compile("\ue000(\\d+)\ue001")
"""Replaces a value while a template is rendered; of Unicode's private characters."""
_PRIVATE: Final = re.compile("[\ue000\ue001]")
_TOKEN: Final = re.compile(
    r'"""(?:\\"""|[^"]|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|#[^\n]*|[^"#]+|.', re.DOTALL
)
_BARE: Final = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?|[A-Za-z_][A-Za-z0-9_]{0,99}")
_STEP: Final = re.compile(r"\.([A-Za-z_@$][\w@$-]*)|\[(-?\d{1,6})(:)?\]|\[\*\]|\[\"([^\"\]]+)\"\]")
_DEFAULT_FORMAT: Final = ', after: "{{ .value }}"'
_STRATEGIES: Final = ("", "cursor_after", "after", "page_info", "keyset", "offset")
_QUOTED: Final = 300


class GraphQlRequest(ApiRequest, frozen=True):
    """A request, and what the next page's needs: the values that it was made from, and for
    `offset` how many rows came before."""

    values: tuple[tuple[str, Any], ...] = ()
    offset: int = 0


def problem_of_graphql(graphql: Mapping[str, Any]) -> str | None:
    """Why a method's `x-stackQL-graphQL` cannot be used; None if it can."""
    if not isinstance(graphql.get("query"), str):
        return "its GraphQL has no `query`"
    strategy = str(mapping(graphql.get("cursor")).get("strategy") or "")
    if strategy not in _STRATEGIES:
        return f"its GraphQL has the cursor `{strategy[:40]}`, which is not known"
    return None


def first_request(method: Method, url: str, values: Mapping[str, Any]) -> GraphQlRequest:
    """The request of the first page. `url` is the operation's own, for a document that names none;
    `values` are those of the statement by the names on the wire.

    Raises: TidegateError ARGUMENT_INVALID for a value that would add to the query;
        DOCUMENT_INVALID.
    """
    graphql = mapping(method.graphql)
    if (problem := problem_of_graphql(graphql)) is not None:
        raise TidegateError(
            Code.DOCUMENT_INVALID, f"The method {method.name} has a fault: {problem}."
        )
    return _request(method, str(graphql.get("url") or url), dict(values), None, 0)


def next_page(method: Method, request: GraphQlRequest, body: Any) -> GraphQlRequest | None:
    """The request after that whose reply had the values `body`; None: it was the last.

    Raises: as `first_request`.
    """
    cursor = mapping(mapping(method.graphql).get("cursor"))
    strategy, path = str(cursor.get("strategy") or ""), str(cursor.get("jsonPath") or "")
    ends = cursor.get("terminateOnJsonPath")
    if isinstance(ends, str) and ends and _one(find_at(body, ends)) is not True:
        return None
    found = find_at(body, path) if path else []
    if strategy == "offset":
        count = sum(len(each) if isinstance(each, list) else 1 for each in found)  # pyright: ignore[reportUnknownArgumentType]
        size = cursor.get("pageSize")
        if not count or (isinstance(size, int) and count < size):
            return None
        offset = request.offset + count
        return _request(method, request.url, dict(request.values), offset, offset)
    value = _one(found)
    if value is None or value == "" or isinstance(value, (dict, list, bool)):
        return None
    return _request(method, request.url, dict(request.values), value, 0)


def check_errors(method: Method, body: Any, host: str) -> None:
    """Refuse a reply that says what went wrong: with the status 200 it may hold a part of the rows.

    Raises: TidegateError PROVIDER_FAILED (GraphQL specification, section 7.1.2).
    """
    errors = sequence(mapping(body).get("errors"))
    if errors:
        message = mapping(errors[0]).get("message")
        text = mask_shapes(" ".join(str(message or "no reason is given").split()))[:_QUOTED]
        raise TidegateError(
            Code.PROVIDER_FAILED,
            f"{host} answered {method.name} with errors: {text}",
            hint="Correct the statement's values, or the rights of the credential.",
            details={"http_status": 200, "retryable": False},
        )


def find_at(body: Any, path: str) -> list[Any]:
    """The values at a path such as `$.data.list[-1:].name`; none where it leads nowhere."""
    found: list[Any] = [body]
    rest = path.removeprefix("$")
    at = 0
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            return []
        at = step.end()
        found = [inner for each in found for inner in _inner(each, step)]
    return found


def _inner(value: Any, step: re.Match[str]) -> list[Any]:
    name = step[1] or step[4]
    if name is not None:
        return [value[name]] if isinstance(value, dict) and name in value else []  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, list):
        return []
    members = cast("list[Any]", value)
    if step[2] is None:
        return members
    index = int(step[2])
    if step[3]:
        return members[index:]
    return members[index : index + 1 or None] if -len(members) <= index else []


def _one(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else None


def _request(
    method: Method, url: str, values: dict[str, Any], cursor: Any, offset: int
) -> GraphQlRequest:
    graphql = mapping(method.graphql)
    marked: list[Any] = []

    def mark(value: Any) -> Any:
        # What counts as false for a template's `if` stays so, and holds nothing of a caller's.
        if value is None or value in ("", 0, False):
            return value
        marked.append(value)
        return f"\ue000{len(marked) - 1}\ue001"

    data = {name: mark(value) for name, value in values.items()}
    data["cursor"] = ""
    what = f"the query of {method.name}"
    if cursor is not None:
        template = str(mapping(graphql.get("cursor")).get("format") or _DEFAULT_FORMAT)
        if not isinstance(cursor, str):
            template = template.replace('"{{ .value }}"', "{{ .value }}")
        data["cursor"] = render_template(template, {"value": mark(cursor)}, what)
    text = render_template(str(graphql.get("query")), data, what)
    query = "".join(_filled(method, token[0], marked) for token in _TOKEN.finditer(text))
    verb = str(graphql.get("httpVerb") or "POST").upper()
    return GraphQlRequest(
        verb if verb in ("GET", "POST") else "POST",
        url,
        (("Content-Type", "application/json"), ("Accept", "application/json")),
        plain_body(json.dumps({"query": query}, ensure_ascii=False)),
        False,
        tuple(values.items()),
        offset,
    )


def _filled(method: Method, token: str, marked: list[Any]) -> str:
    """A string, a comment or the text between them, with its values."""

    def value_of(match: re.Match[str]) -> str:
        at = int(match[1])
        value = marked[at] if at < len(marked) else ""
        text = value if isinstance(value, str) else json.dumps(value)
        if _PRIVATE.search(text):
            raise _refused(method, "holds a private character")
        if token.startswith('"""'):
            if '"' in text or "\\" in text:
                raise _refused(method, "has a quote in a text of several lines")
            return text
        if token.startswith('"'):
            return json.dumps(text, ensure_ascii=False)[1:-1]
        if token.startswith("#") or not _BARE.fullmatch(text):
            raise _refused(method, "is where only a number, a boolean or a name may")
        return text

    return _MARK.sub(value_of, token)


def _refused(method: Method, problem: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"The method {method.name} cannot be called: a value {problem}.",
        hint="SHOW METHODS lists what each method requires.",
    )
