"""A surface with state: a tool opens a basket of the memory engine, which ends with its session.

Everything goes through the gate, the closing as well. In the stateless era the tool's answer holds
a handle by which a later call finds the state.
"""

from __future__ import annotations

import msgspec

from tidegate.model.requests import Operation
from tidegate.model.results import Document
from tidegate.protocol.model import Info, RevisionPolicy, Settings, ToolResult
from tidegate.protocol.revisions import ALL
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.core.errors import render_error
from tidegate.surfaces.surface import Primitives, Refusals, ServerProfile, Surface
from tidegate.surfaces.tool_context import Gate, ToolContext


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


class Put(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    item: int
    handle: str = ""


class Opened(msgspec.Struct):
    handle: str


class Basket(msgspec.Struct):
    basket: str


async def _open(context: ToolContext, args: Nothing) -> ToolResult:
    state = context.new_state()
    document = await context.handle(Operation("basket.open"), None, Document)
    basket = msgspec.json.decode(document.json, type=Basket).basket
    state["basket"] = basket

    async def close() -> None:
        await context.handle(Operation("basket.close", {"basket": basket}), None, Document)

    state.on_close(close)
    return ToolResult(body=msgspec.json.encode(Opened(state.id)))


async def _put(context: ToolContext, args: Put) -> ToolResult:
    state = context.find_state(args.handle) if args.handle else context.new_state()
    basket = None if state is None else state.get("basket")
    arguments = {"basket": basket, "item": args.item}
    document = await context.handle(Operation("basket.put", arguments), None, Document)
    return ToolResult(body=document.json)


def surface(gate: Gate) -> Surface:
    return Surface(
        gate,
        ServerProfile(
            name="baskets",
            info=Info("baskets", "1"),
            settings=Settings(RevisionPolicy(ALL)),
            capabilities={"tools": {}},
        ),
        Primitives(
            (
                SurfaceTool("open", "Open a basket", Nothing, _open),
                SurfaceTool("put", "Put an item into the basket", Put, _put),
            )
        ),
        Refusals(render_error),
    )
