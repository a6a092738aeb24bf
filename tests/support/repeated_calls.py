"""A kernel asked by one connection, which recognizes calls that repeat or reads each one whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from support.surface_client import READER, modern_meta
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import (
    Ask,
    Context,
    Info,
    RevisionPolicy,
    RpcError,
    Settings,
    Tool,
    ToolResult,
)
from tidegate.protocol.repeated_calls import RepeatedCalls
from tidegate.protocol.transport import Answer, TransportContext

MODERN = "2026-07-28"
HEADERS = {
    b"mcp-protocol-version": MODERN.encode(),
    b"mcp-method": b"tools/call",
    b"mcp-name": b"query",
    b"mcp-param-source": b"shop",
    b"user-agent": b"tests",
}
META = modern_meta("tests", elicitation={})
SETTINGS = Settings(RevisionPolicy((MODERN,)))
OF_THE_TRANSPORT = ("actor", "sender", "address", "cancellation", "body", "closer")
APART = frozenset({*OF_THE_TRANSPORT, "wire", "states"})
"""Fields of a request that are others in each kernel."""


_RUNNER = asyncio.Runner()
"""One loop for all frames: to make one takes longer than to answer a frame."""


class Server:
    """Notes what it is asked, and answers with it. `ask` asks the client, `fail` is a fault, and
    `change` changes its arguments. With `refuses` no list of tools is given."""

    def __init__(self, *, marked: bool = False) -> None:
        self.info, self.instructions = Info("noting", "1"), None
        self.capabilities: dict[str, Any] = {"tools": {}}
        self.methods: dict[str, Any] = {}
        mark = {"x-mcp-header": "Source"} if marked else {}
        schema = {"type": "object", "properties": {"source": {"type": "string", **mark}}}
        self._tools = (Tool("query", "", schema),)
        self.seen: list[Any] = []
        self.refuses = False
        self.transport: TransportContext | None = None
        """Of the call that is served."""

    def tools(self, context: Context) -> Sequence[Tool]:
        if self.refuses:
            raise RpcError(-32_000, "no tools now")
        return self._tools

    async def call_tool(self, context: Context, name: str, arguments: dict[str, Any]) -> ToolResult:
        said = json.dumps(arguments).encode()
        about = {k: v for k, v in structs.asdict(context).items() if k not in APART}  # type: ignore[arg-type]
        own = [getattr(context, k) is getattr(self.transport, k) for k in OF_THE_TRANSPORT]
        self.seen.append((name, said, context.revision, own, about))
        text = arguments.get("sql")
        if text == "ask":
            form = {"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}}
            await context.ask("sure", Ask("elicitation/create", form))
        if text == "fail":
            raise ValueError("a fault")
        if text == "change":
            for value in arguments.values():
                if isinstance(value, (list, dict)):
                    value.clear()
            arguments.clear()
        return ToolResult(body=said, structured=False)


class Body:
    """A response that could be sent in parts."""

    usable = True

    async def write(self, part: bytes) -> None:
        raise AssertionError(part)


class NoSender:
    open = False

    def send(self, message: bytes) -> None:
        raise AssertionError(message)

    def stop(self) -> None:
        raise AssertionError


class Side:
    """A kernel, asked by one connection."""

    def __init__(
        self,
        repeated: RepeatedCalls | None,
        *,
        marked: bool = False,
        settings: Settings = SETTINGS,
        streams: bool = False,
    ) -> None:
        """`streams`: a response may be sent in parts."""
        self.server = Server(marked=marked)
        self.kernel = Kernel(self.server, settings)  # type: ignore[arg-type]
        self.repeated = repeated
        self._streams = streams
        self._asked = 0

    def transport(self) -> TransportContext:
        """That of the next call, of which nothing is another's."""
        self._asked += 1
        return TransportContext(
            structs.replace(READER, id=f"tok_{self._asked}"),
            NoSender(),
            headers=HEADERS,
            address=f"127.0.0.{self._asked}",
            body=Body() if self._streams else None,
            repeated=self.repeated,
        )

    def ask(self, frame: bytes) -> Answer | None:
        self.server.transport = transport = self.transport()
        return _RUNNER.run(self.kernel.serve(frame, transport))

    def recognizes(self, frame: bytes) -> bool:
        assert self.repeated is not None
        return self.repeated.find(frame, self.transport()) is not None


class Sides:
    """The same frames for a kernel that recognizes and for one that reads all."""

    def __init__(self, **given: Any) -> None:
        self.short, self.whole = Side(RepeatedCalls(), **given), Side(None, **given)

    def ask(self, frame: bytes) -> bool:
        """Whether a frame is recognized. Fails unless both sides answer it alike."""
        recognized = self.short.recognizes(frame)
        assert without_state(self.short.ask(frame)) == without_state(self.whole.ask(frame)), frame
        assert self.short.server.seen == self.whole.server.seen, frame
        return recognized


def without_state(answer: Answer | None) -> Any:
    """The answer; a question carries a seal that differs each time."""
    if answer is None:
        return None
    body = json.loads(answer.frame)
    if isinstance(body.get("result"), dict):
        body["result"].pop("requestState", None)
    return body, answer.status, list(answer.headers)


def frame_of(
    id: int, arguments: dict[str, Any], *, id_last: bool = False, spaces: bool = False,
    plain: bool = True,
) -> bytes:  # fmt: skip
    params = {"name": "query", "arguments": arguments, "_meta": META}
    parts: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    if id_last:
        parts = {name: parts[name] for name in ("method", "params", "jsonrpc", "id")}
    separators = None if spaces else (",", ":")
    text = json.dumps(parts, separators=separators, ensure_ascii=not plain)
    return text.encode("utf-8", "surrogatepass")
