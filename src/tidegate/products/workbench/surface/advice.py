"""What the extended workbench says after a mistake: the nearest names, the cast, values that exist.

With the caller's rights, as all of it is read through the gate. Of a database other than the one
that the caller is connected to it says nothing, as it would search for the names in the wrong one.
"""

from __future__ import annotations

from msgspec import structs

from tidegate.errors import TidegateError
from tidegate.model.requests import Explain, Query
from tidegate.model.results import Page
from tidegate.search.vocabulary import may_be_mistaken
from tidegate.surfaces.tool_context import ToolContext

_FIND = "Find it with find_tables."


async def run_with_advice(
    context: ToolContext, source: str, request: Query | Explain, *, reads_only: bool = False
) -> Page:
    """The page that the request returns. Its status says which values are like those that no row
    has. Raises: TidegateError with a hint at what may have been meant."""
    sql = request.statement.text
    advises = request.database is None
    try:
        page = await context.handle(request, source, Page, reads_only=reads_only)
    except TidegateError as error:
        if not advises:
            raise
        from tidegate.search.suggestions import advise

        raise await advise(error, context, source, sql, find=_FIND) from None
    if advises and may_be_mistaken(page, sql):
        from tidegate.search.suggestions import note_on_nothing

        note = await note_on_nothing(sql, context, source)
        if note:
            return structs.replace(page, status="; ".join(filter(None, (page.status, note))))
    return page
