"""`confirm_destructive_operation`: the phrase here, the person at the gate."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tidegate.config.model import LimitSettings
from tidegate.model.actors import Scope
from tidegate.model.requests import Query
from tidegate.model.results import Page
from tidegate.model.statements import Statement
from tidegate.products.workbench.surface.calls import OnConnection, answer, hints
from tidegate.products.workbench.surface.execution import Executed, executed, limits_of
from tidegate.protocol.model import ToolResult
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.confirmation import PHRASE, check_phrase
from tidegate.surfaces.tool_context import ApprovalTerms, ToolContext

_CONFIRMED = ApprovalTerms(confirmed=True)


class Confirmation(OnConnection, frozen=True):
    query: Annotated[str, Meta(description="One DROP, TRUNCATE or ALTER...DROP statement")]
    confirmation_phrase: Annotated[str, Meta(description=f"Exactly: {PHRASE}")]


def confirm_destructive_operation(settings: LimitSettings) -> SurfaceTool:
    """The tool. What runs through it still needs a person's approval, as the gate decides."""
    limits = limits_of(settings)

    async def confirm(context: ToolContext, args: Confirmation) -> ToolResult:
        source = args.source
        check_phrase(args.confirmation_phrase, "confirmation_phrase")
        request = Query(Statement(args.query), limits=limits, cells="text")
        return answer(executed(await context.handle(request, source, Page, terms=_CONFIRMED)))

    return SurfaceTool(
        name="confirm_destructive_operation",
        title="Confirm Destructive Operation",
        description=(
            "Run a DROP, TRUNCATE or ALTER...DROP, or a change of every row of a table, after the"
            " exact phrase of confirmation. A person may be asked to approve it."
        ),
        args=Confirmation,
        run=confirm,
        output=Executed,
        scope=Scope.READ_WRITE,
        annotations=hints(reads=False, destroys=True, repeatable=False, open_world=True),
    )
