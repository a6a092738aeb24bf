"""`switch_database` and `switch_schema`: where the caller's later statements run."""

from __future__ import annotations

import msgspec

from tidegate.actors import Scope
from tidegate.calls import Switch
from tidegate.protocol.model import ToolResult
from tidegate.replies import ConnectionState
from tidegate.surfaces.tool import SurfaceTool
from tidegate.surfaces.turn import Turn
from tidegate.surfaces.workbench.calls import (
    DatabaseName,
    OnConnection,
    SchemaName,
    answer,
    catalog_of,
    check_database,
    hints,
)


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


async def _switch_database(turn: Turn, args: ToDatabase) -> ToolResult:
    await check_database(turn, args.source, args.database)
    await turn.handle(Switch(database=args.database), args.source, ConnectionState)
    return answer(SwitchedDatabase("switched", args.database))


async def _switch_schema(turn: Turn, args: ToSchema) -> ToolResult:
    await catalog_of(turn, args.source, schema=args.schema)
    await turn.handle(Switch(schema=args.schema), args.source, ConnectionState)
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
