"""How the workbench shows errors: JSON-RPC codes, the document's words, and HTTP statuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NoReturn

from tidegate.errors import Code, TidegateError
from tidegate.products.workbench.surface.policy_words import refusal_words
from tidegate.protocol.model import INVALID_PARAMS, METHOD_NOT_FOUND, Context, Info, RpcError
from tidegate.protocol.revisions import MODERN
from tidegate.surfaces.api import ErrorRenderer
from tidegate.surfaces.hints import Guide
from tidegate.surfaces.tool_context import ToolContext

ErrorStatus = Literal["auto", "seed", "compat"]
StatusOf = Callable[[int, Info, str, str], int]

_TABLE = {
    -32700: 400,
    -32600: 400,
    -32603: 500,
    -32001: 401,
    -32004: 404,
    -32005: 413,
    -32007: 403,
    -32008: 401,
    -32000: 503,
}
_NOT_FOUND = -32004
_WHERE = ("sqlstate", "position")
"""What a database says of the place and the kind of an error, in the error's data."""
_PREFIXES = {
    -32000: "Server error",
    -32001: "Unauthenticated",
    -32002: "Request cancelled",
    -32003: "Request timeout",
    -32004: "Resource not found",
    -32005: "Payload too large",
    -32007: "Forbidden",
    -32008: "Token expired",
    -32602: "Invalid params",
    -32603: "Internal error",
}
_WORDS = {
    Code.SOURCE_UNKNOWN: "Connection not found",
    Code.SOURCE_NOT_CONNECTED: "Connection is not open",
    Code.SQL_TOO_LONG: "Query exceeds 100KB limit",
    Code.SQL_MULTIPLE: "Multi-statement queries are not supported. Send one statement at a time.",
}


GUIDE = Guide(
    tables="See the tables with list_tables.",
    columns="See its columns with describe_table.",
    sources="See the connections with list_connections.",
    codes={
        Code.POLICY_CONFIRM: "Confirm it with confirm_destructive_operation.",
        Code.SOURCE_NOT_CONNECTED: "Open it with connect.",
        Code.TAB_UNKNOWN: "Use a tab of list_recent_tabs.",
        Code.LIMIT_TIME: "Narrow the statement or raise timeout_seconds.",
    },
)


def status_rule(mode: ErrorStatus) -> StatusOf:
    """The HTTP status of a JSON-RPC error code for a client at a revision, with its user agent.

    `seed` is the document's table. `compat` is always 200, as the original did: the official
    Python SDK 1.x loses its session on anything else, and the TypeScript SDK shows the reply as a
    failure of the transport. `auto` is the table, and 200 for these two.
    """

    def status_of(code: int, client: Info, revision: str, agent: str) -> int:
        if mode == "compat":
            return 200
        if mode == "auto" and (_loses_its_session(client, revision) or _hides_the_reply(agent)):
            return 200
        return _TABLE.get(code, 200)

    return status_of


def _loses_its_session(client: Info, revision: str) -> bool:
    """Whether it may be the Python SDK 1.x. The 2.x gives the same name and version, and in the
    handshake era it cannot be distinguished from the other; the stateless era is its alone."""
    named = client.name == "mcp" and client.version.startswith(("0.", "1."))
    return named and revision not in MODERN


def _hides_the_reply(agent: str) -> bool:
    """Whether it may be the TypeScript SDK, which reads no JSON-RPC error from another status than
    200: it runs on Node, whose requests name it, or another runtime of that language."""
    return agent.lower().startswith(("node", "undici", "deno", "bun/"))


def error_renderer(status_of: StatusOf) -> ErrorRenderer:
    """Raises every TidegateError as the JSON-RPC error that the document names for it."""

    def render(error: TidegateError, context: ToolContext) -> NoReturn:
        code, status = error.mapping.rpc, error.mapping.http
        if error.code is Code.SOURCE_UNKNOWN and context.tool.startswith("resource:"):
            code, status = _NOT_FOUND, 404
        words = _words(error, context)
        prefix = _PREFIXES.get(code)
        asked = context.context
        plain = status_of(code, asked.client, asked.revision, asked.user_agent) == 200
        where = {name: error.details[name] for name in _WHERE if name in error.details}
        if error.retry_after_s is not None:
            where["retry_after_s"] = error.retry_after_s
        raise RpcError(
            code,
            f"{prefix}: {words}" if prefix else words,
            {"code": error.code.value, "hint": _hint(error), **where},
            status=200 if plain else status,
        )

    return render


def _words(error: TidegateError, context: ToolContext) -> str:
    parameter = error.details.get("parameter")
    if parameter is not None:
        return _words_on_argument(parameter, error)
    if error.code is Code.POLICY_SCOPE and not context.actor.scope.covers(context.scope):
        return f"Tool '{context.tool}' requires additional scopes"
    if error.code is Code.POLICY_CONFIRM:
        return _words_on_confirmation(error)
    return refusal_words(error) or _WORDS.get(error.code, error.message)


def _words_on_confirmation(error: TidegateError) -> str:
    if error.details.get("effect") == "destructive":
        what = "Destructive queries (DROP, TRUNCATE, ALTER...DROP)"
    else:
        what = "Changes of every row of a table"
    return f"{what} cannot be executed via execute_query. Use confirm_destructive_operation."


def _words_on_argument(parameter: str, error: TidegateError) -> str:
    problem = error.details.get("problem")
    if problem == "value":
        return error.message
    if problem == "uuid":
        return f"Invalid UUID for parameter: {parameter}"
    if error.details.get("required"):
        return f"Missing required parameter: {parameter}"
    return f"Invalid value for parameter: {parameter}"


def _hint(error: TidegateError) -> str:
    """What to do; of an argument of the wrong type, what is wrong with it."""
    if error.details.get("problem") == "type":
        return f"{error.message}."
    return GUIDE.hint(error)


def unknown_tool(name: str, context: Context) -> NoReturn:
    raise RpcError(METHOD_NOT_FOUND, f"Method not found: tools/call:{name}")


def unknown_resource(status_of: StatusOf) -> Callable[[str, Context], RpcError]:
    """An unknown URI is 404: the one case of -32601 that the table does not send with 200. Since
    2026-07-28 a method that is not there is -32601 and 404, and a resource is a wrong parameter."""

    def refuse(uri: str, context: Context) -> RpcError:
        if context.revision in MODERN:
            return RpcError(INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})
        found = status_of(_NOT_FOUND, context.client, context.revision, context.user_agent)
        status = 404 if found == 404 else 200
        message = f"Method not found: resources/read:{uri}"
        return RpcError(METHOD_NOT_FOUND, message, status=status)

    return refuse
