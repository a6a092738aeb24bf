"""The memory engine's own request: how many rows each table has."""

from __future__ import annotations

from typing import ClassVar

from tidegate.model.requests import EngineRequest


class CountAll(EngineRequest, frozen=True):
    """Count the rows of every table, or of every one that has rows."""

    kind: ClassVar[str] = "count_all"

    empty: bool = True

    def recorded_text(self) -> str | None:
        return "count all"
