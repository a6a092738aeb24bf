"""`connect` and `close`: the database of a JDBC URL, or a source by its name."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from tidegate.config.sources import SOURCE_NAME
from tidegate.errors import Code, TidegateError
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Connect, ListSources
from tidegate.model.sources import Source
from tidegate.products.jdbc.engine.known_databases import known_database_of
from tidegate.products.jdbc.engine.native_url import DRIVERS
from tidegate.products.jdbc.requests import OpenedJdbc, OpenJdbc
from tidegate.products.jdbc.result_types import CONNECTOR_J
from tidegate.products.jdbc.surface.connections import Connection, ConnectionTable
from tidegate.surfaces.arguments import EMPTY_COUNTS
from tidegate.surfaces.tool_context import ToolContext

WARNINGS = (
    "Use this MCP connection only against non-sensitive databases (local/dev/test), not"
    " production.",
    "Never expose credentials in prompts, logs, screenshots, or committed files.",
)
GUIDANCE: Mapping[str, Any] = {
    "recommendation": "Use environment variables or a secrets manager and inject credentials at"
    " runtime.",
    "avoid": ["hardcoded passwords", "plaintext secrets in scripts"],
}
"""The words of the document."""

_BY_ENGINE = {"postgres": "postgresql", "mysql": "mysql", "sqlite": "sqlite", "duckdb": "duckdb"}

Text = str | None


class ConnectArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: Annotated[
        str,
        Meta(
            description="JDBC URL, the name of a source, or a reference to an environment variable:"
            " ${DB_URL} or env:DB_URL"
        ),
    ]
    user: Annotated[str, Meta(description="User, or ${DB_USER}")] | None = None
    password: (
        Annotated[str, Meta(description="Use ${DB_PASSWORD}, not the password", extra=EMPTY_COUNTS)]
        | None
    ) = None
    driver: Annotated[str, Meta(description="Driver class; found from the URL")] | None = None
    dependency: Annotated[str, Meta(description="groupId:artifactId:version")] | None = None
    repository: Annotated[str, Meta(description="Base URL of a Maven repository")] | None = None


class CloseArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    connection_id: Annotated[str, Meta(description="The id of `connect`")]


class Connector:
    """Opens and closes the connections of callers."""

    def __init__(self, connections: ConnectionTable) -> None:
        self._connections = connections

    async def connect(self, context: ToolContext, args: ConnectArgs) -> Mapping[str, Any]:
        """Open a connection; returns the fields of the reply. Raises: TidegateError."""
        async with self._connections.order(context):
            with self._connections.room(context):
                if SOURCE_NAME.fullmatch(args.url):
                    return await self._by_name(context, args.url)
                return await self._by_url(context, args)

    async def close(self, context: ToolContext, args: CloseArgs) -> Mapping[str, Any]:
        """Close a connection; returns the fields of the reply. Raises: TidegateError."""
        async with self._connections.order(context):
            connection = await self._connections.find(context, args.connection_id)
            await self._connections.close(connection)
            return {"status": "closed", "connectionId": connection.id}

    async def _by_url(self, context: ToolContext, args: ConnectArgs) -> Mapping[str, Any]:
        request = OpenJdbc(
            f"jdbc-{uuid.uuid4()}",
            args.url,
            user=args.user,
            password=args.password,
            driver=args.driver,
            dependency=args.dependency,
            repository=args.repository,
        )
        opened = await context.handle(request, None, OpenedJdbc)
        driver = _Driver(opened.driver, opened.native, opened.dependency, opened.note)
        connection = Connection(
            context,
            opened.source.name,
            opened.source.dialect,
            temporary=True,
            redact=opened.redact,
            process=opened.process,
            types=driver.types,
        )
        await self._connections.add(connection)
        return _reply(connection, driver)

    async def _by_name(self, context: ToolContext, name: str) -> Mapping[str, Any]:
        try:
            state = await context.handle(Connect(), name, ConnectionState)
        except TidegateError as error:
            if error.code is not Code.SOURCE_UNKNOWN:
                raise
            raise TidegateError(
                Code.SOURCE_URL,
                f"{name} is neither a JDBC URL nor the name of a source that you may use.",
                hint="Write it like jdbc:postgresql://host:port/database.",
            ) from None
        entries = await context.sources(ListSources(keys=(name,)))
        if not entries:
            raise TidegateError(Code.SOURCE_UNKNOWN, f"There is no source {name!r}")
        source = entries[0].source
        driver = _driver_of(source, state)
        connection = Connection(
            context, source.name, source.dialect, temporary=False, types=driver.types
        )
        await self._connections.add(connection)
        return _reply(connection, driver)


class _Driver(NamedTuple):
    """What a reply says of the driver: the name of its class, and the coordinate that it came
    by."""

    name: str
    native: bool
    dependency: str | None = None
    note: str = ""

    @property
    def types(self) -> str:
        """What names the types of its columns where no driver does; empty for the dialect."""
        return CONNECTOR_J if self.native and self.name == DRIVERS["mysql"] else ""


def _driver_of(source: Source, state: ConnectionState) -> _Driver:
    if source.engine == "jdbc":
        options = dict(source.options)
        loaded = state.current.driver if state.current is not None else ""
        name = loaded or options.get("driver") or known_database_of(source.url).driver
        return _Driver(name, False, options.get("driver_coordinate"))
    # Two databases have one engine, and drivers of their own.
    scheme = source.url.partition(":")[0].lower()
    known = scheme if scheme in DRIVERS else _BY_ENGINE.get(source.engine, "")
    return _Driver(DRIVERS.get(known, ""), True)


def _reply(connection: Connection, driver: _Driver) -> dict[str, Any]:
    reply: dict[str, Any] = {
        "id": connection.id,
        "status": "connected",
        "driver": driver.name,
        "dependency": driver.dependency,
        "driverSource": "maven" if driver.dependency else "classpath",
        "securityWarnings": WARNINGS,
        "credentialGuidance": GUIDANCE,
        "engine": "native" if driver.native else "jdbc",
        "dialect": connection.dialect,
    }
    if driver.note:
        reply["note"] = driver.note
    return reply
