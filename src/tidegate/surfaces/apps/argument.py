"""The argument `chart` of tools, as clients that show pages are shown it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

ChartArgument = Annotated[
    dict[str, Any],
    Meta(
        description="Vega-Lite: mark bar|line|area|point|rect, encoding x, y, color"
        " (field, type, aggregate, bin, timeUnit, sort, stack). Reads only",
        extra_json_schema={"type": "object"},
    ),
]
