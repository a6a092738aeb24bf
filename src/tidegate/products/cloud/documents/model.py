"""What provider documents say, as values: providers, services, resources, methods."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from tidegate.products.cloud.settings import CloudAccount

Schema = Mapping[str, Any]
"""A JSON schema as it is written, `$ref` and all; `schema.Schemas` reads it."""
Place = Literal["path", "query", "header", "cookie", "server", "body", "account"]
"""Where a parameter goes in a request. `server`: a variable of the server's address. `account`:
nowhere, it says whose credential the request gets."""
SqlVerb = Literal["select", "insert", "update", "replace", "delete", "exec"]
"""`exec`: only `EXEC` reaches the method."""
WHOLE_BODY: Final = "(body)"
"""The parameter of a body that is no object: its value is the content."""
BODY_PREFIX: Final = "data__"
"""What the columns of a body begin with, unless the document says otherwise."""
SQL_VERBS: Final = ("select", "insert", "update", "replace", "delete")


class Provider(msgspec.Struct, frozen=True):
    """One `provider.yaml`."""

    name: str
    version: str
    title: str
    description: str
    services: Mapping[str, ServiceEntry]
    auth: Mapping[str, Any]
    """`config.auth` as it is written; empty: none."""
    settings: Settings
    renames_columns: bool
    """Whether columns of responses have names in snake case."""
    accounts: Mapping[str, CloudAccount] = {}
    """Those that the settings name."""


class ServiceEntry(msgspec.Struct, frozen=True):
    """A service as its provider names it."""

    id: str
    name: str
    title: str
    description: str
    path: str
    """Its document, below the registry's `src`; empty if the provider names none."""
    is_preferred: bool
    lists_resources: bool = False
    """Whether the document has resources alone, and their operations are in others."""


class Settings(msgspec.Struct, frozen=True):
    """What a `config` or `x-stackQL-config` says. The nearest to the method wins, key by key."""

    pagination: Pagination | None = None
    body_names: str = ""
    """`requestBodyTranslate.algorithm`. Empty: the columns of a body begin with `data__`."""
    request_translation: str = ""
    query_transposition: str = ""
    retry: Mapping[str, Any] | None = None
    pushdown: Mapping[str, Any] | None = None

    def above(self, below: Settings) -> Settings:
        """These settings, and those of `below` where these say nothing."""
        return Settings(
            self.pagination or below.pagination,
            self.body_names or below.body_names,
            self.request_translation or below.request_translation,
            self.query_transposition or below.query_transposition,
            self.retry or below.retry,
            self.pushdown or below.pushdown,
        )


class Pagination(msgspec.Struct, frozen=True):
    """Where a response says what comes next, and where the next request says it."""

    algorithm: Literal["token", "page_number"]
    request_place: Literal["query", "body", "header", "request"]
    """`request`: what the response gave is the address of the next request."""
    request_key: str
    response_place: Literal["body", "header"]
    response_key: str
    """A header's name, or a path such as `$.next_token`."""
    end_key: str = ""
    """For `page_number`: where the number of the last page is."""
    is_plain: bool = False
    """Whether a token of the query is sent as it came, for a server that decodes none."""


class Server(msgspec.Struct, frozen=True):
    """The address of an API: a template with `{variables}`."""

    url: str
    variables: Mapping[str, str]
    """Defaults by name. Each is a required parameter nevertheless."""
    environment: Mapping[str, str] = {}
    """Variables of the environment by name: with a value there, it is not required."""

    def environment_value(self, name: str) -> str:
        """What the environment has for a variable; empty: nothing."""
        return os.environ.get(self.environment.get(name, ""), "")


class Parameter(msgspec.Struct, frozen=True):
    """One input of a method."""

    name: str
    """In SQL."""
    wire_name: str
    place: Place
    is_required: bool
    schema: Schema
    description: str = ""
    style: str = ""
    explodes: bool = True
    pattern: str = ""
    """What the whole of a value must be, by the template of the address."""


class Transform(msgspec.Struct, frozen=True):
    """How a document has a body changed before it is sent or read."""

    kind: str
    template: str


class Body(msgspec.Struct, frozen=True):
    """What a method sends."""

    media_type: str
    schema: Schema
    is_required: bool
    base: str = ""
    """JSON that the caller's values are put over."""
    default: str = ""
    transform: Transform | None = None
    xml: XmlForm | None = None


class XmlForm(msgspec.Struct, frozen=True):
    """What a document says of a body in XML beside its schema."""

    root: str
    """The element around all fields."""
    annotation: str
    """What follows the root's name, such as `xmlns="…"`."""
    declaration: str
    unescapes: bool
    """Whether a value may be XML of its own."""


class Response(msgspec.Struct, frozen=True):
    """What a method gives when it succeeds."""

    status: str
    media_type: str
    """As the API sends it. Empty: nothing."""
    schema: Schema | None
    """Of what is read, after the transform."""
    object_key: tuple[str, ...] | None
    """Where the rows are; `*` for each member of a list. None: the document does not say."""
    transform: Transform | None = None


class Method(msgspec.Struct, frozen=True):
    """One method of a resource."""

    name: str
    http_verb: str
    path: str
    """A template with `{parameters}`, without the query."""
    fixed_query: tuple[tuple[str, str], ...]
    """What follows `?` in the document's path."""
    server: Server
    parameters: tuple[Parameter, ...]
    """Those of a body as well."""
    body: Body | None
    response: Response
    settings: Settings
    description: str
    casing: str
    """`pascal` or `camel`: SQL names are in snake case. Empty: they are those of the API."""
    graphql: Mapping[str, Any] | None = None
    """`x-stackQL-graphQL` of the operation: its query and cursor."""
    service_name: str = ""
    """The service that AWS's signatures name, where it is another than the document's."""

    @property
    def required(self) -> tuple[str, ...]:
        """Names of required parameters: of the address and headers, of the body, of the server;
        each sorted."""

        def sort(wanted: tuple[Place, ...]) -> list[str]:
            return sorted(p.name for p in self.parameters if p.is_required and p.place in wanted)

        head = sort(("path", "query", "header", "cookie"))
        return (*head, *sort(("body",)), *sort(("server",)))


class View(msgspec.Struct, frozen=True):
    """A SELECT that a document gives a resource."""

    sql: str
    required: tuple[str, ...]
    """Parameters with which it is used, as `requiredParams == [ … ]` of its predicate says."""


class ApiRequest(msgspec.Struct, frozen=True):
    """One request, without its credential."""

    verb: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    has_free_host: bool
    """Whether a value alone decides which host is asked: only an operator may allow that."""


class Resource(msgspec.Struct, frozen=True):
    """One table-like thing of a service."""

    id: str
    name: str
    title: str
    description: str
    methods: Mapping[str, Method]
    verbs: Mapping[str, tuple[str, ...]]
    """Names of methods by SQL verb, in the document's order: the first whose required parameters
    are given is used."""
    views: tuple[View, ...]

    def verb_of(self, method: str) -> SqlVerb:
        """The SQL verb that reaches a method first in the usual order of verbs."""
        for verb in SQL_VERBS:
            if method in self.verbs.get(verb, ()):
                return verb
        return "exec"
