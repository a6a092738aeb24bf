"""`switch_database` and `switch_schema`: where the caller's later statements run."""

from __future__ import annotations

import msgspec

from tidegate.model.actors import Scope
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Switch
from tidegate.products.workbench.surface.calls import (
    DatabaseName,
    OnConnection,
    SchemaName,
    answer,
    catalog_of,
    check_database,
    hints,
)
from tidegate.protocol.model import ToolResult
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.tool_context import ToolContext


class ToDatabase(OnConnection, frozen=True):
    database: DatabaseName


class ToSchema(OnConnection, frozen=True):
    schema: SchemaName


class SwitchedDatabase(msgspec.Struct, frozen=True):
    status: str
    current_database: str


class SwitchedSchema(msgspec.Struct, frozen=True):
    status: str
    current_schema: str


async def _switch_database(context: ToolContext, args: ToDatabase) -> ToolResult:
    await check_database(context, args.source, args.database)
    await context.handle(Switch(database=args.database), args.source, ConnectionState)
    return answer(SwitchedDatabase("switched", args.database))


async def _switch_schema(context: ToolContext, args: ToSchema) -> ToolResult:
    await catalog_of(context, args.source, schema=args.schema)
    await context.handle(Switch(schema=args.schema), args.source, ConnectionState)
    return answer(SwitchedSchema("switched", args.schema))


TOOLS = (
    SurfaceTool(
        name="switch_database",
        title="Switch Database",
        description="Run your later statements on this connection in another database.",
        args=ToDatabase,
        run=_switch_database,
        output=SwitchedDatabase,
        scope=Scope.READ_WRITE,
        annotations=hints(reads=False),
    ),
    SurfaceTool(
        name="switch_schema",
        title="Switch Schema",
        description="Run your later statements on this connection in another schema.",
        args=ToSchema,
        run=_switch_schema,
        output=SwitchedSchema,
        scope=Scope.READ_WRITE,
        annotations=hints(reads=False),
    ),
)
