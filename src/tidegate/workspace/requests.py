"""Requests about windows and tabs of the workspace, and the replies to them. Frozen."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from tidegate.model.requests import Request, metadata
from tidegate.model.statements import Judgement

WINDOWS = metadata("window", "opens, shows or lists windows of the workspace")


class OpenWindow(Request, frozen=True):
    """Open a window of the workspace on the source, or bring the one there is to the front."""

    kind: ClassVar[str] = "window"
    judgement: ClassVar[Judgement | None] = WINDOWS
    spans_sources: ClassVar[bool] = True


class OpenTable(Request, frozen=True):
    """Open a tab on a table; the same table again is the same tab."""

    kind: ClassVar[str] = "window"
    judgement: ClassVar[Judgement | None] = WINDOWS
    spans_sources: ClassVar[bool] = True

    table: str
    database: str | None = None
    schema: str | None = None


class FocusTab(Request, frozen=True):
    """Bring a tab and its window to the front."""

    kind: ClassVar[str] = "window"
    judgement: ClassVar[Judgement | None] = WINDOWS
    spans_sources: ClassVar[bool] = True

    tab_id: str


class ListTabs(Request, frozen=True):
    """List the open tabs, the one last in front first."""

    kind: ClassVar[str] = "window"
    judgement: ClassVar[Judgement | None] = WINDOWS
    spans_sources: ClassVar[bool] = True

    limit: int = 20


class OpenQuery(Request, frozen=True):
    """Open a query tab on the source."""

    kind: ClassVar[str] = "window"
    judgement: ClassVar[Judgement | None] = WINDOWS
    spans_sources: ClassVar[bool] = True

    title: str
    text: str = ""
    database: str | None = None
    schema: str | None = None


class OpenView(Request, frozen=True):
    """Open a tab that shows something of a source; the same view again is the same tab, except for
    a terminal and a table by form."""

    kind: ClassVar[str] = "window"
    judgement: ClassVar[Judgement | None] = WINDOWS
    spans_sources: ClassVar[bool] = True

    view: Literal["createTable", "erDiagram", "serverDashboard", "terminal"]
    title: str
    table: str | None = None
    database: str | None = None
    schema: str | None = None


class WriteTab(Request, frozen=True):
    """Keep what a person has written in a tab, over the version that its page has read."""

    kind: ClassVar[str] = "window"
    judgement: ClassVar[Judgement | None] = WINDOWS
    spans_sources: ClassVar[bool] = True

    tab_id: str
    version: int
    text: str | None = None
    title: str | None = None
    position: float | None = None
    chart: str | None = None
    """The chart of its results as JSON, empty for none."""


class CloseTab(Request, frozen=True):
    """Close a tab."""

    kind: ClassVar[str] = "window"
    judgement: ClassVar[Judgement | None] = WINDOWS
    spans_sources: ClassVar[bool] = True

    tab_id: str


class ReopenTab(Request, frozen=True):
    """Open the tab again that was closed last."""

    kind: ClassVar[str] = "window"
    judgement: ClassVar[Judgement | None] = WINDOWS
    spans_sources: ClassVar[bool] = True


class Window(msgspec.Struct, frozen=True):
    """A window of the workspace. `is_delivered`: a page that shows it is attached now."""

    id: str
    source: str
    is_delivered: bool = False


class Tab(msgspec.Struct, frozen=True):
    """A tab in a window; `source` is the source's name. Times are Unix seconds. `opened_by` names
    the caller who opened it, empty for a person at a page; `version` grows with what is written."""

    id: str
    window_id: str
    source: str
    kind: Literal["query", "table", "createTable", "erDiagram", "serverDashboard", "terminal"]
    title: str
    is_active: bool
    focused_at: float
    table: str | None = None
    database: str | None = None
    schema: str | None = None
    is_delivered: bool = False
    text: str = ""
    position: float = 0.0
    opened_by: str = ""
    opened_at: float = 0.0
    version: int = 1
    chart: str = ""


class WrittenTab(msgspec.Struct, frozen=True):
    """The tab as it is now, and whether it is as its page has written it."""

    tab: Tab
    written: bool


class ClosedTab(msgspec.Struct, frozen=True):
    """A tab was closed."""


class Tabs(msgspec.Struct, frozen=True):
    """Open tabs, the one last in front first."""

    tabs: tuple[Tab, ...]

    @property
    def row_count(self) -> int:
        return len(self.tabs)
