"""Makes a provider from a plain OpenAPI document: resources from its paths, a login from its
security schemes. Pure.

GET and HEAD become `select`. Every other operation is reached by EXEC alone: what a POST does is
not known from its verb.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from tidegate.config.addresses import parse_http_url
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.names import snake_case
from tidegate.products.cloud.documents.provider_document import read_provider
from tidegate.products.cloud.documents.schema import Schemas
from tidegate.products.cloud.documents.service_document import ServiceDocument
from tidegate.products.cloud.documents.tree import mapping, require_mapping, sequence
from tidegate.products.cloud.documents.url_templates import pattern_problem, read_template
from tidegate.products.cloud.documents.yaml_reader import refused
from tidegate.products.cloud.http.reply_formats import type_problem

VERSION: Final = "v00.00.00000"
"""The version of documents that are not of a registry."""
_VERBS: Final = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
_READS: Final = ("get", "head")
_LISTS: Final = ("items", "data", "results", "value", "values", "records", "entries", "rows")
"""Names of the field that a list usually has, the usual first."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_PARAMETER: Final = re.compile(r"\{[^{}]*\}")
_LEADING: Final = re.compile(r"(?:api|rest|v\d+(?:[a-z]+\d*)?(?:\.\d+)*)")
"""Beginnings of paths that say nothing of what is there."""
_VARIABLE: Final = re.compile(r"\W+")


class ImportedProvider(NamedTuple):
    """A provider: the trees of its two documents, how many resources and methods they have, what
    was left out and why, and the variables that its login reads."""

    provider: dict[str, Any]
    service: dict[str, Any]
    resources: int
    methods: int
    left_out: list[str]
    variables: list[str]


def import_openapi(
    tree: Any, document: str, provider: str, service: str, server: str = ""
) -> ImportedProvider:
    """The provider `provider` with the one service `service` from the values of an OpenAPI 3
    document. `server` takes the place of the document's servers.

    Raises: TidegateError DOCUMENT_INVALID: no OpenAPI 3, references to other documents, no server;
        ARGUMENT_INVALID: a name that SQL cannot have.
    """
    for name in (provider, service):
        if not _NAME.fullmatch(name):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"`{name[:80]}` cannot be the name of a provider or service.",
                hint="Use small letters, digits and `_`; begin with a letter.",
            )
    openapi = require_mapping(tree, "the document", document)
    if not str(openapi.get("openapi", "")).startswith("3."):
        what = "Swagger 2.0" if "swagger" in openapi else "no OpenAPI 3"
        raise refused(document, f"it is {what}; convert it to OpenAPI 3.0 or 3.1 first")
    _refuse_other_documents(openapi, document)
    out: dict[str, Any] = dict(openapi)
    out["servers"] = _servers(openapi, document, server)
    out["paths"] = {
        path: _without_servers(item) for path, item in mapping(openapi.get("paths")).items()
    }
    schemas = Schemas(out, document)
    methods, left_out = _methods(out, schemas)
    auth, variables = _login(openapi, schemas, provider)
    provider_tree = _provider_tree(openapi, provider, service, auth)
    found, failed = _usable(out, methods, provider_tree, document)
    left_out += failed
    return ImportedProvider(
        provider_tree,
        _with_resources(out, found),
        len(found),
        sum(len(each["methods"]) for each in found.values()),
        left_out,
        variables,
    )


def _refuse_other_documents(tree: Any, document: str) -> None:
    waiting: list[Any] = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            entries = cast("dict[str, Any]", value)
            link = entries.get("$ref")
            if isinstance(link, str) and not link.startswith("#/"):
                raise refused(document, f"it refers to another document: {link[:120]}")
            waiting.extend(entries.values())
        elif isinstance(value, list):
            waiting.extend(cast("list[Any]", value))


def _servers(openapi: Mapping[str, Any], document: str, server: str) -> list[dict[str, Any]]:
    if server:
        try:
            parts = parse_http_url(server)
        except ValueError:
            parts = None
        if parts is None or not parts.is_plain:
            raise TidegateError(
                Code.ARGUMENT_INVALID, f"`{server[:120]}` is not the address of an API."
            )
        return [{"url": server}]
    servers = sequence(openapi.get("servers"))
    if not servers or "://" not in str(mapping(servers[0]).get("url")):
        raise refused(document, "it names no server with a host; give its address by --server")
    return [dict(mapping(servers[0]))]


def _without_servers(item: Any) -> Any:
    """A path of the document without servers of its own: the operator has seen one address."""
    if not isinstance(item, dict):
        return item
    kept = {key: value for key, value in cast("dict[str, Any]", item).items() if key != "servers"}
    for verb in _VERBS:
        if isinstance(kept.get(verb), dict):
            kept[verb] = {name: each for name, each in kept[verb].items() if name != "servers"}
    return kept


class _Found(NamedTuple):
    """One operation."""

    resource: str
    name: str
    verb: str
    required: int
    """How many parameters it requires, for the order of selects."""
    entry: dict[str, Any]


def _methods(tree: Mapping[str, Any], schemas: Schemas) -> tuple[list[_Found], list[str]]:
    found: list[_Found] = []
    left_out: list[str] = []
    for path, item in mapping(tree.get("paths")).items():
        for verb in _VERBS:
            operation = mapping(mapping(item).get(verb))
            if not operation:
                continue
            try:
                found.append(_method(path, verb, mapping(item), operation, schemas))
            except TidegateError as error:
                left_out.append(f"{verb.upper()} {path}: {error.message}")
    return found, left_out


def _method(
    path: str, verb: str, item: Mapping[str, Any], operation: Mapping[str, Any], schemas: Schemas
) -> _Found:
    pointer = path.replace("~", "~0").replace("/", "~1")
    try:
        path = read_template(path).text
    except ValueError as error:
        raise refused(path, str(error)) from None
    entry: dict[str, Any] = {"operation": {"$ref": f"#/paths/{pointer}/{verb}"}}
    responses = mapping(operation.get("responses"))
    key = next((each for each in responses if re.fullmatch(r"2\d\d|2XX", each)), None)
    key = key or ("default" if "default" in responses else None)
    if key is not None:
        response: dict[str, Any] = {"openAPIDocKey": key}
        content = mapping(schemas.resolve(responses[key]).get("content"))
        media_type = next((each for each in content if "json" in each), None)
        if media_type is not None:
            response["mediaType"] = media_type
            rows = _rows_of(mapping(content[media_type]).get("schema"), schemas)
            if rows:
                response["objectKey"] = f"$.{rows}"
        entry["response"] = response
    required = len(_PARAMETER.findall(path))
    for each in (*sequence(item.get("parameters")), *sequence(operation.get("parameters"))):
        parameter = schemas.resolve(each)
        required += parameter.get("in") != "path" and parameter.get("required") is True
    return _Found(_resource_of(path), _name_of(path, verb, operation), verb, required, entry)


def _rows_of(schema: Any, schemas: Schemas) -> str | None:
    """The one field of a reply that is a list, or the usual one of several."""
    if not isinstance(schema, dict):
        return None
    resolved = schemas.resolve(cast("dict[str, Any]", schema))
    lists = [
        name
        for name, each in schemas.properties(resolved).items()
        if schemas.kind(each) == "array" and re.fullmatch(r"[A-Za-z_]\w*", name)
    ]
    usual = [name for name in _LISTS if name in lists]
    if usual:
        return usual[0]
    # A thing may have one list among its fields: a list of things has little else.
    return lists[0] if len(lists) == 1 and len(schemas.properties(resolved)) <= 4 else None


def _resource_of(path: str) -> str:
    parts = [each for each in path.split("/") if each]
    while len(parts) > 1 and _LEADING.fullmatch(parts[0].lower()):
        parts.pop(0)
    fixed = [_word(each) for each in parts if not _PARAMETER.search(each)]
    return "_".join(each for each in fixed if each)[:120] or "root"


def _name_of(path: str, verb: str, operation: Mapping[str, Any]) -> str:
    operation_id = operation.get("operationId")
    name = _word(operation_id) if isinstance(operation_id, str) else ""
    if name:
        return name[:120]
    by = [_word(each) for each in _PARAMETER.findall(path)]
    return "_by_".join([verb, *(each for each in by if each)])[:120]


def _word(text: str) -> str:
    return snake_case(_VARIABLE.sub("_", text).strip("_")).lower()


def _provider_tree(
    openapi: Mapping[str, Any], provider: str, service: str, auth: dict[str, Any]
) -> dict[str, Any]:
    info = mapping(openapi.get("info"))
    title = str(info.get("title") or provider)
    return {
        "id": provider,
        "name": provider,
        "version": VERSION,
        "title": title,
        "description": str(info.get("description") or ""),
        "config": {"auth": auth, "requestBodyTranslate": {"algorithm": "naive"}},
        "providerServices": {
            service: {
                "id": f"{service}:{VERSION}",
                "name": service,
                "preferred": True,
                "service": {"$ref": f"{provider}/{VERSION}/services/{service}.yaml"},
                "title": title,
                "version": VERSION,
                "description": str(info.get("description") or ""),
            }
        },
    }


def _with_resources(tree: Mapping[str, Any], resources: Mapping[str, Any]) -> dict[str, Any]:
    components = dict(mapping(tree.get("components")))
    components["x-stackQL-resources"] = resources
    return {**tree, "components": components}


def _usable(
    tree: dict[str, Any], methods: list[_Found], provider_tree: dict[str, Any], document: str
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The resources of the methods that can be compiled, and why the others cannot."""
    import json

    provider = read_provider(json.dumps(provider_tree).encode(), document)
    left_out: list[str] = []
    grouped: dict[str, list[_Found]] = {}
    for each in methods:
        alone = {"id": each.resource, "name": each.resource, "methods": {each.name: each.entry}}
        reader = ServiceDocument(_with_resources(tree, {each.resource: alone}), document, provider)
        try:
            compiled = reader.resource(each.resource)
            assert compiled is not None  # noqa: S101 - it was just put there
            response = compiled.methods[each.name].response
            if response.schema is not None:
                reader.schemas.columns(response.schema, response.object_key)
            problem = type_problem(response.media_type) if each.verb in _READS else None
            if problem is not None:
                raise refused(document, problem)
            for parameter in compiled.methods[each.name].parameters:
                problem = pattern_problem(parameter.pattern) if parameter.pattern else None
                if problem is not None:
                    raise refused(document, f"the pattern of {parameter.name}: {problem}")
        except TidegateError as error:
            link = each.entry["operation"]["$ref"]
            left_out.append(f"{link}: {error.message}")
            continue
        grouped.setdefault(each.resource, []).append(each)
    return {name: _resource(name, found) for name, found in sorted(grouped.items())}, left_out


def _resource(name: str, found: list[_Found]) -> dict[str, Any]:
    methods: dict[str, Any] = {}
    selects: list[tuple[int, bool, str]] = []
    for each in found:
        own = next(_free(each.name, methods))
        methods[own] = each.entry
        if each.verb in _READS:
            # The first select whose parameters are given is used: the most specific comes first.
            selects.append((-each.required, each.verb != "get", own))
    link = f"#/components/x-stackQL-resources/{name}/methods"
    return {
        "id": name,
        "name": name,
        "title": name.replace("_", " "),
        "methods": methods,
        "sqlVerbs": {
            "select": [{"$ref": f"{link}/{each}"} for *_, each in sorted(selects)],
            "insert": [],
            "update": [],
            "replace": [],
            "delete": [],
        },
    }


def _free(name: str, taken: Mapping[str, Any]) -> Iterator[str]:
    if name not in taken:
        yield name
    number = 2
    while True:
        if f"{name}_{number}" not in taken:
            yield f"{name}_{number}"
        number += 1


def _login(
    openapi: Mapping[str, Any], schemas: Schemas, provider: str
) -> tuple[dict[str, Any], list[str]]:
    """The login of the first security scheme that is known, and the variables that it reads."""
    prefix = provider.upper()
    schemes = mapping(mapping(openapi.get("components")).get("securitySchemes"))
    required = [name for each in sequence(openapi.get("security")) for name in mapping(each)]
    for name in (*required, *schemes):
        if name not in schemes:
            continue
        scheme = schemas.resolve(cast("dict[str, Any]", schemes[name]))
        kind, form = scheme.get("type"), str(scheme.get("scheme") or "").lower()
        if kind == "http" and form == "basic":
            names = [f"{prefix}_USERNAME", f"{prefix}_PASSWORD"]
            return {"type": "basic", "username_var": names[0], "password_var": names[1]}, names
        if (kind == "http" and form == "bearer") or kind == "openIdConnect":
            return {"type": "bearer", "credentialsenvvar": f"{prefix}_TOKEN"}, [f"{prefix}_TOKEN"]
        if kind == "apiKey" and scheme.get("in") in ("header", "query"):
            variable = f"{prefix}_API_KEY"
            login = {
                "type": "custom",
                "location": scheme["in"],
                "name": str(scheme.get("name")),
                "credentialsenvvar": variable,
            }
            return login, [variable]
        flow = mapping(mapping(scheme.get("flows")).get("clientCredentials"))
        if kind == "oauth2" and isinstance(flow.get("tokenUrl"), str):
            names = [f"{prefix}_CLIENT_ID", f"{prefix}_CLIENT_SECRET"]
            login = {
                "type": "oauth2",
                "grant_type": "client_credentials",
                "token_url": flow["tokenUrl"],
                "client_id_env_var": names[0],
                "client_secret_env_var": names[1],
                "scopes": list(mapping(flow.get("scopes"))),
            }
            return login, names
        if kind == "oauth2":
            return {"type": "bearer", "credentialsenvvar": f"{prefix}_TOKEN"}, [f"{prefix}_TOKEN"]
    return {"type": "none"}, []
