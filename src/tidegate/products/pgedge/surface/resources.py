"""The four `pg://` resources, and the tool that reads them.

Each is one or two statements through the gate, as the caller: a role that may not read the
statistics in the database cannot read them here. Values of settings and texts of statements that
may be secrets are left out.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote, unquote

import msgspec
from msgspec import Meta

from tidegate.errors import Code, TidegateError
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Query, ShowStatus
from tidegate.model.results import Limits, Page
from tidegate.model.statements import Statement
from tidegate.products.pgedge.surface.databases import Databases
from tidegate.products.pgedge.surface.error_codes import ErrorCodes
from tidegate.products.pgedge.surface.query import READS
from tidegate.protocol.model import Resource, ToolResult
from tidegate.secrets.redaction import MASK
from tidegate.sql.dialects import find
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.resource import SurfaceResource
from tidegate.surfaces.tool_context import ToolContext

_SYSTEM = """
SELECT pg_catalog.version() AS full_version,
  pg_catalog.current_setting('server_version') AS version,
  pg_catalog.current_setting('server_version_num') AS number,
  pg_catalog.current_database() AS database, current_user AS account,
  pg_catalog.host(pg_catalog.inet_server_addr()) AS host,
  pg_catalog.inet_server_port() AS port"""

_SETTINGS = """
SELECT name, setting AS current_value, unit, category, short_desc AS description,
  extra_desc AS extra_description, context, vartype AS type, source, min_val AS min_value,
  max_val AS max_value, enumvals AS enum_values, boot_val AS default_value,
  reset_val AS reset_value, pending_restart
FROM pg_catalog.pg_settings ORDER BY name"""

_POSTGRES = find("postgres")
_ACTIVITY = """
SELECT datname, pid, usename, application_name, client_addr, backend_start, state, query
FROM pg_catalog.pg_stat_activity
WHERE pid <> pg_catalog.pg_backend_pid() AND backend_type = 'client backend'
ORDER BY backend_start DESC, pid LIMIT 100"""

_REPLICATION = """
SELECT pid, usename, application_name, client_addr, client_hostname, client_port, backend_start,
  state, sync_state, replay_lag
FROM pg_catalog.pg_stat_replication ORDER BY pid"""

_LIMITS = Limits(max_rows=5_000, timeout_s=10.0)
_SECRET_SETTINGS = re.compile(
    r"conninfo|passphrase|password_?command|command$|ssl_key|krb_|_secret|_key$|_token|slot_name"
)
_SECRET_VALUES = ("current_value", "reset_value", "default_value")
_VIEW = re.compile(r"FROM pg_catalog\.(\w+)")
_VERSION = re.compile(
    r"PostgreSQL (?P<number>\S+).*? on (?P<platform>\S+?),"
    r" compiled by (?P<compiler>.*?), (?P<bits>\d+-bit)"
)


class Resources:
    """Reads the resources of the database that a call is about."""

    def __init__(self, databases: Databases, codes: ErrorCodes) -> None:
        self._databases = databases
        self._codes = codes
        self._readers: dict[str, Callable[[ToolContext, str | None], Awaitable[Any]]] = {
            "pg://system_info": self._system_info,
            "pg://settings": self._settings,
            "pg://stat/activity": self._activity,
            "pg://stat/replication": self._replication,
        }

    def readable(self) -> tuple[SurfaceResource, ...]:
        """The resources that the surface reads: each of a caller's only or default database, and
        of a source that the URI names. Which are listed depends on the caller."""
        return tuple(
            SurfaceResource(
                f"{uri}{{?source}}",
                name,
                self._reader(uri),
                title=name,
                description=description,
                announced=False,
            )
            for uri, name, description in RESOURCES
        )

    async def for_caller(self, context: ToolContext) -> Sequence[Resource]:
        """The resources of a caller: of each of its PostgreSQL sources if it has several and none
        is the default."""
        entries = await context.sources()
        own = [entry.source for entry in entries if find(entry.source.dialect) is _POSTGRES]
        if len(entries) < 2 or await self._databases.name_of(context, None) is not None:
            return [_listed(uri, name, description) for uri, name, description in RESOURCES]
        return [
            _listed(f"{uri}?source={quote(source.name)}", f"{name} ({source.name})", description)
            for source in own[:_MOST_LISTED]
            for uri, name, description in RESOURCES
        ]

    def _reader(self, uri: str) -> Callable[[ToolContext, Mapping[str, str]], Awaitable[bytes]]:
        async def read(context: ToolContext, variables: Mapping[str, str]) -> bytes:
            return await self.read(context, uri, variables.get("source"))

        return read

    async def read(self, context: ToolContext, uri: str, given: str | None) -> bytes:
        """The payload of a resource as JSON. Raises: TidegateError; KeyError for another URI."""
        source = await self._databases.name_of(context, given)
        if await self._databases.dialect_of(context, source) not in ("postgres", None):
            # What the gate says of the source itself comes first.
            await context.handle(ShowStatus(), source, ConnectionState)
            raise TidegateError(
                Code.UNSUPPORTED,
                "This resource describes a PostgreSQL server, which the source is not",
                hint="Name a source that is one.",
            )
        return msgspec.json.encode(await self._readers[uri](context, source))

    async def run(self, context: ToolContext, args: ReadArgs) -> ToolResult:
        """Answer a call of `read_resource`. Raises: TidegateError."""
        if args.list:
            listed = _listing(await self.for_caller(context))
            return ToolResult(body=listed.encode(), structured=False)
        if args.uri is None:
            raise wrong_argument("uri", "missing", "is required, or list=true", required=False)
        named, _, query = args.uri.partition("?")
        uri, source = ALIASES.get(named, named), args.source
        if query.startswith("source="):  # as a caller of several sources sees it listed
            of = unquote(query.removeprefix("source="))
            if source not in (None, of):
                what = f"is not that of the URI, {of[:80]!r}"
                raise wrong_argument("source", "value", what, required=False)
            source = of
        elif query:
            uri = args.uri
        if uri not in self._readers:
            if self._codes.is_document(context.context):
                raise self._codes.unknown_resource(args.uri, context.context)
            raise wrong_argument(
                "uri",
                "value",
                f"names no resource: {args.uri[:80]!r}",
                hint=f"Resources: {', '.join(self._readers)}.",
                required=False,
            )
        return ToolResult(body=await self.read(context, uri, source), structured=False)

    async def _rows(
        self, context: ToolContext, source: str | None, sql: str
    ) -> list[dict[str, Any]]:
        request = Query(Statement(sql), limits=_LIMITS)
        try:
            page = await self._databases.handle(context, source, request, Page, quiet=True)
        except TidegateError as error:
            if error.code not in (Code.POLICY_MASKED, Code.POLICY_TABLE):
                raise
            found = _VIEW.search(sql)
            raise TidegateError(
                error.code,
                f"This resource reads `{found[1] if found else 'the catalog'}`, which could tell of"
                " what is hidden from this caller",
                hint="A token from which nothing of this source is hidden may read it.",
                details=error.details,
            ) from None
        names = [column.name for column in page.columns]
        rows: list[list[Any]] = msgspec.json.decode(page.rows)
        return [dict(zip(names, row, strict=True)) for row in rows]

    async def _system_info(self, context: ToolContext, source: str | None) -> dict[str, Any]:
        (row,) = await self._rows(context, source, _SYSTEM)
        full = str(row["full_version"])
        found = _VERSION.match(full)
        platform = found["platform"] if found else ""
        arch, _, system = platform.partition("-")
        operating_system = _system_name(system)
        info = {
            "version": f"PostgreSQL {row['version']}",
            "os": operating_system,
            "arch": arch,
            "postgresql_version": row["version"],
            "version_number": row["number"],
            "full_version": full,
            "operating_system": system,
            "architecture": platform,
            "compiler": found["compiler"] if found else "",
            "bit_version": found["bits"] if found else "",
            "database": row["database"],
            "user": row["account"],
            "host": row["host"],
            "port": row["port"],
        }
        return {name: value for name, value in info.items() if value is not None}

    async def _settings(self, context: ToolContext, source: str | None) -> dict[str, Any]:
        rows = await self._rows(context, source, _SETTINGS)
        settings = [_without_secrets(row) for row in rows]
        return {
            "setting_count": len(settings),
            "settings": settings,
            "description": "PostgreSQL server configuration parameters",
        }

    async def _activity(self, context: ToolContext, source: str | None) -> dict[str, Any]:
        rows = await self._rows(context, source, _ACTIVITY)
        return {
            "activity_count": len(rows),
            "activities": rows,
            "description": "Current database connections, what state they are in and what"
            " they wait for; the statements of other sessions are shown as <hidden>",
        }

    async def _replication(self, context: ToolContext, source: str | None) -> dict[str, Any]:
        rows = await self._rows(context, source, _REPLICATION)
        return {
            "replica_count": len(rows),
            "replicas": rows,
            "status": "Replication is active" if rows else "No replicas are connected",
            "description": "Replication status and lag of the connected replicas",
        }


RESOURCES = (
    (
        "pg://system_info",
        "PostgreSQL System Information",
        "Returns PostgreSQL version, operating system, and architecture",
    ),
    (
        "pg://settings",
        "PostgreSQL Configuration Settings",
        "Returns the server's configuration parameters with their values and meaning",
    ),
    (
        "pg://stat/activity",
        "PostgreSQL Current Activity",
        "Returns the current connections and their state",
    ),
    (
        "pg://stat/replication",
        "PostgreSQL Replication Status",
        "Returns the connected replicas and how far behind they are",
    ),
)

ALIASES = {"pg://system-info": "pg://system_info"}
"""Another spelling that is in use."""


_MOST_LISTED = 50
"""Sources of which resources are listed; of others the tool reads them by name."""


def _listed(uri: str, name: str, description: str) -> Resource:
    return Resource(
        uri=uri, name=name, title=name, description=description, mime_type="application/json"
    )


class ReadArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    uri: (
        Annotated[str, Meta(description="The resource to read, such as pg://system_info")] | None
    ) = None
    list: Annotated[bool, Meta(description="List the resources instead")] = False
    source: Annotated[str, Meta(description="The database, if there are several")] | None = None


def read_resource_tool(resources: Resources) -> SurfaceTool:
    """The tool as the surface lists it."""
    return SurfaceTool(
        name="read_resource",
        title="Read a resource",
        description="Read an MCP resource by its URI, or list the resources there are.",
        args=ReadArgs,
        run=resources.run,
        annotations=READS,
    )


def _listing(resources: Sequence[Resource]) -> str:
    parts = [
        f"URI: {each.uri}\nName: {each.name}\nDescription: {each.description}\n"
        f"MIME Type: {each.mime_type}"
        for each in resources
    ]
    return "\n\n".join(["Available Resources:", *parts])


def _without_secrets(row: dict[str, Any]) -> dict[str, Any]:
    """A setting without what is null, and without values that may be secrets."""
    shown = {name: value for name, value in row.items() if value is not None}
    if _SECRET_SETTINGS.search(str(row["name"])):
        for name in _SECRET_VALUES:
            if shown.get(name):
                shown[name] = MASK
    return shown


_SYSTEMS = (("linux", "Linux"), ("darwin", "macOS"), ("freebsd", "FreeBSD"), ("windows", "Windows"))


def _system_name(system: str) -> str:
    return next((name for word, name in _SYSTEMS if word in system.lower()), system)
