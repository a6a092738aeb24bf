"""Every name that is sent: attributes, metrics, and the closed sets of their values.

MCP: open-telemetry/semantic-conventions-genai, docs/gen-ai/mcp.md (status: Development; the names
in the Python package of conventions are older and deprecated). Databases: semantic-conventions,
docs/database. Names that begin with `tidegate.` are ours. What the conventions have besides is left
out where it would hold text of a caller or of a database, or is a secret: `db.query.text`,
`db.collection.name`, `db.namespace`, `gen_ai.tool.call.arguments`, `mcp.resource.uri`,
`mcp.session.id`, `client.address`, and the description of a status.
"""

from __future__ import annotations

from typing import Final

from tidegate.tracing import OTHER

SCOPE: Final = "tidegate"
"""The name of the instrumentation."""

MCP_METHOD: Final = "mcp.method.name"
MCP_REVISION: Final = "mcp.protocol.version"
TOOL: Final = "gen_ai.tool.name"
PROMPT: Final = "gen_ai.prompt.name"
GEN_AI_OPERATION: Final = "gen_ai.operation.name"
EXECUTE_TOOL: Final = "execute_tool"
REQUEST_ID: Final = "jsonrpc.request.id"
RPC_STATUS: Final = "rpc.response.status_code"
ERROR: Final = "error.type"
TOOL_ERROR: Final = "tool_error"
CANCELLED: Final = "cancelled"
FAULT: Final = "_OTHER"
TRANSPORT: Final = "network.transport"
PIPE: Final = "pipe"
TCP: Final = "tcp"
PROTOCOL: Final = "network.protocol.name"
HTTP: Final = "http"

DB_SYSTEM: Final = "db.system.name"
DB_OPERATION: Final = "db.operation.name"

CALL_ID: Final = "tidegate.call.id"
"""The call as records name it; of a request that sends several, the first."""
CALL_IDS: Final = "tidegate.call.ids"
"""All of them, where there are several; at most `MOST_CALLS`."""
MOST_CALLS: Final = 16
CODE: Final = "tidegate.error.code"
SOURCE: Final = "tidegate.source"
SURFACE: Final = "tidegate.surface"
REQUEST: Final = "tidegate.request"
"""What a call that came by no request of MCP asks for, such as `query`."""

SERVICE_NAME: Final = "service.name"
SERVICE_VERSION: Final = "service.version"
SERVICE_INSTANCE: Final = "service.instance.id"

MCP_DURATION: Final = "mcp.server.operation.duration"
SESSION_DURATION: Final = "mcp.server.session.duration"
MCP_SECONDS: Final = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)
OVERFLOW: Final = "otel.metric.overflow"
DB_DURATION: Final = "db.client.operation.duration"
DB_SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
"""The buckets that the conventions advise."""

_SYSTEMS: Final = {
    "postgres": "postgresql",
    "h2": "h2database",
    "spark": "spark.sql",
}
"""`db.system.name` by dialect, where they differ; `spark.sql` is ours."""
_OTHER_SYSTEM: Final = "other_sql"

_OPERATIONS: Final = frozenset({
    *("select", "insert", "update", "delete", "merge", "replace", "upsert", "truncate"),
    *("copy", "ddl", "exec", "create", "alter", "drop", "grant", "revoke", "explain", "analyze"),
    *("vacuum", "show", "set", "reset", "use", "describe", "begin", "start", "commit"),
    *("rollback", "savepoint", "release", "values", "with", "table", "pragma", "attach"),
    *("detach", "reindex", "refresh", "comment", "listen", "notify", "browse", "prepare"),
    *("query", "operation", "change_rows", "undo", "server", "join", "sample", "rows"),
    *("more", "other"),
})  # fmt: skip
"""What statements may be called: the first word of one that the gate does not know is its
caller's."""


def system_of(dialect: str) -> str:
    """The database's product, by the dialect of the source, which is one that the gate has."""
    return _SYSTEMS.get(dialect, dialect) or _OTHER_SYSTEM


def operation_of(word: str) -> str:
    """The word for what a statement does, if it is one of ours."""
    return word if word in _OPERATIONS else OTHER
