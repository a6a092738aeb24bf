"""Handles of calls that still run, for surfaces that have a tool to wait on: `core`.

A client that gives a call up after a minute would lose a statement of five. So it gets a handle in
time, and the tool that fetches more of a result waits for this one as well.
"""

from __future__ import annotations

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.protocol.model import ToolResult
from tidegate.surfaces.tool_context import ToolContext

PREFIX = "call-"
_RUNS = "still running; call more with this handle to wait for the result"


def still_running(id: str) -> ToolResult:
    """The reply to a call that goes on."""
    body = msgspec.json.encode({"note": _RUNS, "more": f"{PREFIX}{id}"})
    return ToolResult(body=body, structured=False)


async def resume(context: ToolContext, handle: str) -> ToolResult:
    """The result of the call under that handle, or that it still runs.

    Raises: TidegateError RESULT_GONE; RpcError, as the call itself.
    """
    id = handle.removeprefix(PREFIX)
    resumed = await context.context.resume(id)
    if resumed.lost:
        raise TidegateError(Code.RESULT_GONE, resumed.lost, hint="")  # the words say what to do
    return still_running(id) if resumed.result is None else resumed.result
