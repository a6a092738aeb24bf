"""The words of the house: values that travel from an edge to a database and back.

Everything here is frozen; sources and metadata have modules of their own. A value keeps its name
on the whole way: `actor`, `source`, `statement`, `permit`, `page`, `reply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import Any, Literal, Protocol

import msgspec

from tidegate.metadata import Description, Status
from tidegate.sources import Identity, Source


class Effect(IntEnum):
    """What a statement would do. A lattice: opinions are joined with `max`, never lowered."""

    READ = 0
    SESSION = 1
    WRITE = 2
    DESTRUCTIVE = 3
    ADMIN = 4
    UNKNOWN = 5

    @property
    def label(self) -> str:
        """The lower-case word used in records and replies."""
        return self.name.lower()


class Scope(Enum):
    """What a token may do at most; compare with `covers`."""

    READ_ONLY = "readOnly"
    READ_WRITE = "readWrite"
    FULL_ACCESS = "fullAccess"

    def covers(self, needed: Scope) -> bool:
        """True if a holder of this scope may do what needs `needed`."""
        return _SCOPE_RANK[self] >= _SCOPE_RANK[needed]


_SCOPE_RANK = {Scope.READ_ONLY: 0, Scope.READ_WRITE: 1, Scope.FULL_ACCESS: 2}


class Actor(msgspec.Struct, frozen=True):
    """Who calls: a token's holder, the person at a stdio server, or nobody in particular.

    `sources` and `tags` are the allowlist: a source is on it if its name is listed or it carries
    one of the tags; both None means every source (`policy.allowlist.admits`).
    `tables` are those that it may use there, as `table`, `schema.table` or, of one source alone,
    `source:table`; None means all (`policy.shields`).
    `id` is stable and names the identity in records (a token id, `stdio`, `anonymous`).
    """

    id: str
    name: str
    scope: Scope
    sources: frozenset[str] | None = None
    kind: Literal["agent", "human"] = "agent"
    expires_at: float | None = None
    tags: frozenset[str] | None = None
    tables: frozenset[str] | None = None


class Statement(msgspec.Struct, frozen=True):
    """One SQL text with its parameters (None: none were given)."""

    text: str
    params: tuple[Any, ...] | None = None


class Limits(msgspec.Struct, frozen=True):
    """Budgets that the gate puts on a run; the database enforces `timeout_s` itself."""

    max_rows: int = 500
    max_bytes: int = 4_194_304
    timeout_s: float = 30.0


# What a caller can ask of a source. A surface translates its arguments into one of these.


class RowWriter(Protocol):
    """Takes a result's rows as they come, where they are wanted in another form than a page."""

    def begin(self, columns: tuple[Column, ...]) -> None:
        """Called once, before any row."""
        ...

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Take rows of plain Python values, in the order of the columns."""
        ...


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
    Query
    | Explain
    | Browse
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


class Cancellation:
    """Whether the caller has gone or changed its mind; engines hang their interrupt on it.

    An edge may override `watch`, which is called when somebody listens: so the cost of watching a
    connection is paid only by calls that do not answer at once.
    """

    __slots__ = ("_listeners", "reason")

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []
        self.reason: str | None = None

    def watch(self) -> None:
        """Begin to see whether the caller is still there; asked again at every listener."""

    @property
    def cancelled(self) -> bool:
        return self.reason is not None

    def cancel(self, reason: str = "cancelled") -> None:
        """Tell every listener once; later listeners are told at once."""
        if self.reason is not None:
            return
        self.reason = reason
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the event loop when the call is cancelled."""
        if self.reason is not None:
            listener()
            return
        self._listeners.append(listener)
        self.watch()

    def forget(self, listener: Callable[[], None]) -> None:
        """Take a listener back; unknown ones are ignored."""
        if listener in self._listeners:
            self._listeners.remove(listener)


NEVER = Cancellation()
"""For calls that nobody can cancel. Never cancel it."""


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


class Judgement(msgspec.Struct, frozen=True):
    """What reading a statement told: its effect and why. Pure; says nothing about permission.

    `metadata` marks a request that is no statement and shows no data: nobody is asked about it.
    """

    effect: Effect
    rule: str
    reason: str
    code: str | None = None
    hint: str | None = None
    tables: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    unqualified: bool = False
    returns_rows: bool = True
    metadata: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """The decision on a call: only `allow` leads to a permit."""

    kind: Literal["allow", "ask", "confirm", "deny"]
    rule: str
    reason: str
    code: str | None = None
    hint: str | None = None


class Permit(msgspec.Struct, frozen=True):
    """Proof that a verdict was allow and that the intent is on record.

    Made in `gateway.py` only; the only thing an engine accepts. With an `identity` the engine runs
    as that, or not at all.
    """

    call_id: str
    actor: Actor
    source: Source
    request: Query | Explain | Browse
    effect: Effect
    limits: Limits
    identity: Identity | None = None


class Column(msgspec.Struct, frozen=True):
    """A result column; `type` is the database's own name for it, empty if it has none."""

    name: str
    type: str = ""


class Truncation(msgspec.Struct, frozen=True):
    """One way in which a result was cut. `kind` is `rows`, `bytes` or `value`."""

    kind: Literal["rows", "bytes", "value"]
    limit: int
    returned: int


class Page(msgspec.Struct, frozen=True):
    """Rows of a result, already encoded: `rows` is a JSON array of arrays, UTF-8.

    `affected` counts rows changed by a writing statement; `more` is the handle under which the
    rest is shelved, if it is.
    """

    columns: tuple[Column, ...]
    rows: bytes
    row_count: int
    affected: int = 0
    truncations: tuple[Truncation, ...] = ()
    elapsed_ms: float = 0.0
    more: str | None = None
    status: str | None = None


class Rehearsal(msgspec.Struct, frozen=True):
    """What a change would do, tried in a transaction that was rolled back.

    `affected` counts rows; None if nothing was tried, and `reason` says why. `before` and `after`
    are some of the rows in the order of `columns`, as text or None for NULL; a row that would be
    deleted has no after. A `reason` beside a count says why there are no rows to show.
    """

    affected: int | None = None
    columns: tuple[str, ...] = ()
    before: tuple[tuple[str | None, ...], ...] = ()
    after: tuple[tuple[str | None, ...] | None, ...] = ()
    reason: str = ""


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
