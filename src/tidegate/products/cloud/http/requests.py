"""Builds the HTTP request of a method from SQL values.

An agent chooses the values, so no value may lead the request, and the credential that it will
carry, to another host, path or header than the document means: a variable of the server is a host
label, a parameter of the path one encoded segment, a header one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import (
    BODY_PREFIX,
    WHOLE_BODY,
    Method,
    Parameter,
    Resource,
    Schema,
    SqlVerb,
)
from tidegate.products.cloud.documents.model import ApiRequest as ApiRequest
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.documents.schema import Schemas
from tidegate.products.cloud.documents.template_functions import to_json
from tidegate.products.cloud.documents.url_templates import fits
from tidegate.products.cloud.http.body_formats import multipart_body, plain_body, xml_body
from tidegate.products.cloud.http.go_template import render_template
from tidegate.products.cloud.http.graphql import first_request

_VARIABLE: Final = re.compile(r"\{([^{}]+)\}")
_URL: Final = re.compile(r"(?P<scheme>[^:/]+)://(?P<host>[^/]*)(?P<path>/.*)?", re.DOTALL)
_HOST_PART: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,250}[A-Za-z0-9])?")
_HOST_AND_PORT: Final = re.compile(rf"{_HOST_PART.pattern}(?::\d{{1,5}})?")
_LONGEST_HOST: Final = 253
_LONGEST_LABEL: Final = 63
"""Characters of a host's name, and between two of its points (RFC 1035)."""
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_OWN_HEADERS: Final = frozenset({
    "authorization", "connection", "content-length", "cookie", "host", "proxy-authorization", "te",
    "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
"""Headers that say whose request it is, where it ends or where it goes."""
_FORM: Final = "application/x-www-form-urlencoded"
_AWS_JSON_TARGET: Final = "X-Amz-Target"
_DESIRED_STATE: Final = "DesiredState"
_STRING_ONLY: Final = "x-stackQL-stringOnly"
"""A field whose value is text, even if it is that of an object."""
_SCALARS: Final = frozenset({"number", "integer", "boolean"})
_BEYOND_64_BITS: Final = 2.0**63


def no_operation(path: str) -> str:
    """What is said where no method of a resource can be used."""
    return (
        "cannot find matching operation, possible causes include missing required parameters or"
        " an unsupported method for the resource, to find required parameters for supported"
        f" methods run SHOW METHODS IN {path}"
    )


class PlainText(str):
    """A value that a statement has in `string(…)`: it is sent as text, whatever it looks like."""

    __slots__ = ()


def find_method(resource: Resource, verb: SqlVerb, given: Iterable[str]) -> Method | None:
    """The first method of an SQL verb whose required parameters are all in `given`."""
    names = {folded(each) for each in given}
    for name in resource.verbs.get(verb, ()):
        method = resource.methods[name]
        known = spellings(method)
        if all(names & known[at] for at, each in enumerate(method.parameters) if each.is_required):
            return method
    return None


def spellings(method: Method) -> list[frozenset[str]]:
    """The names by which a statement may give each of a method's parameters, folded: its name, and
    its name on the wire, with the prefix of a body's columns too, where that is no other
    parameter's name."""
    taken = {folded(each.name) for each in method.parameters}
    return [
        frozenset({folded(each.name), *(_wire_spellings(each) - taken)})
        for each in method.parameters
    ]


def _wire_spellings(parameter: Parameter) -> set[str]:
    wire = folded(parameter.wire_name)
    prefixed = parameter.place == "body" and parameter.name.startswith(BODY_PREFIX)
    return {wire, f"{BODY_PREFIX}{wire}"} if prefixed else {wire}


def build_request(method: Method, schemas: Schemas, values: Mapping[str, Any]) -> ApiRequest:
    """The request of `method` with `values`, SQL values by the names of parameters.

    Raises:
        TidegateError: ARGUMENT_INVALID: a parameter is missing, not one of the method, NULL where
            it is required, or has a value that does not fit its place.
    """
    try:
        return _build(method, schemas, values)
    except UnicodeEncodeError:
        raise _invalid(method, "a value holds half of a surrogate pair") from None


def _build(method: Method, schemas: Schemas, values: Mapping[str, Any]) -> ApiRequest:
    given = _assign(method, schemas, values)
    base, has_free_host = _server_url(method, given)
    if method.graphql is not None:
        named = {name: value for (name, _), value in given.items()}
        return first_request(method, f"{base.rstrip('/')}{method.path}", named)
    path = _VARIABLE.sub(lambda match: _segment(match[1], given), method.path)
    if any(each.wire_name == _AWS_JSON_TARGET for each in method.parameters):
        # In the protocols awsJson1_0 and awsJson1_1 of Smithy the header names the operation. The
        # path in the document only keeps operations apart.
        path = "/"
    query = list(_query(method, schemas, given))
    headers = list(_headers(method, given))
    cookies = [
        f"{name}={quote(_text(value), safe='')}"
        for (name, place), value in given.items()
        if place == "cookie"
    ]
    if cookies:
        headers.append(("Cookie", "; ".join(cookies)))
    media_type, body = _body(method, schemas, given)
    verb = method.http_verb
    if sends_form(method):
        verb, media_type, body = "POST", f"{_FORM}; charset=utf-8", urlencode(query).encode()
        query = []
    if body is not None:
        headers.append(("Content-Type", media_type))
    url = base.rstrip("/") + (path if path.startswith("/") else f"/{path}")
    if query:
        url += f"?{urlencode(query, quote_via=quote)}"
    return ApiRequest(verb, url, tuple(headers), body, has_free_host)


def sends_form(method: Method) -> bool:
    """Whether parameters of the query are sent in a form: AWS's query protocol."""
    translation = method.settings.request_translation
    return translation == "get_query_to_post_form_utf_8" and method.http_verb == "GET"


def signing_region(method: Method, values: Mapping[str, Any]) -> str:
    """The region that a request of `method` is signed for; empty: the method has none."""
    known = {folded(name): value for name, value in values.items()}
    server = method.server
    default = server.environment_value("region") or server.variables.get("region", "")
    return _text(known.get("region") or default)


_Given = dict[tuple[str, str], Any]
"""Values by the name on the wire and the place."""


def _assign(method: Method, schemas: Schemas, values: Mapping[str, Any]) -> _Given:
    """Each value to the parameters that it names. One name may mean two places, such as a
    region of the server and of the body."""
    given: _Given = {}
    waiting = {folded(name): (name, value) for name, value in values.items()}
    used: set[str] = set()
    for parameter, names in zip(method.parameters, spellings(method), strict=True):
        found = names & waiting.keys()
        used |= found
        values_given = [waiting[each][1] for each in found if waiting[each][1] is not None]
        if values_given:
            _check_exact(method, schemas, parameter, values_given[0])
            if parameter.pattern:
                _check_pattern(method, parameter, _text(values_given[0]))
            given[parameter.wire_name, parameter.place] = values_given[0]
        elif parameter.is_required:
            problem = "must not be NULL" if found else "is missing"
            raise _invalid(method, f"the parameter {parameter.name} {problem}")
    for spelling in waiting.keys() - used:
        raise _invalid(method, f"it has no parameter {waiting[spelling][0][:80]}")
    return given


def _check_exact(method: Method, schemas: Schemas, parameter: Parameter, value: Any) -> None:
    """Refuse a whole number beyond 64 bits, of which SQLite has kept the first digits alone: it
    would name another thing than the statement does."""
    if (
        isinstance(value, float)
        and abs(value) >= _BEYOND_64_BITS
        and schemas.kind(parameter.schema) != "number"
    ):
        raise _invalid(
            method,
            f"the parameter {parameter.name} is a number beyond 64 bits, which SQL has not kept"
            " whole; write it as text, in quotes",
        )


def _check_pattern(method: Method, parameter: Parameter, value: str) -> None:
    """Refuse a value that is not what the address's template lets it be."""
    try:
        is_fitting = fits(parameter.pattern, value)
    except ValueError as error:
        raise TidegateError(
            Code.DOCUMENT_INVALID,
            f"{method.name} is not called: its document bounds {parameter.name} by the pattern"
            f" `{parameter.pattern[:80]}`, which cannot be used: {error}.",
        ) from None
    if not is_fitting:
        raise _invalid(
            method,
            f"{parameter.name} must be as the pattern `{parameter.pattern[:80]}` of its document"
            f" says, and `{value[:80]}` is not",
        )


def _server_url(method: Method, given: _Given) -> tuple[str, bool]:
    """The server's address, and whether a value alone decides the host."""
    parts = _URL.fullmatch(method.server.url)
    if parts is None:
        raise _invalid(method, f"its server `{method.server.url[:80]}` has no address")

    server = method.server

    def value(name: str) -> str:
        usual = server.environment_value(name) or server.variables.get(name, "")
        return _text(given.get((name, "server"), usual))

    def scheme(match: re.Match[str]) -> str:
        if value(match[1]) not in ("http", "https"):
            raise _invalid(method, f"{match[1]} must be http or https")
        return value(match[1])

    whole = _VARIABLE.fullmatch(parts["host"])
    # What the environment says, the operator has said.
    is_free = whole is not None and (
        (whole[1], "server") in given or not server.environment_value(whole[1])
    )

    def host(match: re.Match[str]) -> str:
        fits = _HOST_AND_PORT if whole else _HOST_PART
        if not fits.fullmatch(value(match[1])) or ".." in value(match[1]):
            raise _invalid(method, f"{match[1]} must be a part of a host's name")
        return value(match[1])

    path = _VARIABLE.sub(lambda match: _encoded(match[1], value(match[1])), parts["path"] or "")
    name = _VARIABLE.sub(host, parts["host"])
    labels = name.rpartition("@")[2].partition(":")[0].split(".")
    if len(name) > _LONGEST_HOST or max(map(len, labels)) > _LONGEST_LABEL:
        raise _invalid(method, "its server's host is longer than a name of a host may be")
    return f"{_VARIABLE.sub(scheme, parts['scheme'])}://{name}{path}", is_free


def _segment(name: str, given: _Given) -> str:
    for place in ("path", "server"):
        if (name, place) in given:
            return _encoded(name, _text(given[name, place]))
    raise TidegateError(Code.ARGUMENT_INVALID, f"The parameter {name} must not be NULL.")


def _encoded(name: str, text: str) -> str:
    """A value as one segment of a path. `.` and `..` would be taken out on the way."""
    if text in ("", ".", ".."):
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"The parameter {name} must not be empty, `.` or `..`."
        )
    return quote(text, safe="")


def _headers(method: Method, given: _Given) -> Iterator[tuple[str, str]]:
    """Those that are given, and those for which the document has a value."""
    for parameter in method.parameters:
        name = parameter.wire_name
        if parameter.place != "header" or name.casefold() == "content-type":
            continue
        default = parameter.schema.get("default")
        if (name, "header") not in given and default is None:
            continue
        text = _text(given.get((name, "header"), default))
        if name.casefold() in _OWN_HEADERS or not _HEADER_VALUE.fullmatch(text):
            raise _invalid(method, f"{parameter.name} is no header that a value may set so")
        yield name, text


def _query(method: Method, schemas: Schemas, given: _Given) -> Iterator[tuple[str, str]]:
    drops = method.settings.request_translation == "drop_double_underscore_params"
    for name, value in method.fixed_query:
        if not (drops and name.startswith("__")):
            yield (
                name,
                _VARIABLE.sub(lambda match: _text(given.get((match[1], "query"), "")), value),
            )
    for parameter in method.parameters:
        if parameter.place != "query" or (parameter.wire_name, "query") not in given:
            continue
        name = parameter.wire_name
        if drops and name.startswith("__"):
            continue
        value = typed(given[name, "query"], parameter.schema, schemas)
        if method.settings.query_transposition:
            yield from _transposed(name, value)
        else:
            yield from _query_pairs(parameter, value)


def _query_pairs(parameter: Parameter, value: Any) -> Iterator[tuple[str, str]]:
    """OpenAPI 3.1, section 4.8.12.3: `form` is the default style, and explodes."""
    name = parameter.wire_name
    if isinstance(value, list):
        texts = [_text(each) for each in cast("list[Any]", value)]
        if parameter.explodes and parameter.style in ("", "form"):
            yield from ((name, text) for text in texts)
        else:
            joint = {"spaceDelimited": " ", "pipeDelimited": "|"}.get(parameter.style, ",")
            yield name, joint.join(texts)
    elif isinstance(value, dict):
        for key, each in cast("dict[str, Any]", value).items():
            yield (f"{name}[{key}]" if parameter.style == "deepObject" else key), _text(each)
    else:
        yield name, _text(value)


def _transposed(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """AWS's canonical form of lists and objects: `Tags.1.Key`."""
    if isinstance(value, dict):
        for key, each in cast("dict[str, Any]", value).items():
            yield from _transposed(f"{name}.{key}", each)
    elif isinstance(value, list):
        for at, each in enumerate(cast("list[Any]", value), start=1):
            yield from _transposed(f"{name}.{at}", each)
    else:
        yield name, _text(value)


def _body(method: Method, schemas: Schemas, given: _Given) -> tuple[str, bytes | None]:
    """The media type and the content; None: the request has none."""
    body = method.body
    if body is None:
        return "", None
    fields: dict[str, Any] = {
        each.wire_name: _field(method, each, given[each.wire_name, "body"], schemas)
        for each in method.parameters
        if (each.wire_name, "body") in given
    }
    if not fields and not body.base and not body.default:
        return body.media_type, b"{}" if body.is_required and "json" in body.media_type else None
    if method.settings.body_names == "naive_DesiredState":
        fields = {_DESIRED_STATE: to_json(fields)}
    whole: Any = _merged(_json_of(method, body.base), fields) if body.base else fields
    if not fields and body.default:
        whole = _json_of(method, body.default)
    if body.transform is not None:
        text = render_template(body.transform.template, whole, f"the body of {method.name}")
        return body.media_type, text.encode()
    if "json" in body.media_type:
        return body.media_type, to_json(whole).encode()
    if body.media_type == _FORM:
        return _FORM, urlencode(
            [pair for name in whole for pair in _transposed(name, whole[name])]
        ).encode()
    if body.media_type.endswith(("/xml", "+xml")):
        return body.media_type, xml_body(whole, body.schema, schemas, body.xml)
    if body.media_type == "multipart/form-data":
        return multipart_body(whole)
    if WHOLE_BODY in fields:
        return body.media_type, plain_body(_text(fields[WHOLE_BODY]))
    raise _invalid(method, f"bodies of the type {body.media_type[:60]} cannot be sent yet")


def _field(method: Method, parameter: Parameter, value: Any, schemas: Schemas) -> Any:
    """A value as a field of the body has it. Raises: TidegateError ARGUMENT_INVALID for one that
    its schema cannot have."""
    made = value if isinstance(value, PlainText) else typed(value, parameter.schema, schemas)
    kinds = schemas.kinds(parameter.schema)
    is_broken = isinstance(made, float) and not made.is_integer() and kinds <= {"integer"}
    if kinds and (is_broken or (isinstance(made, str) and kinds <= _SCALARS)):
        raise _invalid(
            method,
            f"request body key '{parameter.wire_name}': value '{str(value)[:80]}' cannot be coerced"
            f" to schema type '{schemas.kind(parameter.schema)}'",
        )
    return str(made) if isinstance(made, PlainText) else made


def _json_of(method: Method, text: str) -> Any:
    """A body that a document has as text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise TidegateError(
            Code.DOCUMENT_INVALID,
            f"The method {method.name} has a fault: the body `{text[:60]}` is no JSON.",
        ) from None


def _merged(below: Any, above: Any) -> Any:
    """`above` over `below`, objects field by field."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    merged = dict(cast("dict[str, Any]", below))
    for key, value in cast("dict[str, Any]", above).items():
        merged[key] = _merged(merged[key], value) if key in merged else value
    return merged


def typed(value: Any, schema: Schema, schemas: Schemas) -> Any:
    """A value of SQL as its schema has it: SQL has no booleans, lists and objects of its own.

    A value that does not fit stays what it is: the API explains it better than a guess of ours.
    """
    kind = "string" if schema.get(_STRING_ONLY) is True else schemas.kind(schema)
    if kind == "boolean" and value in (0, 1):
        return bool(value)
    if not isinstance(value, str):
        whole: Any = value
        return str(whole) if kind == "string" and not isinstance(value, (dict, list)) else whole
    if kind == "boolean" and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if kind == "integer" and re.fullmatch(r"-?\d{1,40}", value):
        return int(value)
    if kind == "number" and re.fullmatch(r"-?\d{1,40}(?:\.\d{1,40})?(?:[eE][-+]?\d{1,3})?", value):
        return int(value) if value.removeprefix("-").isdecimal() else float(value)
    if kind in ("object", "array", "") and value.lstrip()[:1] in ("{", "["):
        try:
            read: Any = json.loads(value)
        except (ValueError, RecursionError):
            return value
        kinds = {"object": dict, "array": list}
        return cast("Any", read) if isinstance(read, kinds.get(kind, object)) else value
    return value


def _text(value: Any) -> str:
    """A value as a URL or a header has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return to_json(value)


def _invalid(method: Method, problem: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"The method {method.name} cannot be called: {problem}.",
        hint="SHOW METHODS lists what each method requires.",
    )
