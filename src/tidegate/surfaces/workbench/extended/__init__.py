"""Tools newer than the workbench's document, offered in addition to its 19 when the settings say
so."""

from __future__ import annotations

from tidegate.config.model import LimitSettings
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.workbench.extended import dashboard, keys, search
from tidegate.surfaces.workbench.extended.browse import browsing_tools
from tidegate.surfaces.workbench.extended.insert import insert_rows
from tidegate.surfaces.workbench.extended.plan import explain_query


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
