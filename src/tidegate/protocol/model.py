"""What a server of the Model Context Protocol offers, as values. Knows no revision and no wire.

A `Server` (below) is what the kernel serves: the surfaces build one each. Field names follow the
schema of revision 2026-07-28; `revisions.py` says which fields an older client may see.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.protocol.session_state import SessionState

if TYPE_CHECKING:  # which needs the frames, and they need the errors here
    from tidegate.protocol.long_calls import Resumed
    from tidegate.protocol.tasks import Task, Work
    from tidegate.protocol.text_stream import TextStream

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LOG_LEVELS: tuple[LogLevel, ...] = (
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip


class Annotations(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Hints of `ToolAnnotations` (since 2025-03-26)."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class Tool(msgspec.Struct, frozen=True):
    """A tool as listed. Schemas are JSON Schema objects (2020-12)."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    title: str | None = None
    output_schema: Mapping[str, Any] | None = None
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = None
    app: str = ""
    """The address of the page that shows its results (`apps.py`), in every revision."""


class Resource(msgspec.Struct, frozen=True):
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    meta: Mapping[str, Any] | None = None


class ResourceTemplate(msgspec.Struct, frozen=True):
    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


class PromptArgument(msgspec.Struct, frozen=True):
    name: str
    description: str | None = None
    required: bool = False
    title: str | None = None


class Prompt(msgspec.Struct, frozen=True):
    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()


# Content. A content block is a mapping in the protocol's own shape ({"type": "text", ...}); the
# helpers below build the common ones. Bytes are given as base64 text.

Content = Mapping[str, Any]


def text(value: str) -> Content:
    return {"type": "text", "text": value}


def image(data: str, mime_type: str) -> Content:
    return {"type": "image", "data": data, "mimeType": mime_type}


def audio(data: str, mime_type: str) -> Content:
    return {"type": "audio", "data": data, "mimeType": mime_type}


def embedded(uri: str, value: str, mime_type: str = "text/plain") -> Content:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": value}}


class ToolResult(msgspec.Struct, frozen=True):
    """The outcome of a tool call.

    `body` is the result as JSON text (UTF-8), encoded once: the kernel splices it in as
    `structuredContent` where the revision has it, and, if `content` is None, as the text of the
    one text block. `structured` False keeps it out of `structuredContent`. `shrink` gets the size
    in bytes of the whole JSON-RPC reply and returns a shorter result, or None to send this one.
    """

    content: Sequence[Content] | None = None
    body: bytes | None = None
    structured: bool = True
    is_error: bool = False
    meta: Mapping[str, Any] | None = None
    shrink: Callable[[int], ToolResult | None] | None = None


class ResourceText(msgspec.Struct, frozen=True):
    """Contents of a resource: exactly one of `text` and `blob` (base64) is set."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: Mapping[str, Any] | None = None


class PromptMessage(msgspec.Struct, frozen=True):
    role: Literal["user", "assistant"]
    content: Content


class PromptResult(msgspec.Struct, frozen=True):
    messages: Sequence[PromptMessage]
    description: str | None = None


class Completion(msgspec.Struct, frozen=True):
    values: Sequence[str]
    total: int | None = None
    has_more: bool = False


class Ask(msgspec.Struct, frozen=True):
    """Something asked of the client: `method` is `elicitation/create`, `sampling/createMessage`
    or `roots/list`; `params` in the protocol's shape.

    `volunteered` takes an answer that comes before the question did (2026-07-28). Never set it
    where the answer grants something: only a sealed state proves that the question was shown.
    """

    method: str
    params: Mapping[str, Any]
    volunteered: bool = False


class Info(msgspec.Struct, frozen=True, omit_defaults=True):
    """`Implementation`: who a client or server is."""

    name: str
    version: str
    title: str | None = None


class RpcError(Exception):
    """A JSON-RPC error reply. `status` overrides the HTTP status of the kernel's own table."""

    def __init__(
        self,
        code: int,
        message: str,
        data: Mapping[str, Any] | str | None = None,
        *,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status

    def copied(self) -> RpcError:
        """The same error without the frames that it was raised in."""
        return RpcError(self.code, self.message, self.data, status=self.status)


PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022


class Context(Protocol):
    """What a handler may know and do while it answers one request."""

    @property
    def actor(self) -> Actor: ...
    @property
    def revision(self) -> str: ...
    @property
    def client(self) -> Info: ...
    @property
    def user_agent(self) -> str:
        """The `User-Agent` of the HTTP request, empty where there is none."""
        ...

    @property
    def address(self) -> str:
        """The client's IP address, empty where it did not come over HTTP."""
        ...

    @property
    def client_capabilities(self) -> Mapping[str, Any]: ...
    @property
    def cancellation(self) -> Cancellation: ...
    @property
    def meta(self) -> Mapping[str, Any]:
        """The request's `_meta`, empty if it had none."""
        ...

    @property
    def state_id(self) -> str:
        """The id of the state that this request uses, empty if it uses none. It names the owner of
        what a session opens."""
        ...

    def new_state(self) -> SessionState:
        """State that outlives this request: that of the session, or in the stateless era a new
        one, whose `id` is the handle that the client sends with later calls."""
        ...

    waits_for: str
    """For what the call waits, as a sentence; empty if it does not."""
    work: Work | None
    """What the server knows of this call, as it goes on."""

    def find_state(self, handle: str) -> SessionState | None:
        """The state under a handle that `new_state` minted for the same actor, and use it for this
        request. None if there is none (any more)."""
        ...

    @property
    def wants_progress(self) -> bool: ...

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Send `notifications/progress`, if the caller gave a token."""
        ...

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send `notifications/message`, if the caller wants that level."""
        ...

    def can(self, capability: str) -> bool:
        """Whether the client declared a capability, such as `elicitation` or `sampling.tools`."""
        ...

    async def ask(self, key: str, ask: Ask) -> Mapping[str, Any]:
        """Ask the client and wait for its answer; `key` names the question within this call.

        In the handshake era a server request; since 2026-07-28 the call is answered with
        `input_required`, and on the retry this returns what the client sent for `key`: so code
        before an `ask` runs again on the retry and must change nothing.

        Raises: RpcError MISSING_CAPABILITY if the client cannot be asked, INVALID_PARAMS if the
        answer does not have the right shape.
        """
        ...

    async def ask_all(self, asks: Mapping[str, Ask]) -> Mapping[str, Mapping[str, Any]]:
        """Ask several things at once."""
        ...

    def text_stream(self) -> TextStream | None:
        """A way to send the text of this call's result while it is produced; the result that the
        call then returns is the rest of it. None where results are sent whole."""
        ...

    @property
    def patience_s(self) -> float | None:
        """How long the call may wait for a person; None: as long as the settings say. This and the
        next three are `model.requests.Waiter`."""
        ...

    async def begin_wait(self, what: str) -> None: ...
    async def end_wait(self) -> None: ...
    async def note_change(self) -> None: ...

    async def resume(self, id: str) -> Resumed:
        """Wait for a call of this actor that was answered before it had ended, as long as a reply
        may take. Raises: RpcError, which is then its outcome."""
        ...

    async def close_stream(self, retry_ms: int | None = None) -> None:
        """End the HTTP response stream early; the client comes back for the rest (2025-11-25)."""
        ...


BareMethod = Callable[[Context, dict[str, Any]], Awaitable[Mapping[str, Any]]]
"""Answers a JSON-RPC method that is not part of MCP. Gets the params without `_meta` and the fields
of a retry; returns the fields of the result. Raises: RpcError."""


class Server(Protocol):
    """What the kernel serves. One object serves every client, revision and transport.

    Lists are given whole and in a fixed order; the kernel pages them. `None` for an optional
    part of `capabilities` means that the server does not have it.
    """

    @property
    def info(self) -> Info: ...
    @property
    def instructions(self) -> str | None: ...
    @property
    def capabilities(self) -> Mapping[str, Any]:
        """As in `ServerCapabilities`, for the newest revision; the kernel trims it for others."""
        ...

    @property
    def methods(self) -> Mapping[str, BareMethod]:
        """Methods in addition to those of MCP, by name. A name of MCP keeps its own meaning."""
        ...

    def tools(self, context: Context) -> Sequence[Tool]: ...
    async def call_tool(
        self, context: Context, name: str, arguments: dict[str, Any]
    ) -> ToolResult: ...
    def still_running(self, context: Context, tool: str, id: str) -> ToolResult:
        """The reply to a call that goes on, for a client that knows no tasks; `id` resumes it
        (`Context.resume`). Raises: RpcError, which is then the reply."""
        ...

    def lost(self, context: Context, tool: str, words: str) -> ToolResult:
        """The reply to a call that is known from before, of which no result is here. Raises:
        RpcError, which is then the reply."""
        ...

    async def release(
        self, context: Context, task: Task, outcome: ToolResult | RpcError
    ) -> ToolResult:
        """The outcome of a call that went on after its reply, if its actor may still have it, else
        the refusal. Raises: RpcError, which is then the outcome."""
        ...

    async def resources(self, context: Context) -> Sequence[Resource]: ...
    def resource_templates(self, context: Context) -> Sequence[ResourceTemplate]: ...
    async def read_resource(self, context: Context, uri: str) -> Sequence[ResourceText]: ...
    def prompts(self, context: Context) -> Sequence[Prompt]: ...
    async def get_prompt(
        self, context: Context, name: str, arguments: Mapping[str, str]
    ) -> PromptResult: ...
    async def complete(
        self,
        context: Context,
        reference: Mapping[str, Any],
        argument: str,
        value: str,
        chosen: Mapping[str, str],
    ) -> Completion: ...
    def subscribe(self, listener: Callable[[str, str | None], None]) -> Callable[[], None]:
        """Get notified of changes: `listener(kind, uri)` with kind `tools`, `prompts`, `resources`
        (lists changed) or `resource` (that uri was updated). Returns how to stop."""
        ...


class RevisionPolicy(msgspec.Struct, frozen=True):
    """Which revisions a surface accepts, and what `initialize` answers to any other.

    `fallback` None: the newest handshake-era revision accepted that is not above the one asked
    for, else the newest.
    """

    accepted: tuple[str, ...]
    fallback: str | None = None


class Settings(msgspec.Struct, frozen=True):
    """How the kernel serves one server."""

    revisions: RevisionPolicy
    strict_lifecycle: bool = True
    page_size: int = 200
    list_ttl_ms: int = 60_000
    list_scope: Literal["public", "private"] = "private"
    error_status: Callable[[int, Info, str, str], int | None] | None = None
    """HTTP status for a JSON-RPC error code of a handler, by client, revision (empty if neither is
    known) and user agent; None: the kernel's table."""
    without_session: str | None = None
    """The revision of requests over HTTP that come without a session; None: they are refused."""
    methods_without_session: str | None = None
    """The revision of methods that are not part of MCP (`Server.methods`) and come before
    `initialize`, or over HTTP without a session; None: they are refused. An unknown method then is
    unknown, whether there is a session or not."""
    newer_fields: bool = False
    """Whether clients of 2025-03-26 are shown titles, output schemas and structured content, which
    their revision allows and does not name."""
    document_lifecycle: bool = False
    """Whether sessions follow the rules that a server's document sets beside the specification:
    batches are refused in every revision; a message without an id is a notification by its name or
    an error; `initialize` names a revision though there is a fallback, and null as the client's
    capabilities counts as absent; `notifications/initialized` counts if it has an id, and is not
    answered; `params` that are not an object are wrong parameters."""
    app_capabilities: Mapping[str, Mapping[str, Any]] = {}
    """What the server has in addition for a client that shows pages (`apps.py`)."""
    error_data: Mapping[int, Mapping[str, Any]] = {}
    """The `data` of JSON-RPC errors that have none, by their code."""
