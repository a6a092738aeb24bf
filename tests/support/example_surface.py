"""A small surface that uses every part of the surface API, over a real gateway.

`python tests/support/example_surface.py --stdio DIRECTORY` or `--http PORT DIRECTORY` serves it
over an SQLite database in that directory.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))


from support.surface_gateway import SqliteGate, sqlite_source
from tidegate.edges.edge import Edge
from tidegate.edges.http.application import HttpApplication
from tidegate.edges.http.edge import HttpEdge
from tidegate.edges.http.endpoint import Endpoint, HttpConventions
from tidegate.edges.listening import bind
from tidegate.edges.stdio import StdioEdge
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog
from tidegate.model.statements import Statement
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import (
    Completion,
    Context,
    Info,
    PromptArgument,
    PromptMessage,
    PromptResult,
    RevisionPolicy,
    Settings,
    ToolResult,
    text,
)
from tidegate.protocol.revisions import ALL
from tidegate.surfaces.api import (
    OnRejectedCall,
    SurfaceMethod,
    SurfacePrompt,
    SurfaceTool,
)
from tidegate.surfaces.core.errors import render_error
from tidegate.surfaces.resource import SurfaceResource
from tidegate.surfaces.surface import CallConventions, Primitives, Refusals, ServerProfile, Surface
from tidegate.surfaces.tool_context import Gate, ToolContext

MOST_BYTES = 2_000
READER = Actor("reader", "reader", Scope.READ_ONLY)


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


class TableArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    table: str


class Rows(msgspec.Struct):
    rows: list[Any]
    truncated: bool = False


async def _names(context: ToolContext) -> list[str]:
    catalog = await context.handle(Browse("catalog"), None, Catalog)
    return sorted(table.name for table in catalog.tables)


async def _rows(context: ToolContext, args: TableArgs) -> ToolResult:
    if args.table not in await _names(context):
        raise TidegateError(Code.TABLE_UNKNOWN, f"Table not found: {args.table}")
    statement = Statement(f'SELECT * FROM "{args.table}"')
    page = await context.handle(Query(statement, limits=Limits()), None, Page)
    return ToolResult(body=msgspec.json.encode(Rows(msgspec.json.decode(page.rows))))


async def _erase(context: ToolContext, args: TableArgs) -> ToolResult:
    statement = Statement(f'DELETE FROM "{args.table}" WHERE 1 = 1')
    await context.handle(Query(statement, limits=Limits()), None, Page)
    return ToolResult(content=[text("erased")])


async def _interview(context: ToolContext, args: Nothing) -> ToolResult:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form = await context.ask("name", "What is your name?", schema)
    if form is None:
        return ToolResult(content=[text("declined")])
    messages = [{"role": "user", "content": text("Name a capital.")}]
    answer = await context.sample("capital", messages, max_tokens=10, system="Be brief.")
    return ToolResult(content=[text(f"{form['name']}, {answer['content']['text']}")])


async def _connect(context: ToolContext, args: Nothing) -> Mapping[str, Any]:
    return {"tables": await _names(context), "actor": context.actor.name}


async def _record(context: ToolContext, args: TableArgs) -> Rows:
    result = await _rows(context, args)
    return msgspec.json.decode(result.body or b"", type=Rows)


async def _close(context: ToolContext, args: Nothing) -> Mapping[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    return {"closed": await context.ask("close", "Close it?", schema) is not None}


async def _review(context: ToolContext, arguments: Mapping[str, str]) -> PromptResult:
    return PromptResult([PromptMessage("user", text(f"Review the table {arguments['table']}."))])


async def _complete_table(
    context: ToolContext, value: str, chosen: Mapping[str, str]
) -> Completion:
    return Completion([name for name in await _names(context) if name.startswith(value)])


async def _read_table(context: ToolContext, variables: Mapping[str, str]) -> bytes:
    return msgspec.json.encode({"table": variables["table"]})


def _before_arguments(tool: SurfaceTool, context: ToolContext) -> None:
    if not context.actor.scope.covers(tool.scope):
        raise TidegateError(Code.POLICY_SCOPE, f"{tool.name} is for writers")


def _unknown_tool(name: str, context: Context) -> ToolResult:
    return ToolResult(content=[text(f"no tool {name}")], is_error=True)


def _shrink(context: ToolContext, result: ToolResult, size: int) -> ToolResult | None:
    if size <= MOST_BYTES or result.body is None or not result.structured:
        return None
    shown = msgspec.json.decode(result.body, type=Rows)
    rows = shown.rows[: len(shown.rows) * MOST_BYTES // size]
    return ToolResult(body=msgspec.json.encode(Rows(rows, truncated=True)))


def surface(gate: Gate, *, on_rejected_call: OnRejectedCall | None = None) -> Surface:
    """The surface over `gate`."""
    return Surface(
        gate,
        ServerProfile(
            name="example",
            info=Info("example", "1"),
            settings=Settings(RevisionPolicy(ALL)),
            capabilities={"tools": {}, "prompts": {}, "completions": {}, "resources": {}},
        ),
        Primitives(
            tools=(
                SurfaceTool("rows", "Rows of a table", TableArgs, _rows),
                SurfaceTool("erase", "Erase a table", TableArgs, _erase, scope=Scope.READ_WRITE),
                SurfaceTool("interview", "Ask and sample", Nothing, _interview),
            ),
            resources=(
                SurfaceResource(
                    "example://{table}", "table", _read_table, completers={"table": _complete_table}
                ),
            ),
            prompts=(
                SurfacePrompt(
                    "review",
                    _review,
                    arguments=(PromptArgument("table", required=True), PromptArgument("tone")),
                    completers={"table": _complete_table},
                ),
            ),
            methods=(
                SurfaceMethod("connect", Nothing, _connect),
                SurfaceMethod("record", TableArgs, _record),
                SurfaceMethod("close", Nothing, _close),
            ),
        ),
        Refusals(render_error=render_error, unknown_tool=_unknown_tool),
        CallConventions(
            before_arguments=_before_arguments,
            shrink=_shrink,
        ),
        on_rejected_call=on_rejected_call,
    )


def build_database(directory: Path) -> Path:
    """`items` with 500 rows, and `empty`."""
    path = directory / "example.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE items (id INTEGER, name TEXT)")
        connection.execute("CREATE TABLE empty (id INTEGER)")
        rows = [(number, f"item {number}") for number in range(500)]
        connection.executemany("INSERT INTO items VALUES (?, ?)", rows)
    connection.close()
    return path


async def _serve(transport: str, port: str | None, directory: Path) -> None:
    gate = SqliteGate(directory, sqlite_source(directory / "example.db"))
    rejected = directory / "rejected.txt"

    def on_rejected_call(context: Context, tool: str, reason: str) -> None:
        with rejected.open("a") as file:
            file.write(f"{tool}: {reason}\n")

    async with gate.opened():
        served = surface(gate, on_rejected_call=on_rejected_call)
        kernel = Kernel(served, served.settings)
        if transport == "--stdio":
            edge: Edge = StdioEdge(kernel, READER)
        else:
            application = HttpApplication(
                [Endpoint("/mcp", kernel, HttpConventions())], lambda token, client: READER
            )
            edge = HttpEdge(application, bind("127.0.0.1", int(port or 0)))
        await _run(edge)


async def _run(edge: Edge) -> None:
    """Until a signal, or the end of the edge."""
    stop = asyncio.Event()
    for sent in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sent, stop.set)
    await edge.start()
    ends = [asyncio.ensure_future(wait) for wait in (edge.wait_ended(), stop.wait())]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    await edge.stop(1.0)


if __name__ == "__main__":
    flag, *middle, last = sys.argv[1:]
    asyncio.run(_serve(flag, middle[0] if middle else None, Path(last)))
