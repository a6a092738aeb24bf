"""One page of the sources that an actor may see. A cursor is the place of the last one, by name, so
it stays right when sources are added or removed meanwhile."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from tidegate.errors import Code, TidegateError
from tidegate.model.replies import SourceEntry
from tidegate.model.requests import ListSources
from tidegate.surfaces.tool_context import ToolContext

_SAVED, _TEMPORARY = "s", "t"


async def page_of_sources(
    context: ToolContext, limit: int, cursor: str | None
) -> tuple[tuple[SourceEntry, ...], str | None]:
    """Up to `limit` sources after the cursor's place, and the cursor of the next page, if any.

    Raises: TidegateError ARGUMENT_INVALID for an invalid cursor.
    """
    after = None if cursor is None else _place(cursor)
    entries = await context.sources(ListSources(after=after, limit=limit + 1))
    if len(entries) <= limit:
        return entries, None
    return entries[:limit], _cursor(entries[limit - 1])


def _cursor(entry: SourceEntry) -> str:
    # Sources of the command line are ephemeral as well, and have a place among the saved ones.
    kind = _TEMPORARY if entry.temporary else _SAVED
    return urlsafe_b64encode(f"{kind}{entry.source.name}".encode()).decode().rstrip("=")


def _place(cursor: str) -> tuple[bool, str]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        text = urlsafe_b64decode(padded.encode("ascii")).decode()
    except ValueError:
        text = ""
    if text[:1] not in (_SAVED, _TEMPORARY):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "The cursor is not one of this list",
            hint="Use the cursor of the answer before, or none to begin again.",
        )
    return text[0] == _TEMPORARY, text[1:]
