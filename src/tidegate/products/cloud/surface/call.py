"""One call of a tool: its place among the calls, its line in the file of calls, its result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.results import SkippedCall
from tidegate.products.cloud.column_text import Rows
from tidegate.products.cloud.surface.arguments import Cut, Kept
from tidegate.products.cloud.surface.audit import CallAudit, given_arguments, query_class
from tidegate.products.cloud.surface.capacity import Capacity
from tidegate.products.cloud.surface.statement_runner import Result
from tidegate.protocol.model import ToolResult
from tidegate.protocol.model import text as text_block
from tidegate.results.notes import pages_note, partial_note
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.tool_context import ToolContext

_ENCODE = msgspec.json.Encoder().encode


class CloudCall(msgspec.Struct, frozen=True):
    """What a tool knows of its call: its caller, when it must have ended (monotonic seconds), and
    the form of the text of its result."""

    context: ToolContext
    until: float
    render: str

    def shown(self, payload: Any, text: str) -> ToolResult:
        """A typed payload with its text."""
        body = _ENCODE(payload)
        if self.render == "json":
            text = body.decode()
        return ToolResult(content=[text_block(text)], body=body)

    def rows(self, result: Result, text: str) -> ToolResult:
        """Rows with their text. What was cut is said in both, and nothing where nothing was."""
        payload: dict[str, Rows | list[Cut] | list[SkippedCall] | int | Kept | str]
        payload = {"rows": result.rows}
        if result.truncations:
            payload["truncated"] = [
                Cut(each.kind, each.limit, each.returned) for each in result.truncations
            ]
            cuts = "; ".join(
                pages_note(each)
                if each.kind == "pages"
                else f"{each.returned} shown, as the budget has no more"
                if each.kind == "budget"
                else f"{each.returned} shown, the limit of {each.kind} is {each.limit}"
                for each in result.truncations
            )
            if result.upstream is not None:
                payload |= {"calls": result.upstream.calls, "pages": result.upstream.pages}
                cuts += f" ({result.upstream.calls} calls, {result.upstream.pages} pages)"
            text = f"{text.rstrip()}\n\nTruncated: {cuts}.\n"
        if result.budget:
            payload["budget"] = result.budget
            text = f"{text.rstrip()}\n\n{result.budget}.\n"
        if result.upstream is not None and result.upstream.hits:
            hits, age_s = result.upstream.hits, round(result.upstream.age_s, 1)
            payload["cached"] = Kept(hits, age_s)
            text = (
                f"{text.rstrip()}\n\nFrom the cache: {hits} of the lists, up to {age_s:g} s old."
                " SELECT /*+ FRESH */ asks the provider.\n"
            )
        if result.upstream is not None and result.upstream.skipped:
            payload["skipped"] = list(result.upstream.skipped)
            text = f"{text.rstrip()}\n\n{partial_note(result.upstream.skipped)}.\n"
        return self.shown(payload, text)


class CallRunner:
    """Runs tools within the server's capacity, and has each call in the file of calls."""

    def __init__(self, audit: CallAudit, capacity: Capacity, render: str) -> None:
        self._audit = audit
        self._capacity = capacity
        self._render = render

    def wrap(
        self, run: Callable[[CloudCall, Any], Awaitable[ToolResult]]
    ) -> Callable[[ToolContext, Any], Awaitable[ToolResult]]:
        """The tool's function as a surface calls it."""

        async def call(context: ToolContext, arguments: Any) -> ToolResult:
            try:
                return await self._call(context, arguments, run)
            except TidegateError as error:
                shown = error.without_secrets() if context.actor.kind == "agent" else error
                raise shown from None

        return call

    async def _call(
        self,
        context: ToolContext,
        arguments: Any,
        run: Callable[[CloudCall, Any], Awaitable[ToolResult]],
    ) -> ToolResult:
        began = time.time()
        kind = query_class(arguments.sql) if _runs_sql(context, arguments) else "select"
        given = given_arguments(arguments)
        failure: TidegateError | None = None
        result = ToolResult()
        try:
            await self._audit.check(kind)
            async with self._capacity.call() as until:
                render = _format(arguments) or self._render
                result = await run(CloudCall(context, until, render), arguments)
        except TidegateError as error:
            failure = error
        except asyncio.CancelledError:
            cancelled = TidegateError(Code.CALL_CANCELLED, "The call was cancelled")
            await asyncio.shield(self._audit.record(context, given, began, kind, cancelled))
            raise
        await self._audit.record(context, given, began, kind, failure)
        if failure is not None:
            raise failure
        return result

    async def record_wrong(
        self, context: ToolContext, arguments: Mapping[str, Any], error: TidegateError
    ) -> None:
        """Write the line of a call whose arguments no tool takes (`surfaces.api.OnWrongArguments`).

        Raises: TidegateError AUDIT_UNAVAILABLE if it cannot be written.
        """
        sql = arguments.get("sql")
        kind = query_class(sql) if isinstance(sql, str) else "select"
        await self._audit.record(context, arguments, time.time(), kind, error, is_wrong=True)


def _format(arguments: Any) -> str:
    """The form that the call asks for; empty if it asks for none. Raises: TidegateError
    ARGUMENT_INVALID."""
    wanted = getattr(arguments, "format", "")
    if wanted not in ("", "markdown", "json"):
        raise wrong_argument("format", "value", "is wrong: invalid format", hint=_FORMATS)
    return wanted


_FORMATS = "Use `markdown` or `json`."


def _runs_sql(context: ToolContext, arguments: Any) -> bool:
    """Whether the tool runs the statement that it is given; to validate one is a read."""
    return hasattr(arguments, "sql") and context.tool != "validate_select_query"
