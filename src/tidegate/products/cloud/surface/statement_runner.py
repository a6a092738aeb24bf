"""Sends a tool's statement through the gate, and gives its rows as objects in SELECT order."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.config.model import LimitSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page, Truncation, UpstreamUse
from tidegate.model.statements import Statement
from tidegate.products.cloud.column_text import unique_names
from tidegate.products.cloud.language.statements import ReadStatement
from tidegate.products.cloud.surface.capacity import Capacity
from tidegate.products.cloud.surface.settings import CloudSurfaceSettings
from tidegate.surfaces.tool_context import ToolContext

ENGINE = "cloud"


class Result(msgspec.Struct, frozen=True):
    """What a statement gave: rows as objects, what was cut of them, what was sent for them, and
    what is left of a budget."""

    rows: list[dict[str, Any]]
    truncations: tuple[Truncation, ...] = ()
    affected: int = 0
    status: str | None = None
    upstream: UpstreamUse | None = None
    budget: str = ""


class StatementRunner:
    """Runs statements on the source that the surface is about."""

    def __init__(
        self, settings: CloudSurfaceSettings, limits: LimitSettings, capacity: Capacity
    ) -> None:
        self._settings = settings
        self._limits = limits
        self._capacity = capacity

    async def run(self, context: ToolContext, text: str, row_limit: int, until: float) -> Result:
        """The result of a statement. `row_limit` 0 means the default; `until` is when the call
        must have ended.

        Raises: TidegateError, whatever the gate refuses or the source says.
        """
        rows = min(row_limit or self._settings.default_rows, self._limits.max_rows)
        source = await self.source(context)
        async with self._capacity.statement(until) as timeout_s:
            limits = Limits(
                max_rows=rows,
                max_bytes=self._limits.max_bytes,
                timeout_s=min(timeout_s, self._limits.max_timeout_s),
            )
            request = Query(statement=Statement(text), limits=limits)
            page = await context.handle(request, source, Page)
        names = unique_names([column.name for column in page.columns])
        values: list[list[Any]] = msgspec.json.decode(page.rows)
        return Result(
            [dict(zip(names, row, strict=True)) for row in values],
            page.truncations,
            page.affected,
            page.status,
            page.upstream,
            page.budget,
        )

    async def source(self, context: ToolContext) -> str:
        """The name of the source: the one of the settings, else the only one of this kind that the
        caller may see. Raises: TidegateError SOURCE_UNKNOWN."""
        if self._settings.source is not None:
            return self._settings.source
        names = [
            entry.source.name for entry in await context.sources() if entry.source.engine == ENGINE
        ]
        if len(names) == 1:
            return names[0]
        if not names:
            raise TidegateError(
                Code.SOURCE_UNKNOWN,
                "There is no source of cloud providers that this caller may use",
                hint="The operator can add one: its URL is cloud:///FOLDER, with the documents.",
            )
        raise TidegateError(
            Code.SOURCE_UNKNOWN,
            f"There are several sources of cloud providers: {', '.join(sorted(names)[:8])}",
            hint="The operator can name one as `surface.cloud.source`.",
        )


def is_select(read: ReadStatement) -> bool:
    """Whether the statement is a query over resources, and no command."""
    return read.statement_class == "select" and getattr(read.statement, "verb", "") == "select"
