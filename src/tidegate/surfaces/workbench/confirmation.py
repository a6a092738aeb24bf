"""`confirm_destructive_operation`: the phrase here, the person at the gate."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tidegate.actors import Scope
from tidegate.calls import Query
from tidegate.config.model import LimitSettings
from tidegate.errors import Code, GateError
from tidegate.pages import Page
from tidegate.protocol.model import ToolResult
from tidegate.statements import Statement
from tidegate.surfaces.tool import SurfaceTool
from tidegate.surfaces.turn import Turn
from tidegate.surfaces.workbench.calls import ConnectionId, answer, hints, uuid_of
from tidegate.surfaces.workbench.execution import Executed, executed, limits_of

PHRASE = "I understand this is irreversible"


class Confirmation(msgspec.Struct, frozen=True):
    connection_id: ConnectionId
    query: Annotated[str, Meta(description="One DROP, TRUNCATE or ALTER...DROP statement")]
    confirmation_phrase: Annotated[str, Meta(description=f"Exactly: {PHRASE}")]


def confirm_destructive_operation(settings: LimitSettings) -> SurfaceTool:
    """The tool. What runs through it still needs a person's approval, as the gate decides."""
    limits = limits_of(settings)

    async def confirm(turn: Turn, args: Confirmation) -> ToolResult:
        source = uuid_of(args.connection_id, "connection_id")
        if args.confirmation_phrase != PHRASE:
            raise GateError(
                Code.ARGUMENT_INVALID,
                f"invalid confirmation: confirmation_phrase must be exactly: {PHRASE}",
            )
        request = Query(Statement(args.query), limits, "text")
        return answer(executed(await turn.handle(request, source, Page, confirmed=True)))

    return SurfaceTool(
        name="confirm_destructive_operation",
        title="Confirm Destructive Operation",
        description=(
            "Run a DROP, TRUNCATE or ALTER...DROP, or an UPDATE or DELETE without WHERE, after the"
            " exact phrase of confirmation. A person may be asked to approve it."
        ),
        args=Confirmation,
        run=confirm,
        output=Executed,
        scope=Scope.READ_WRITE,
        annotations=hints(reads=False, destroys=True, repeatable=False, open_world=True),
    )
