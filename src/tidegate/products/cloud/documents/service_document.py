"""Reads the document of one service: its resources, and what their methods send and receive.

A resource is compiled when it is first asked for: a document may have thousands of methods, and a
statement uses a few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from tidegate.errors import TidegateError
from tidegate.products.cloud.documents.accounts import account_parameter
from tidegate.products.cloud.documents.model import (
    BODY_PREFIX,
    SQL_VERBS,
    WHOLE_BODY,
    Body,
    Method,
    Parameter,
    Provider,
    Resource,
    Response,
    Schema,
    Server,
    Settings,
    Transform,
    View,
    XmlForm,
)
from tidegate.products.cloud.documents.names import folded, snake_case
from tidegate.products.cloud.documents.schema import Schemas, XPath, parse_object_key
from tidegate.products.cloud.documents.settings import read_settings
from tidegate.products.cloud.documents.tree import mapping, require_mapping, sequence
from tidegate.products.cloud.documents.url_templates import UrlTemplate, plain_name, read_template
from tidegate.products.cloud.documents.yaml_reader import refused

_HTTP_VERBS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_PLACES: Final = ("path", "query", "header", "cookie")
_CASINGS: Final = ("pascal", "camel", "kebab", "snake")
_VARIABLE: Final = re.compile(r"\{([^{}]+)\}")
_GREEDY: Final = re.compile(r"\{([^{}]+)\+\}")
"""`{Key+}`: a parameter of a path that may hold `/`."""
_METHOD_LINK: Final = re.compile(r"#/components/x-stackQL-resources/([^/]+)/methods/([^/]+)")
_VIEW_NEEDS: Final = re.compile(r"requiredParams\s*==\s*\[([^\]]*)\]")
_DEFAULT_VERBS: Final = {
    "select": ("select", "list", "aggregatedList", "get"),
    "insert": ("insert", "create"),
    "delete": ("delete",),
}
"""Names of methods that have the verb in a document without `sqlVerbs`."""
_SQL_DIALECT: Final = "sqlite3"
_ENVIRONMENT: Final = "x-stackQL-envVar"
"""Names the variable of the environment that a variable of the server has its value from."""
_XML_KEYS: Final = ("xmlDeclaration", "xmlTransform", "xmlRootAnnotation")
_IS_XML: Final = re.compile(r"[/+]xml\b")


class ServiceDocument:
    """The document `name` of a service of `provider`, whose values are `tree`."""

    def __init__(self, tree: Any, name: str, provider: Provider) -> None:
        self.name = name
        self._tree = require_mapping(tree, "the document", name)
        self.schemas = Schemas(self._tree, name)
        self._provider = provider
        self._settings = read_settings(self._tree.get("x-stackQL-config"), name).above(
            provider.settings
        )
        components = mapping(self._tree.get("components"))
        self._resources = mapping(components.get("x-stackQL-resources"))
        self._compiled: dict[str, Resource] = {}

    @property
    def signing_name(self) -> str:
        """The name of the service in signatures for AWS, else empty."""
        return str(mapping(self._tree.get("info")).get("x-serviceName") or "")

    @property
    def resource_names(self) -> tuple[str, ...]:
        """In the document's order."""
        return tuple(self._resources)

    def resource(self, name: str) -> Resource | None:
        """A resource by its name; None if there is none. Raises: TidegateError DOCUMENT_INVALID."""
        if name not in self._resources:
            return None
        if name not in self._compiled:
            self._compiled[name] = self._compile(
                name, require_mapping(self._resources[name], name, self.name)
            )
        return self._compiled[name]

    def _compile(self, name: str, node: Mapping[str, Any]) -> Resource:
        config = mapping(node.get("config"))
        settings = read_settings(config, self.name).above(self._settings)
        methods = {
            each: self._method(name, each, require_mapping(entry, each, self.name), settings)
            for each, entry in self._method_nodes(node).items()
        }
        if self._provider.accounts:
            methods = self._with_accounts(methods)
        return Resource(
            id=str(node.get("id") or name),
            name=str(node.get("name") or name),
            title=str(node.get("title") or ""),
            description=str(node.get("description") or ""),
            methods=methods,
            verbs=self._verbs(name, node.get("sqlVerbs"), methods),
            views=tuple(self._views(name, mapping(config.get("views")).get("select"))),
        )

    def _method_nodes(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """A resource's methods, and those of other resources that its `sqlVerbs` name."""
        nodes = dict(mapping(node.get("methods")))
        for links in mapping(node.get("sqlVerbs")).values():
            for link in sequence(links):
                match = _METHOD_LINK.fullmatch(str(mapping(link).get("$ref")))
                if match is not None and match[2] not in nodes:
                    other = mapping(mapping(self._resources.get(match[1])).get("methods"))
                    nodes |= {match[2]: other[match[2]]} if match[2] in other else {}
        return nodes

    def _with_accounts(self, methods: Mapping[str, Method]) -> dict[str, Method]:
        """The methods with the parameter that says whose credential a request gets."""
        taken = {folded(each.name) for method in methods.values() for each in method.parameters}
        for method in methods.values():
            if method.response.schema is not None:
                columns = self.schemas.columns(method.response.schema, method.response.object_key)
                taken |= {folded(snake_case(name)) for name in columns}
        parameter = account_parameter(taken)
        return {
            name: msgspec.structs.replace(method, parameters=(*method.parameters, parameter))
            for name, method in methods.items()
        }

    def _verbs(
        self, resource: str, node: Any, methods: Mapping[str, Method]
    ) -> dict[str, tuple[str, ...]]:
        if node is None:
            defaults = {
                verb: tuple(name for name in names if name in methods)
                for verb, names in _DEFAULT_VERBS.items()
            }
            return {verb: names for verb, names in defaults.items() if names}
        verbs: dict[str, tuple[str, ...]] = {}
        for verb, links in require_mapping(node, f"`sqlVerbs` of {resource}", self.name).items():
            if verb == "exec":
                continue  # EXEC names its method
            if verb not in SQL_VERBS:
                raise self._refused(f"the SQL verb `{verb[:40]}` of `{resource}` is not known")
            named: list[str] = []
            for link in sequence(links):
                match = _METHOD_LINK.fullmatch(str(mapping(link).get("$ref")))
                if match is None or match[2] not in methods:
                    raise self._refused(f"a {verb} of `{resource}` names no method of it: {link}")
                named.append(match[2])
            verbs[verb] = tuple(named)
        return verbs

    def _views(self, resource: str, node: Any) -> Iterator[View]:
        while isinstance(node, Mapping):
            entry = mapping(node)  # pyright: ignore[reportUnknownArgumentType]
            predicate, sql = str(entry.get("predicate") or ""), entry.get("ddl")
            if not isinstance(sql, str) or not sql.strip():
                raise self._refused(f"a view of `{resource}` has no SQL")
            if not predicate or _SQL_DIALECT in predicate:
                needs = _VIEW_NEEDS.search(predicate)
                names = needs[1].split(",") if needs else ()
                plain = [name.strip().strip('"') for name in names]
                yield View(sql, tuple([name for name in plain if name]))
            node = entry.get("fallback")

    def _method(self, resource: str, name: str, node: Mapping[str, Any], above: Settings) -> Method:
        where = f"the method `{resource}.{name}`"
        path, verb, item, operation = self._operation(node, where)
        settings = read_settings(node.get("config"), self.name).above(above)
        request = mapping(node.get("request"))
        casing = str(request.get("nativeCasing") or "")
        if casing and casing not in _CASINGS:
            raise self._refused(f"{where} has the casing `{casing[:40]}`, which is not known")
        template = self._template(_GREEDY.sub(r"{\1}", path), where)
        path, _, query = template.text.partition("?")
        server, patterns = self._server(operation, item, node, where)
        body = self._body(operation, request, where)
        parameters = [
            *self._parameters(item, operation, casing, where),
            *self._body_parameters(body, request, settings, casing),
            *(_server_parameter(server, each) for each in server.variables),
        ]
        path, undeclared = _declared_path(path, parameters)
        parameters.extend(undeclared)
        bounds = {"server": patterns, "path": template.patterns}
        parameters = [_bounded(each, bounds.get(each.place, {})) for each in parameters]
        return Method(
            name=name,
            http_verb=verb.upper(),
            path=path,
            fixed_query=_query_pairs(query),
            server=server,
            parameters=tuple(parameters),
            body=body,
            response=self._response(operation, mapping(node.get("response")), where),
            settings=settings,
            description=str(operation.get("description") or operation.get("summary") or ""),
            casing=casing,
            graphql=mapping(operation.get("x-stackQL-graphQL")) or None,
            service_name=str(node.get("serviceName") or ""),
        )

    def _operation(
        self, node: Mapping[str, Any], where: str
    ) -> tuple[str, str, Mapping[str, Any], Mapping[str, Any]]:
        """The path, the HTTP verb, the path's item and the operation."""
        link = mapping(node.get("operation")).get("$ref")
        if not isinstance(link, str):
            raise self._refused(f"{where} names no operation")
        parts = link.split("/")
        if len(parts) != 4 or parts[1] != "paths" or parts[3].lower() not in _HTTP_VERBS:
            raise self._refused(f"{where} names `{link[:120]}`, which is no operation")
        path = parts[2].replace("~1", "/").replace("~0", "~")
        item = self.schemas.resolve({"$ref": f"{parts[0]}/paths/{parts[2]}"})
        if parts[3] not in item:  # older documents write `/GET`
            link = "/".join((*parts[:3], parts[3].lower()))
        operation = self.schemas.resolve({"$ref": link})
        return path, parts[3], item, operation

    def _server(
        self,
        operation: Mapping[str, Any],
        item: Mapping[str, Any],
        node: Mapping[str, Any],
        where: str,
    ) -> tuple[Server, Mapping[str, str]]:
        """The server, and the patterns of its variables."""
        for each in (operation, item, node, self._tree):
            servers = each.get("servers")
            if isinstance(servers, list) and servers:
                first = require_mapping(servers[0], f"a server of {where}", self.name)
                url = first.get("url")
                if not isinstance(url, str) or not url:
                    raise self._refused(f"a server of {where} has no URL")
                shown = mapping(first.get("variables"))
                variables = {
                    plain_name(name): str(mapping(entry).get("default") or "")
                    for name, entry in shown.items()
                }
                template = self._template(url, where)
                for name in _VARIABLE.findall(template.text):
                    variables.setdefault(name, "")
                named = {
                    plain_name(name): mapping(each).get(_ENVIRONMENT)
                    for name, each in shown.items()
                }
                environment = {name: str(each) for name, each in named.items() if each}
                return Server(template.text, variables, environment), template.patterns
        raise self._refused(f"{where} has no server")

    def _template(self, text: str, where: str) -> UrlTemplate:
        try:
            return read_template(text)
        except ValueError as error:
            raise self._refused(f"the address of {where} is no template: {error}") from None

    def _parameters(
        self,
        item: Mapping[str, Any],
        operation: Mapping[str, Any],
        casing: str,
        where: str,
    ) -> Iterator[Parameter]:
        """An operation's parameter takes the place of its path's of the same name and place."""
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for each in (item, operation):
            for entry in sequence(each.get("parameters")):
                node = self.schemas.resolve(entry)
                name, place = node.get("name"), node.get("in")
                if not isinstance(name, str) or not name or place not in _PLACES:
                    raise self._refused(f"{where} has a parameter without a name or a place")
                found[name, str(place)] = node
        for (name, place), node in found.items():
            yield Parameter(
                name=snake_case(name) if casing else name,
                wire_name=name,
                place=place,  # type: ignore[arg-type]
                is_required=node.get("required") is True or place == "path",
                schema=self._parameter_schema(node),
                description=str(node.get("description") or ""),
                style=str(node.get("style") or ""),
                explodes=node.get("explode") is not False,
            )

    def _parameter_schema(self, node: Mapping[str, Any]) -> Schema:
        if "schema" in node:
            return self.schemas.resolve(node["schema"])
        # A parameter with `content` is the text of its one media type, which a statement writes.
        return {"type": "string"} if "content" in node else {}

    def _body(
        self, operation: Mapping[str, Any], request: Mapping[str, Any], where: str
    ) -> Body | None:
        if "requestBody" not in operation:
            return None
        node = self.schemas.resolve(operation["requestBody"])
        content = mapping(node.get("content"))
        media_type = str(request.get("mediaType") or _first_json(content))
        entry = mapping(content.get(media_type) or next(iter(content.values()), None))
        override = request.get("schema_override")
        schema = override or entry.get("schema")
        return Body(
            media_type=media_type,
            schema=self.schemas.resolve(schema) if schema else {},
            is_required=node.get("required") is True,
            base=str(request.get("base") or ""),
            default=str(request.get("default") or ""),
            transform=self._transform(request.get("transform"), where),
            xml=self._xml_form(request, schema),
        )

    def _xml_form(self, request: Mapping[str, Any], schema: Any) -> XmlForm | None:
        texts = [str(request.get(key) or "") for key in _XML_KEYS]
        if not any(texts):
            return None
        declaration, transform, annotation = texts
        reference = str(mapping(schema).get("$ref") or "").rpartition("/")[2]
        root = self.schemas.xml_name(mapping(schema)) or reference
        if not root or (transform and transform != "unescape"):
            raise self._refused("the form of a body in XML is not understood")
        return XmlForm(root, annotation, declaration, transform == "unescape")

    def _body_parameters(
        self, body: Body | None, request: Mapping[str, Any], settings: Settings, casing: str
    ) -> Iterator[Parameter]:
        if body is None:
            return
        whole = body.schema
        if settings.body_names == "naive_DesiredState":
            # The columns are the fields of this one, which is sent as text.
            whole = self.schemas.properties(whole).get("DesiredState", whole)
        properties = self.schemas.properties(whole)
        if not properties and _is_plain(body):
            yield Parameter(
                name="body" if settings.body_names else f"{BODY_PREFIX}body",
                wire_name=WHOLE_BODY,
                place="body",
                is_required=body.is_required,
                schema={"type": "string"},
            )
        required = self.schemas.required(whole) | {
            str(each) for each in sequence(request.get("required"))
        }
        for name, schema in properties.items():
            sql_name = snake_case(name) if casing else name
            yield Parameter(
                name=sql_name if settings.body_names else f"{BODY_PREFIX}{sql_name}",
                wire_name=name,
                place="body",
                is_required=name in required,
                schema=schema,
                description=str(schema.get("description") or ""),
            )

    def _response(
        self, operation: Mapping[str, Any], node: Mapping[str, Any], where: str
    ) -> Response:
        status = str(node.get("openAPIDocKey") or "")
        responses = mapping(operation.get("responses"))
        # A document may name a status that its operation lacks: then nothing is known of the body.
        nothing: Schema = {}
        entry = self.schemas.resolve(responses[status]) if status in responses else nothing
        content = mapping(entry.get("content"))
        media_type = str(node.get("mediaType") or _first_json(content))
        shown = mapping(content.get(media_type) or next(iter(content.values()), None))
        schema = node.get("schema_override") or shown.get("schema")
        key = node.get("objectKey")
        if key is None and node.get("transform") is None:
            graphql = mapping(operation.get("x-stackQL-graphQL"))
            key = mapping(graphql.get("responseSelection")).get("jsonPath")
        path = None if key is None else parse_object_key(str(key), self.name)
        if _IS_XML.search(media_type) and not isinstance(path, XPath) and not node.get("transform"):
            path = XPath(("*", *[step for step in path or () if step != "*"]))
        return Response(
            status=status,
            media_type=media_type if content or node.get("transform") else "",
            schema=self.schemas.resolve(schema) if schema else None,
            object_key=path,
            transform=self._transform(node.get("transform"), where),
        )

    def _transform(self, node: Any, where: str) -> Transform | None:
        if node is None:
            return None
        entry = require_mapping(node, f"a transform of {where}", self.name)
        return Transform(str(entry.get("type") or ""), str(entry.get("body") or ""))

    def _refused(self, problem: str) -> TidegateError:
        return refused(self.name, problem)


def _is_plain(body: Body) -> bool:
    """Whether the content of a body is one value: neither fields nor what a template makes."""
    formats = ("json", "xml", "form")
    return body.transform is None and not any(each in body.media_type for each in formats)


def _declared_path(path: str, parameters: list[Parameter]) -> tuple[str, list[Parameter]]:
    """The path with the names of its parameters, and parameters for those that have none.

    A document may write `{enterprise_team}` and declare `enterprise-team`.
    """
    known = {each.wire_name for each in parameters if each.place in ("path", "server")}
    alike = {folded(name): name for name in known}
    undeclared: list[Parameter] = []
    for name in _VARIABLE.findall(path):
        if name in known:
            continue
        if folded(name) in alike:
            path = path.replace(f"{{{name}}}", f"{{{alike[folded(name)]}}}")
        elif all(each.wire_name != name for each in undeclared):
            undeclared.append(Parameter(name, name, "path", True, {"type": "string"}))
    return path, undeclared


def _bounded(parameter: Parameter, patterns: Mapping[str, str]) -> Parameter:
    pattern = patterns.get(parameter.wire_name)
    return parameter if pattern is None else msgspec.structs.replace(parameter, pattern=pattern)


def _server_parameter(server: Server, name: str) -> Parameter:
    is_required = not server.environment_value(name)
    return Parameter(name, name, "server", is_required, {"type": "string"})


def _query_pairs(query: str) -> tuple[tuple[str, str], ...]:
    pairs = (each.partition("=") for each in query.split("&") if each)
    return tuple((name, value) for name, _, value in pairs)


def _first_json(content: Mapping[str, Any]) -> str:
    """The media type of a body that leaves it open: JSON if it is among them, else the first."""
    return next((each for each in content if "json" in each), next(iter(content), ""))
