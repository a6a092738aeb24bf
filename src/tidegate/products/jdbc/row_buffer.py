"""Keeps the rows of a page as plain Python values, beside their JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from tidegate.model.results import Column, Limits, Page
from tidegate.results.page import PageBuilder


class RowBuffer:
    """A `model.results.RowWriter`: takes a result's rows, and keeps those that a page within
    `limits` has room for."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._builder = PageBuilder((), limits)
        self._rows: list[Sequence[Any]] = []

    def begin(self, columns: tuple[Column, ...]) -> None:
        self._builder = PageBuilder(columns, self._limits)
        self._rows = []

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        if self._builder.remaining:
            self._builder.write(rows)
            self._rows += rows

    def page(self, streamed: Page) -> Page:
        """The page that the gate gave for the stream, with the rows that have room."""
        built = self._builder.page()
        cuts = (*streamed.truncations, *built.truncations)
        return structs.replace(
            streamed, rows=built.rows, row_count=built.row_count, truncations=cuts
        )

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The rows of the page, uncut."""
        return tuple([tuple(row) for row in self._rows[: self._builder.page().row_count]])
