"""The document's thirteen tools: each writes a statement of its arguments and shows its rows."""

from __future__ import annotations

import platform
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from tidegate import __version__
from tidegate.config.errors import invalid
from tidegate.engines.registry import locate
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Disconnect, ListSources
from tidegate.products.cloud.column_text import records, table
from tidegate.products.cloud.language.statements import read_statement
from tidegate.products.cloud.surface import statements
from tidegate.products.cloud.surface.arguments import (
    MESSAGES_SCHEMA,
    ROWS_SCHEMA,
    VALIDATION_SCHEMA,
    DescribeMethodArgs,
    ListArgs,
    MethodArgs,
    NoArgs,
    PullArgs,
    QueryArgs,
    RegistryArgs,
    ResourceArgs,
    SearchArgs,
    ServerInfo,
    ServiceArgs,
    Validation,
    with_format,
)
from tidegate.products.cloud.surface.audit import query_class
from tidegate.products.cloud.surface.call import CloudCall
from tidegate.products.cloud.surface.prompts import PROMPTS
from tidegate.products.cloud.surface.settings import CloudSurfaceSettings
from tidegate.products.cloud.surface.statement_runner import StatementRunner, is_select
from tidegate.protocol.model import Annotations, ToolResult
from tidegate.sql.finding import Refusal
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.tool_context import ToolContext

Run = Callable[[CloudCall, Any], Awaitable[ToolResult]]

DESPATCHED = "The operation was despatched successfully"
COMPLETED = "The operation completed successfully"

_READS = Annotations(read_only_hint=True, open_world_hint=True)
_PULLS = Annotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True
)
_CHANGES = Annotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)
_QUERIES = Annotations(open_world_hint=True)

_ABOUT_SQL = frozenset({
    Code.SQL_EMPTY, Code.SQL_TOO_LONG, Code.SQL_TOO_DEEP, Code.SQL_MULTIPLE, Code.SQL_UNREADABLE,
    Code.SQL_UNKNOWN, Code.SQL_FUNCTION, Code.SQL_FAILED, Code.TABLE_UNKNOWN,
    Code.ARGUMENT_INVALID, Code.UNSUPPORTED,
})  # fmt: skip
"""Errors that say that a query is not valid, and not that it could not be checked."""


class CloudTools:
    """The tools over one runner of statements."""

    def __init__(self, runner: StatementRunner, settings: CloudSurfaceSettings) -> None:
        self._runner = runner
        self._settings = settings

    async def server_info(self, call: CloudCall, args: NoArgs) -> ToolResult:
        context = call.context
        registry = await self._registry(context)
        mode = self._settings.mode
        info = ServerInfo(
            version=__version__,
            platform=f"{platform.system().lower()}_{platform.machine()}",
            transport="http" if context.context.address else "stdio",
            sql_backend="sqlite3",
            provider_registry=registry,
            mode=mode,
            is_read_only=mode == "read_only",
        )
        return call.shown(info, records("Server Info", [msgspec.structs.asdict(info)]))

    async def _registry(self, context: ToolContext) -> str:
        try:
            name = await self._runner.source(context)
            (entry,) = await context.sources(ListSources(keys=(name,)))
        except (TidegateError, ValueError):
            return ""  # there is none that this caller may see
        place = locate(entry.source.url)
        if place.host:
            return f"postgresql://{place.host}:{place.port}/{place.database}"
        return f"file://{place.database}"

    async def list_providers(self, call: CloudCall, args: ListArgs) -> ToolResult:
        return await self._table(call, "SHOW PROVIDERS", args.row_limit)

    async def list_services(self, call: CloudCall, args: ServiceArgs) -> ToolResult:
        path = statements.path(provider=args.provider)
        return await self._table(call, f"SHOW SERVICES IN {path}", args.row_limit)

    async def list_resources(self, call: CloudCall, args: ResourceArgs) -> ToolResult:
        path = statements.path(provider=args.provider, service=args.service)
        return await self._table(call, f"SHOW RESOURCES IN {path}", args.row_limit)

    async def list_methods(self, call: CloudCall, args: MethodArgs) -> ToolResult:
        path = statements.path(provider=args.provider, service=args.service, resource=args.resource)
        return await self._table(call, f"SHOW METHODS IN {path}", args.row_limit)

    async def describe_resource(self, call: CloudCall, args: MethodArgs) -> ToolResult:
        path = statements.path(provider=args.provider, service=args.service, resource=args.resource)
        result = await self._runner.run(
            call.context, f"DESCRIBE {path}", args.row_limit, call.until
        )
        return call.rows(result, records("Resource", result.rows))

    async def describe_method(self, call: CloudCall, args: DescribeMethodArgs) -> ToolResult:
        path = statements.path(
            provider=args.provider,
            service=args.service,
            resource=args.resource,
            method=args.method,
        )
        text = f"DESCRIBE METHOD EXTENDED {path}"
        result = await self._runner.run(call.context, text, args.row_limit, call.until)
        return call.rows(result, records("Method", result.rows))

    async def list_registry(self, call: CloudCall, args: RegistryArgs) -> ToolResult:
        text = "REGISTRY LIST"
        if args.provider:
            text += f" {statements.name(args.provider, 'provider')}"
        wanted = args.version and statements.version(args.version)
        result = await self._runner.run(call.context, text, 0, call.until)
        if wanted:
            rows = [
                {**row, "versions": wanted} if "versions" in row else row
                for row in result.rows
                if any(wanted in str(value).split(", ") for value in row.values())
            ]
            result = msgspec.structs.replace(result, rows=rows)
        return call.rows(result, table(result.rows))

    async def pull_provider(self, call: CloudCall, args: PullArgs) -> ToolResult:
        text = f"REGISTRY PULL {statements.name(args.provider, 'provider')}"
        if args.version:
            text += f" {statements.version(args.version)}"
        result = await self._runner.run(call.context, text, 0, call.until)
        messages = [str(value) for row in result.rows for value in row.values()]
        status = [result.status] if result.status else []
        return _messages(call, "Pull Result", messages or status or [COMPLETED], [])

    async def validate_select_query(self, call: CloudCall, args: QueryArgs) -> ToolResult:
        plan: list[dict[str, Any]] = []
        try:
            _check_select(args.sql)
            found = await self._runner.run(
                call.context, f"EXPLAIN {args.sql}", args.row_limit, call.until
            )
        except Refusal as refusal:
            problem = refusal.error().in_full
        except TidegateError as error:
            if error.code not in _ABOUT_SQL:
                raise
            problem = error.in_full
        else:
            plan, problem = found.rows, ""
        errors = [problem] if problem else []
        shown: dict[str, Any] = {"valid": not errors, "errors": _json(errors or None)}
        if errors or plan:
            shown["explain_output"] = _json(plan or None)
        validation = Validation(valid=not errors, errors=errors, explain_output=plan)
        return call.shown(validation, records("Validation Result", [shown]))

    async def run_select_query(self, call: CloudCall, args: QueryArgs) -> ToolResult:
        if query_class(args.sql) == "select":
            return await self._table(call, args.sql, args.row_limit)
        # A change that came through this tool: without a word it would look as if nothing was done.
        result = await self._runner.run(call.context, args.sql, args.row_limit, call.until)
        message = result.status or DESPATCHED
        shown = f"\n{table(result.rows)}" if result.rows else ""
        return call.shown({"rows": result.rows, "messages": [message]}, f"{message}\n{shown}")

    async def run_mutation_query(self, call: CloudCall, args: QueryArgs) -> ToolResult:
        return await self._change(call, args, "Mutation Result")

    async def run_lifecycle_operation(self, call: CloudCall, args: QueryArgs) -> ToolResult:
        return await self._change(call, args, "Lifecycle Result")

    async def search_resources(self, call: CloudCall, args: SearchArgs) -> ToolResult:
        words = args.words.replace("'", "''")
        return await self._table(call, f"SHOW RESOURCES MATCHING '{words}'", args.row_limit)

    async def reload_credentials(self, call: CloudCall, args: NoArgs) -> ToolResult:
        found = await self._runner.run(call.context, "SHOW PROVIDERS", 0, call.until)
        source = await self._runner.source(call.context)
        (entry,) = await call.context.sources(ListSources(keys=(source,)))
        if locate(entry.source.url).host:
            raise TidegateError(
                Code.UNSUPPORTED,
                "The logins are at the backing server, which reads them before each request.",
                hint="There is nothing to reload.",
            )
        await call.context.handle(Disconnect(), source, ConnectionState)
        names = [str(row["name"]) for row in found.rows]
        message = f"Logins are read again before the next request to: {', '.join(names) or 'none'}"
        return _messages(call, "Reload Result", [message], [])

    async def _table(self, call: CloudCall, text: str, row_limit: int) -> ToolResult:
        result = await self._runner.run(call.context, text, row_limit, call.until)
        return call.rows(result, table(result.rows))

    async def _change(self, call: CloudCall, args: QueryArgs, title: str) -> ToolResult:
        result = await self._runner.run(call.context, args.sql, args.row_limit, call.until)
        return _messages(call, title, [result.status or DESPATCHED], result.rows)


def _check_select(sql: str) -> None:
    """Raises: Refusal; TidegateError SQL_UNKNOWN for what is no query."""
    if not is_select(read_statement(sql)):
        raise TidegateError(
            Code.SQL_UNKNOWN, "Only a SELECT is validated.", hint="Send a SELECT statement."
        )


def _messages(
    call: CloudCall, title: str, messages: list[str], rows: list[dict[str, Any]]
) -> ToolResult:
    now = datetime.fromtimestamp(time.time(), UTC)
    payload: dict[str, Any] = {
        "messages": messages,
        "timestamp": f"{now.isoformat(timespec='seconds')} UTC",
    }
    text = records(title, [payload])
    if rows:
        payload["rows"] = rows
        text += f"\n{table(rows)}"
    return call.shown(payload, text)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


_TOOLS: tuple[tuple[str, str, type[msgspec.Struct], Annotations, Any], ...] = (
    (
        "server_info",
        "Identity of the server: version, SQL dialect, where the provider documents are, mode."
        " Call once at the start.",
        NoArgs,
        _READS,
        ServerInfo,
    ),
    (
        "list_providers",
        "The cloud and SaaS providers that can be queried: the top of the hierarchy.",
        ListArgs,
        _READS,
        ROWS_SCHEMA,
    ),
    ("list_services", "The services of a provider.", ServiceArgs, _READS, ROWS_SCHEMA),
    (
        "list_resources",
        "The resources of a provider's service: what statements name as provider.service.resource.",
        ResourceArgs,
        _READS,
        ROWS_SCHEMA,
    ),
    (
        "list_methods",
        "The methods of a resource, the SQL verb of each, and the parameters that a WHERE clause"
        " must bind. Call before writing a statement.",
        MethodArgs,
        _READS,
        ROWS_SCHEMA,
    ),
    (
        "describe_resource",
        "The columns that a SELECT from a resource gives.",
        MethodArgs,
        _READS,
        ROWS_SCHEMA,
    ),
    (
        "describe_method",
        "All that one method takes and gives.",
        DescribeMethodArgs,
        _READS,
        ROWS_SCHEMA,
    ),
    (
        "list_registry",
        "The providers in the registry, or all versions of one.",
        RegistryArgs,
        _READS,
        ROWS_SCHEMA,
    ),
    (
        "pull_provider",
        "Fetch a provider's documents from the registry into the local cache.",
        PullArgs,
        _PULLS,
        MESSAGES_SCHEMA,
    ),
    (
        "validate_select_query",
        "Parse and plan a SELECT without running it: {valid, errors}, and for each resource the"
        " method, its parameters and its calls. Sends no request.",
        QueryArgs,
        _READS,
        VALIDATION_SCHEMA,
    ),
    ("run_select_query", "Run a SELECT: {rows}.", QueryArgs, _QUERIES, ROWS_SCHEMA),
    (
        "run_mutation_query",
        "Run INSERT, UPDATE, REPLACE or DELETE at the provider, with real effects: {messages,"
        " timestamp}. The server's mode may refuse it or ask a person.",
        QueryArgs,
        _CHANGES,
        MESSAGES_SCHEMA,
    ),
    (
        "run_lifecycle_operation",
        "Run EXEC provider.service.resource.method @name='value', with real effects: {messages,"
        " timestamp}. The server's mode may refuse it or ask a person.",
        QueryArgs,
        _CHANGES,
        MESSAGES_SCHEMA,
    ),
)
_EXTENDED: tuple[tuple[str, str, type[msgspec.Struct], Annotations, Any], ...] = (
    (
        "search_resources",
        "Find resources of all providers by words of their paths: one call in place of the walk"
        " down.",
        SearchArgs,
        _READS,
        ROWS_SCHEMA,
    ),
    (
        "reload_credentials",
        "Read the logins of all providers again. Shows names of providers and no value.",
        NoArgs,
        _PULLS,
        MESSAGES_SCHEMA,
    ),
)
_SCOPES = {"reload_credentials": Scope.READ_WRITE}
"""It ends the statements of others on the source."""
TOOL_NAMES = tuple(name for name, *_ in _TOOLS)
EXTENDED_NAMES = tuple(name for name, *_ in _EXTENDED)


def make_tools(
    tools: CloudTools,
    wrap: Callable[[Run], Callable[[ToolContext, Any], Awaitable[ToolResult]]],
    *,
    extended: bool,
) -> list[SurfaceTool]:
    """The tools in the document's order, and with `extended` those that it does not have and the
    argument `format`. `wrap` makes a tool's function of one over `CloudCall`."""
    return [
        SurfaceTool(
            name,
            description,
            with_format(args) if extended else args,
            wrap(getattr(tools, name)),
            scope=_SCOPES.get(name, Scope.READ_ONLY),
            annotations=annotations,
            **({"output_schema": output} if isinstance(output, dict) else {"output": output}),
        )
        for name, description, args, annotations, output in (
            *_TOOLS,
            *(_EXTENDED if extended else ()),
        )
    ]


def check_names(settings: CloudSurfaceSettings) -> None:
    """Refuse lists that name a tool or a prompt that does not exist: it would be missing without a
    word. Raises: TidegateError CONFIG_INVALID."""
    from difflib import get_close_matches

    prompts = tuple(prompt.name for prompt in PROMPTS)
    tools = TOOL_NAMES + (EXTENDED_NAMES if settings.extended else ())
    for setting, given, known in (
        ("enabled_tools", settings.enabled_tools, tools),
        ("enabled_prompts", settings.enabled_prompts, prompts),
    ):
        for name in given:
            if name not in known:
                near = get_close_matches(name, known, 1)
                raise invalid(
                    f"`surface.cloud.{setting}` names {name[:80]!r}, which does not exist.",
                    hint=f"Did you mean `{near[0]}`?" if near else f"There are {', '.join(known)}.",
                )
