"""What the gate answers: the reply, and what it carries for each request. Frozen."""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.metadata import Description, Status
from tidegate.pages import Page
from tidegate.sources import Source


class ConnectionState(msgspec.Struct, frozen=True):
    """Where a source's connection stands; times are Unix seconds, None while never connected."""

    status: Literal["connected", "connecting", "disconnected", "error"]
    current: Status | None = None
    connected_at: float | None = None
    last_active_at: float | None = None
    error: str | None = None


class SourceEntry(msgspec.Struct, frozen=True):
    """One line of a source listing, as the actor may see it."""

    source: Source
    state: ConnectionState


class HistoryEntry(msgspec.Struct, frozen=True):
    """A statement that was run. `at` is in Unix seconds; `id` is given by the store.

    `text` and `error` hold no secrets: `History.add` sees to it.
    """

    text: str
    source: str
    at: float
    actor: str = ""
    surface: str = ""
    tool: str = ""
    database: str = ""
    dialect: str = ""
    elapsed_ms: float = 0.0
    row_count: int = 0
    success: bool = True
    error: str = ""
    id: int = 0


class HistoryFound(msgspec.Struct, frozen=True):
    """What a search of the history found, newest first."""

    entries: tuple[HistoryEntry, ...]


class Window(msgspec.Struct, frozen=True):
    """A window of the console. `is_delivered`: a page that shows it is attached now."""

    id: str
    source: str
    is_delivered: bool = False


class Tab(msgspec.Struct, frozen=True):
    """A tab in a window; `source` is the source's name. Times are Unix seconds."""

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


class Tabs(msgspec.Struct, frozen=True):
    """Open tabs, the one last in front first."""

    tabs: tuple[Tab, ...]


Payload = (
    Page
    | Description
    | ConnectionState
    | tuple[SourceEntry, ...]
    | HistoryFound
    | Window
    | Tab
    | Tabs
)


class Reply(msgspec.Struct, frozen=True):
    """What the gate answers; the surface renders it in its product's shape."""

    payload: Payload
    call_id: str = ""
