"""What a large result becomes on the wire, against an oracle written from the document's rules.

The oracle knows the document and the measured order of steps, the standard library's JSON and
nothing of ours. Both sides give the whole line that a client would read.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.surface_client import READER, Notes
from tidegate.products.datalog.surface.reply_size import first_fitting
from tidegate.products.datalog.surface.truncation import TruncationLimits, forms
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import Info, RevisionPolicy, Settings, ToolResult
from tidegate.protocol.session import Session
from tidegate.protocol.transport import TransportContext
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.surface import Primitives, Refusals, ServerProfile, Surface
from tidegate.surfaces.tool_context import Gate, ToolContext

DOCUMENT = TruncationLimits()
SMALL = TruncationLimits(items=4, reply_bytes=420, preview_items=2, preview_entries=2,
                         preview_characters=30)  # fmt: skip
DATABASE = {"database": "database-6a0b8f6e-44a1-4f5c-9f43-5d3c8e0b1f6a"}


# The oracle: one line of the wire for one request id and one structured value.


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def expected(id: Any, result: Any, limits: TruncationLimits, original: int | None = None) -> str:
    structured: dict[str, Any] = {**DATABASE, "result": result}
    cut: list[dict[str, Any]] = []
    if isinstance(result, list):
        items = cast("list[Any]", result)
        had = len(items) if original is None else original
        if had > limits.items:
            structured["result"] = items[: limits.items]
            cut.append({"kind": "items", "path": "result", "limit": limits.items,
                        "returned": limits.items, "original": had})  # fmt: skip

    def line(text: str, value: dict[str, Any]) -> str:
        content = [{"type": "text", "text": text}]
        reply = {"content": content, "structuredContent": value}
        return dumped({"jsonrpc": "2.0", "id": id, "result": reply})

    def with_records(value: Any, records: list[dict[str, Any]]) -> dict[str, Any]:
        return {**structured, "result": value, "meta": {"truncated": True, "truncations": records}}

    attempts: list[str] = []
    kept = structured["result"]
    if cut:
        attempts.append(line("Result truncated.", with_records(kept, cut)))
    else:
        attempts.append(line(dumped(structured), structured))
        attempts.append(line("See structuredContent.", structured))
    preview: Any = kept
    if isinstance(kept, str) and len(kept) > limits.preview_characters:
        preview = kept[: limits.preview_characters] + "..."
    elif isinstance(kept, list):
        preview = cast("list[Any]", kept)[: limits.preview_items]
    elif isinstance(kept, dict):
        preview = dict(list(cast("dict[str, Any]", kept).items())[: limits.preview_entries])
    for mode, shown in (("preview", preview), ("omitted", None)):
        step = {"kind": "bytes", "path": "result", "limit": limits.reply_bytes, "mode": mode}
        attempts.append(line("Result truncated.", with_records(shown, [*cut, step])))
    fitting = [each for each in attempts if len(each.encode()) <= limits.reply_bytes]
    return fitting[0] if fitting else "-32000"


# The server: a surface with one tool that answers with a result it is given.


class Nothing(msgspec.Struct):
    pass


def sent(id: Any, result: Any, limits: TruncationLimits, original: int | None = None) -> str:
    async def answer(context: ToolContext, args: Nothing) -> ToolResult:
        shown = forms(DATABASE, msgspec.json.encode(result), limits, original=original)
        return first_fitting(shown, limits.reply_bytes)

    surface = Surface(
        cast("Gate", None),
        ServerProfile(
            name="large",
            info=Info("large", "1"),
            settings=Settings(RevisionPolicy(("2025-06-18",)), strict_lifecycle=False),
            capabilities={"tools": {}},
        ),
        Primitives([SurfaceTool("large", "", Nothing, answer)]),
        Refusals(lambda error, context: ToolResult(is_error=True)),
    )

    async def run() -> str:
        kernel, session, notes = Kernel(surface, surface.settings), Session(READER), Notes()
        about = {"protocolVersion": "2025-06-18", "capabilities": {},
                 "clientInfo": {"name": "x", "version": "1"}}  # fmt: skip
        for number, method, params in (
            (0, "initialize", about),
            (id, "tools/call", {"name": "large", "arguments": {}}),
        ):
            frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            transport = TransportContext(READER, notes, session=session)  # type: ignore[arg-type]
            reply = await kernel.serve(dumped(frame).encode(), transport)
        assert reply is not None
        return reply.frame.decode()

    return asyncio.run(run())


def agrees(id: Any, result: Any, limits: TruncationLimits, original: int | None = None) -> str:
    line, wanted = sent(id, result, limits, original), expected(id, result, limits, original)
    if wanted == "-32000":
        error = json.loads(line)["error"]
        assert (error["code"], error["data"][":code"]) == (-32000, ":result-too-large")
    else:
        assert line == wanted
        assert len(line.encode()) <= limits.reply_bytes
    return wanted


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
_leaves = st.one_of(st.none(), st.booleans(), st.integers(-99, 99), _texts)
_results = st.one_of(
    _texts.map(lambda text: text * 9),
    st.lists(_leaves, max_size=9),
    st.lists(st.lists(_leaves, max_size=3), max_size=9),
    st.dictionaries(_texts, _leaves, max_size=7),
    _leaves,
)
_ids = st.one_of(st.integers(0, 9), _texts.map(lambda text: text * 6))


@given(_ids, _results, st.integers(0, 30))
@settings(max_examples=250, deadline=None)
@example("i" * 400, [], 0)
@example(1, "x" * 140, 0)
@example(1, ["y" * 200] * 5, 0)
@example(1, {"a": "b" * 300}, 0)
def test_the_line_on_the_wire_is_what_the_document_says(id: Any, result: Any, more: int) -> None:
    original = len(cast("list[Any]", result)) + more if isinstance(result, list) else None
    if original is not None and more and len(cast("list[Any]", result)) < SMALL.items:
        original = None  # a result that was cut already has as many items as the limit
    agrees(id, result, SMALL, original)


def test_the_limits_of_the_document_hold_to_the_byte() -> None:
    def size(line: str) -> int:
        return len(line.encode())

    room = DOCUMENT.reply_bytes - size(agrees(1, "", DOCUMENT)) + len(dumped(DATABASE)) + 30
    longest_alone = max(
        length for length in range(room - 200, room + 200)
        if "See structuredContent." in expected(1, "x" * length, DOCUMENT)
    )  # fmt: skip
    assert size(agrees(1, "x" * longest_alone, DOCUMENT)) == DOCUMENT.reply_bytes
    assert '"mode":"preview"' in agrees(1, "x" * (longest_alone + 1), DOCUMENT)
    assert '"mode":"preview"' in agrees(10, "x" * longest_alone, DOCUMENT)
    assert '"mode":"preview"' in agrees(1, "é" * (longest_alone // 2 + 1), DOCUMENT)
    both = agrees(1, "x" * 261_900, DOCUMENT)
    assert "See structuredContent." not in both and size(both) > 523_000


def test_a_long_list_a_wide_one_and_a_long_id_are_cut_as_measured() -> None:
    cut = json.loads(agrees(1, [[n] for n in range(684)], DOCUMENT))["result"]["structuredContent"]
    assert cut["meta"]["truncations"] == [
        {"kind": "items", "path": "result", "limit": 200, "returned": 200, "original": 684}
    ]
    counted = json.loads(agrees(1, [[n] for n in range(200)], DOCUMENT, 684))
    assert counted["result"]["structuredContent"] == cut
    wide = json.loads(agrees(1, ["y" * 5_000] * 300, DOCUMENT))["result"]["structuredContent"]
    assert len(wide["result"]) == 5
    assert [each["kind"] for each in wide["meta"]["truncations"]] == ["items", "bytes"]
    assert wide["meta"]["truncations"][0]["returned"] == 200
    assert '"mode":"omitted"' in agrees(1, ["y" * 200_000] * 5, DOCUMENT)
    assert agrees("i" * 600_000, [], DOCUMENT) == "-32000"


def test_other_members_of_meta_stay_in_each_form() -> None:
    limits = TruncationLimits(items=2, preview_items=1)
    for result in (b"[1]", b"[1,2,3]"):
        for form in forms({"id": "x"}, result, limits, meta={"note": "why"}):
            assert json.loads(form.body)["meta"]["note"] == "why"
