"""What can be asked of the gate: the requests, and the call that carries one.

A surface translates its arguments into one of these requests. Frozen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from tidegate.actors import Actor, Scope
from tidegate.cancellation import NEVER, Cancellation
from tidegate.pages import Limits, RowWriter
from tidegate.statements import Statement


class Query(msgspec.Struct, frozen=True):
    """Run a statement. `cells` says how values are rendered: JSON values or text (or null).

    With a `writer` the rows go there and the page has none. Without `database` and `schema` it
    runs where the caller switched to, else where the source's URL says.
    """

    statement: Statement
    limits: Limits = Limits()
    cells: Literal["json", "text"] = "json"
    database: str | None = None
    schema: str | None = None
    shelve: bool = False
    writer: RowWriter | None = None


class Explain(msgspec.Struct, frozen=True):
    """Show how the database would run a statement, without running it; where, as for `Query`."""

    statement: Statement
    limits: Limits = Limits()
    database: str | None = None
    schema: str | None = None


class Browse(msgspec.Struct, frozen=True):
    """Read metadata. `aspect` picks what; `table` and `schema` narrow it where that makes sense."""

    aspect: Literal["catalog", "ddl", "counts", "status", "databases"]
    schema: str | None = None
    table: str | None = None
    database: str | None = None


EngineRequest = Query | Explain | Browse
"""What an engine is needed for; the gate answers the rest by itself."""


class More(msgspec.Struct, frozen=True):
    """Fetch the next page of a result that was shelved under `handle`."""

    handle: str
    max_rows: int


class ListSources(msgspec.Struct, frozen=True):
    """List the sources that the actor may see."""


class Connect(msgspec.Struct, frozen=True):
    """Open the source if it is closed."""


class Disconnect(msgspec.Struct, frozen=True):
    """Close the source's connections."""


class Switch(msgspec.Struct, frozen=True):
    """Run the caller's later statements on this source in another database or schema."""

    database: str | None = None
    schema: str | None = None


class SearchHistory(msgspec.Struct, frozen=True):
    """Find statements that were run, by words; times are Unix seconds and inclusive."""

    words: str = ""
    since: float | None = None
    until: float | None = None
    limit: int = 50


class OpenWindow(msgspec.Struct, frozen=True):
    """Open a window of the console on the source, or bring the one there is to the front."""


class OpenTable(msgspec.Struct, frozen=True):
    """Open a tab on a table; the same table again is the same tab."""

    table: str
    database: str | None = None
    schema: str | None = None


class FocusTab(msgspec.Struct, frozen=True):
    """Bring a tab and its window to the front."""

    tab_id: str


class ListTabs(msgspec.Struct, frozen=True):
    """List the open tabs, the one last in front first."""

    limit: int = 20


Request = (
    EngineRequest
    | More
    | ListSources
    | Connect
    | Disconnect
    | Switch
    | SearchHistory
    | OpenWindow
    | OpenTable
    | FocusTab
    | ListTabs
)

Progress = Callable[[float, str], None]
"""Reports (share done between 0 and 1, what is being done)."""


class Call(msgspec.Struct, frozen=True):
    """One request as the gate sees it, whatever edge and tool it came through.

    `scope` is what the tool itself demands, beside what the statement turns out to need.
    `source` is the name or id of the source; None stands for the actor's only one, and for all
    that it may see where the request is about several. `confirmed` tells that the caller
    typed the phrase of confirmation; `reads_only` that the tool is for reading whatever the
    caller may do elsewhere; `can_ask` that its client can show a person a question.
    """

    actor: Actor
    surface: str
    tool: str
    request: Request
    source: str | None = None
    scope: Scope = Scope.READ_ONLY
    client: str = ""
    cancellation: Cancellation = NEVER
    progress: Progress | None = None
    confirmed: bool = False
    reads_only: bool = False
    can_ask: bool = False
