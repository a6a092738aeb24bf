"""A call that is recognized by its bytes is answered as the same frame is when it is read whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from support.surface_client import READER
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import Ask, Context, Info, RevisionPolicy, Settings, Tool, ToolResult
from tidegate.protocol.repeated_calls import MOST_LEARNED, RepeatedCalls
from tidegate.protocol.transport import Answer, TransportContext

MODERN = "2026-07-28"
HEADERS = {
    b"mcp-protocol-version": MODERN.encode(),
    b"mcp-method": b"tools/call",
    b"mcp-name": b"query",
    b"mcp-param-source": b"shop",
    b"user-agent": b"tests",
}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["SELECT 1", "SELECT 'ü'", '"', "\\", '","id":9,"x":"', "\u2028"]),
    st.sampled_from(["ask", "fail"]),
)
SPOILERS = st.sampled_from([b"", b'"', b"\\", b"\xff", b"0", b" "])
IDS = st.one_of(st.integers(0, 10**20), st.sampled_from([0, 1, 17, 10**17, 10**18]))


class Server:
    """Notes what it is asked, and answers with it; `ask` asks the client, `fail` is a fault."""

    def __init__(self, *, marked: bool) -> None:
        self.info, self.instructions = Info("noting", "1"), None
        self.capabilities: dict[str, Any] = {"tools": {}}
        self.methods: dict[str, Any] = {}
        mark = {"x-mcp-header": "Source"} if marked else {}
        schema = {"type": "object", "properties": {"source": {"type": "string", **mark}}}
        self._tools = (Tool("query", "", schema),)
        self.seen: list[Any] = []

    def tools(self, context: Context) -> Sequence[Tool]:
        return self._tools

    async def call_tool(self, context: Context, name: str, arguments: dict[str, Any]) -> ToolResult:
        about = (context.client, context.client_capabilities, context.meta, context.revision)
        self.seen.append((name, arguments, context.actor.id, context.address, *about))
        if arguments.get("sql") == "ask":
            form = {"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}}
            await context.ask("sure", Ask("elicitation/create", form))
        if arguments.get("sql") == "fail":
            raise ValueError("a fault")
        return ToolResult(body=json.dumps(arguments).encode(), structured=False)


class NoSender:
    open = False

    def send(self, frame: bytes) -> None:
        raise AssertionError(frame)


class Side:
    """A kernel, asked by one connection."""

    def __init__(self, repeated: RepeatedCalls | None, *, marked: bool) -> None:
        self.server = Server(marked=marked)
        self.kernel = Kernel(self.server, Settings(RevisionPolicy((MODERN,))))  # type: ignore[arg-type]
        self.repeated = repeated

    def ask(self, frame: bytes) -> Answer | None:
        transport = TransportContext(
            READER, NoSender(), headers=HEADERS, address="127.0.0.1", repeated=self.repeated
        )
        return asyncio.run(self.kernel.serve(frame, transport))


def frame_of(
    id: int, arguments: dict[str, Any], *, id_last: bool, spaces: bool, plain: bool
) -> bytes:
    params = {"name": "query", "arguments": arguments, "_meta": META}
    parts: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    if id_last:
        parts = {name: parts[name] for name in ("method", "params", "jsonrpc", "id")}
    separators = None if spaces else (",", ":")
    text = json.dumps(parts, separators=separators, ensure_ascii=not plain)
    return text.encode("utf-8", "surrogatepass")


def without_state(answer: Answer | None) -> Any:
    """The answer; a question carries a seal that differs each time."""
    if answer is None:
        return None
    body = json.loads(answer.frame)
    if isinstance(body.get("result"), dict):
        body["result"].pop("requestState", None)
    return body, answer.status, list(answer.headers)


CALLS = st.lists(
    st.tuples(
        IDS, TEXTS, st.none() | st.integers(0, 400), SPOILERS
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@given(
    calls=CALLS, id_last=st.booleans(), spaces=st.booleans(), plain=st.booleans(),
    marked=st.booleans(), others=st.sampled_from([{}, {"source": "shop"}, {"source": "other"}]),
)  # fmt: skip
@example(
    calls=[(1, "SELECT 1", None, b""), (2, "SELECT 2", 60, b"0")],
    id_last=False, spaces=False, plain=True, marked=False, others={},
)  # fmt: skip
def test_every_frame_is_answered_as_if_nothing_had_come_before(
    calls: list[tuple[int, str, int | None, bytes]],
    id_last: bool,
    spaces: bool,
    plain: bool,
    marked: bool,
    others: dict[str, Any],
) -> None:
    """`calls` are ids and texts of frames, and where a frame is spoilt and by what."""
    short, whole = Side(RepeatedCalls(), marked=marked), Side(None, marked=marked)
    first = (3, "SELECT id, name FROM customers", None, b"")
    for id, text, spoilt, by in (first, *calls):
        frame = frame_of(id, {"sql": text, **others}, id_last=id_last, spaces=spaces, plain=plain)
        if spoilt is not None:
            frame = frame[:spoilt] + by + frame[spoilt + 1 :]
        assert without_state(short.ask(frame)) == without_state(whole.ask(frame)), frame
        assert short.server.seen == whole.server.seen


def test_a_repeated_call_is_recognized_in_either_order_of_its_fields() -> None:
    for id_last in (False, True):
        repeated = RepeatedCalls()
        side = Side(repeated, marked=False)
        for id in range(1, 4):
            frame = frame_of(id, {"sql": f"SELECT {id}"}, id_last=id_last, spaces=False, plain=True)
            transport = TransportContext(READER, NoSender(), headers=HEADERS, repeated=repeated)
            assert (repeated.find(frame, transport) is not None) == (id > 1)
            side.ask(frame)


def test_a_client_that_repeats_nothing_is_not_looked_at_without_end() -> None:
    repeated = RepeatedCalls()
    side = Side(repeated, marked=False)
    for id in range(1, MOST_LEARNED + 1):
        side.ask(frame_of(id, {"sql": "x", "n": id}, id_last=False, spaces=False, plain=True))
    last = {"sql": "SELECT 1", "n": 0}
    side.ask(frame_of(99, last, id_last=False, spaces=False, plain=True))
    again = frame_of(100, last, id_last=False, spaces=False, plain=True)
    transport = TransportContext(READER, NoSender(), headers=HEADERS, repeated=repeated)
    assert repeated.find(again, transport) is None
