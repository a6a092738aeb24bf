"""Tools newer than the workbench's document, offered in addition to its 19 when the settings say
so."""

from __future__ import annotations

from tidegate.config.model import LimitSettings
from tidegate.products.workbench.surface.extended import dashboard, keys, search
from tidegate.products.workbench.surface.extended.browse import browsing_tools
from tidegate.products.workbench.surface.extended.insert import insert_rows
from tidegate.products.workbench.surface.extended.plan import explain_query
from tidegate.surfaces.api import SurfaceTool


def extended_tools(settings: LimitSettings) -> tuple[SurfaceTool, ...]:
    """The newer tools, in a fixed order."""
    return (
        *search.TOOLS,
        *keys.TOOLS,
        *browsing_tools(settings),
        explain_query(settings),
        *dashboard.TOOLS,
        insert_rows(settings),
    )
