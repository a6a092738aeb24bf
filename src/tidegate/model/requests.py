"""Requests to the gate, and the call that carries one. Frozen.

A surface translates its arguments into a request. The set of requests is open: a package that
answers requests of its own defines them as subclasses of `Request` and registers their handlers
with the gateway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import msgspec

from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import Cancellation
from tidegate.model.data_rules import DataRules, EngineRules
from tidegate.model.results import Cells, Limits, RowSink
from tidegate.model.schema import Table
from tidegate.model.sources import Identity, Source
from tidegate.model.statements import Effect, Judgement, Statement


def metadata(name: str, reason: str) -> Judgement:
    """The judgement of a request that reads no data and needs no approval; `name` makes its rule
    `request.NAME`."""
    return Judgement(Effect.READ, f"request.{name}", reason, metadata=True)


METADATA = metadata("metadata", "reads names, not data")


class Basis(NamedTuple):
    """What a reply was answered under: the source, who its caller was to the database, what was
    hidden, and the session whose temporary sources it saw."""

    source: Source
    identity: Identity | None
    data_rules: DataRules | None
    session: str


class Request(msgspec.Struct, frozen=True):
    """The base of all requests.

    `kind` is the word for it in the records. `judgement` says what it does; None means that the
    source's language judges it. `spans_sources`: without a source the request is about all
    sources that its caller may see, and otherwise about the only one. `asks_person`: a person may
    be asked to approve it; otherwise it is refused where one would be. `always_asks`: one
    is asked whatever the source asks for. `recorded_first`: its intent
    is durable in the audit log before it is answered, because it sends something to a third party.
    `names_change`: it is about a change that is kept (`model.changes.ChangeRequest`).
    `about_rows`: it is about single rows of a table (`model.row_changes.RowRequest`).
    `handler`: the place (`module:function`) of what makes, of `gateway.handlers.HandlerParts` and
    the class of the request, the handler of a product's request. `reports_progress`: while it runs,
    its client can get reports of its progress. `costs`: it counts in budgets; what the gate reads
    for itself, and names and descriptions, cost nothing.
    """

    kind: ClassVar[str] = "other"
    judgement: ClassVar[Judgement | None] = None
    spans_sources: ClassVar[bool] = False
    asks_person: ClassVar[bool] = True
    always_asks: ClassVar[bool] = False
    recorded_first: ClassVar[bool] = False
    names_change: ClassVar[bool] = False
    about_rows: ClassVar[bool] = False
    handler: ClassVar[str] = ""
    reports_progress: ClassVar[bool] = False
    costs: ClassVar[bool] = False

    def recorded_text(self) -> str | None:
        """The text for the records; None if the request has none."""
        return None

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        """The arguments for the records, in addition to the text; None if the request has none.
        What may be a secret is left out where they are written."""
        return None

    def shown_statement(self) -> Statement:
        """What a person is asked to approve."""
        return Statement(self.kind)


class EngineRequest(Request, frozen=True, kw_only=True):
    """The base of the requests that an engine answers, under a permit. The gate answers all other
    requests by itself.

    An engine that answers more than the requests below defines them as subclasses of this one. A
    class without a `judgement` of its own is judged by the source's language. `database` and
    `schema` say where it runs: without them where the caller switched to, or else where the
    source's URL says. `engine_rules` is set where a request is rewritten, for an engine that makes
    the tables of its statements itself, and hides there what the caller may not see. `settings` are
    those of the caller's session, as (name, value), by which the database reads and writes values:
    they hold for this request alone, and an engine refuses those that are not on its list.
    """

    costs: ClassVar[bool] = True

    limits: Limits = Limits()
    database: str | None = None
    schema: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    engine_rules: EngineRules | None = None

    has_dry_run: ClassVar[bool] = False
    """Whether an engine with dry runs can try a change of this class."""


class Query(EngineRequest, frozen=True):
    """Run a statement. `cells` says how values are rendered.

    With a `sink` the rows go there and the page has none. The first `offset` rows are read and left
    out, so that the statement itself stays as it is. `masked` is set where a statement is
    rewritten: masked columns as (table, column) that a query touches, or that the tables have that
    a change names; so is `filtered`: tables that a query reads and of which rows are hidden.
    `tuning` are settings of the database, as (name, value), that say how hard it searches and never
    what it may read; an engine refuses those that are not on its list. `in_parts`: its reader takes
    the rows as it needs them, and may send other statements of the same transaction meanwhile.
    `is_whole`: where a budget has no more for the rows of its `sink`, it fails; else they end
    there, which the page says.
    """

    kind: ClassVar[str] = "query"
    has_dry_run: ClassVar[bool] = True
    reports_progress: ClassVar[bool] = True

    statement: Statement
    cells: Cells = "json"
    keep_rest: bool = False
    sink: RowSink | None = None
    offset: int = 0
    masked: tuple[tuple[str, str], ...] = ()
    filtered: tuple[str, ...] = ()
    tuning: tuple[tuple[str, str], ...] = ()
    in_parts: bool = False
    is_whole: bool = False

    def recorded_text(self) -> str | None:
        return self.statement.text

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        if not self.settings and not self.tuning:
            return None
        return dict((*self.settings, *self.tuning))

    def shown_statement(self) -> Statement:
        return self.statement


class Sample(Query, frozen=True):
    """Read some rows of a table to learn what its columns hold. The gate sends it, not a caller: it
    is recorded as every statement is, and is not part of the caller's history."""

    kind: ClassVar[str] = "sample"
    costs: ClassVar[bool] = False
    asks_person: ClassVar[bool] = False


class JoinedRead(Query, frozen=True):
    """Read a table for a statement of another source that names it. The gate sends it, with the
    rights of that statement's caller: it is recorded as every statement is, and is not part of the
    caller's history."""

    kind: ClassVar[str] = "join"


class ReadRows(Query, frozen=True):
    """Read rows of one table by a statement that the gate's own page wrote for a person: it is
    recorded as every statement is, and is not part of the caller's history."""

    kind: ClassVar[str] = "rows"


class Explain(EngineRequest, frozen=True):
    """Show how the database would run a statement, with the `tuning` of a query, without running
    it."""

    kind: ClassVar[str] = "explain"

    statement: Statement
    tuning: tuple[tuple[str, str], ...] = ()

    def recorded_text(self) -> str | None:
        return self.statement.text

    def shown_statement(self) -> Statement:
        # Approval to see the plan of a change is no approval of the change.
        return Statement(f"EXPLAIN {self.statement.text}", self.statement.params)


class Prepare(EngineRequest, frozen=True):
    """Say what a query gives and takes, without running it. The answer is a `replies.Prepared`, and
    no person is asked to approve it. With `changes` a statement that changes data is described as
    well. `masked` is set as in `Query`."""

    kind: ClassVar[str] = "prepare"
    costs: ClassVar[bool] = False
    asks_person: ClassVar[bool] = False

    statement: Statement
    changes: bool = False
    masked: tuple[tuple[str, str], ...] = ()

    def recorded_text(self) -> str | None:
        return self.statement.text

    def shown_statement(self) -> Statement:
        return self.statement


class Browse(EngineRequest, frozen=True):
    """Read metadata. `aspect` says which; `table` and `schema` narrow it where that makes sense.

    "settings" are those of the database's session called `names`, as they are once those of
    `settings` are set: what they are set to is read, and checked, as the database does.
    """

    kind: ClassVar[str] = "browse"
    judgement: ClassVar[Judgement | None] = METADATA
    costs: ClassVar[bool] = False

    aspect: Literal["catalog", "ddl", "counts", "databases", "settings"]
    names: tuple[str, ...] = ()
    table: str | None = None


class Operation(EngineRequest, frozen=True):
    """Ask the engine for something that is not a statement of its language.

    `name` and `arguments` (a mapping of plain values) are the engine's own. `text` is what a
    person and the records are shown of it.
    """

    kind: ClassVar[str] = "operation"

    name: str
    arguments: dict[str, Any] = {}
    text: str = ""

    def recorded_text(self) -> str | None:
        return self.text or self.name

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        return self.arguments

    def shown_statement(self) -> Statement:
        return Statement(self.text or self.name, (self.name, self.arguments))


class ReadProfiles(Request, frozen=True):
    """Say what the columns of `tables` hold, as far as it is known. The first `awaited` of them are
    waited for a moment; the rest and `others` are sampled in the background, for later requests.
    `joined`: compare values for the likely joins among all these tables as well."""

    kind: ClassVar[str] = "profiles"
    judgement: ClassVar[Judgement | None] = METADATA

    tables: tuple[Table, ...]
    awaited: int = 0
    joined: bool = False
    others: tuple[Table, ...] = ()


class ShowStatus(Request, frozen=True):
    """Show the state of the source's connection. Opens nothing."""

    kind: ClassVar[str] = "browse"
    judgement: ClassVar[Judgement | None] = METADATA


class FetchMore(Request, frozen=True):
    """Fetch the next page of the result that is kept under `handle`."""

    kind: ClassVar[str] = "more"
    costs: ClassVar[bool] = True
    judgement: ClassVar[Judgement | None] = metadata("more", "shows rows that were read before")

    handle: str
    max_rows: int


class ReleaseResult(Request, frozen=True):
    """Give out a result that waited for its caller, if the caller may still have it: what it was
    read under, the `basis`, holds still. The answer is nothing."""

    kind: ClassVar[str] = "release"
    judgement: ClassVar[Judgement | None] = metadata("release", "shows a result that waited")
    spans_sources: ClassVar[bool] = True

    basis: tuple[Basis, ...] = ()


class ListSources(Request, frozen=True):
    """List the sources that the actor may see, by name; temporary ones come last.

    `keys` asks for those with these names or ids alone, in that order; `connected` for those that
    are open. Of the rest come `limit` at most (None: all), from the one after `after`: whether
    that is temporary, and its name.
    """

    keys: tuple[str, ...] | None = None
    connected: bool = False
    after: tuple[bool, str] | None = None
    limit: int | None = None

    kind: ClassVar[str] = "list"
    judgement: ClassVar[Judgement | None] = METADATA
    spans_sources: ClassVar[bool] = True


class OpenTemporary(Request, frozen=True):
    """Open a source that only the caller's session sees, and that ends with it. A call without a
    session opens it for its actor. The rule `source.temporary` decides."""

    kind: ClassVar[str] = "open"
    judgement: ClassVar[Judgement | None] = METADATA
    spans_sources: ClassVar[bool] = True

    name: str
    url: str


class CloseTemporary(Request, frozen=True):
    """Close a temporary source of the caller, by its name."""

    kind: ClassVar[str] = "close"
    judgement: ClassVar[Judgement | None] = metadata("close", "closes a temporary source")
    spans_sources: ClassVar[bool] = True

    name: str


class Connect(Request, frozen=True):
    """Open the source if it is closed."""

    kind: ClassVar[str] = "connect"
    judgement: ClassVar[Judgement | None] = metadata("connect", "opens a connection")


class Disconnect(Request, frozen=True):
    """Close the source's connections."""

    kind: ClassVar[str] = "disconnect"
    judgement: ClassVar[Judgement | None] = metadata("disconnect", "closes a connection")


class Switch(Request, frozen=True):
    """Run the caller's later statements on this source in another database or schema."""

    kind: ClassVar[str] = "switch"
    judgement: ClassVar[Judgement | None] = metadata(
        "switch", "sets where the caller's later statements run"
    )

    database: str | None = None
    schema: str | None = None


class SearchHistory(Request, frozen=True):
    """Find statements that were run, by words; times are Unix seconds and inclusive. `own`: those
    of the caller alone."""

    kind: ClassVar[str] = "history"
    judgement: ClassVar[Judgement | None] = metadata("history", "reads statements that were run")
    spans_sources: ClassVar[bool] = True

    words: str = ""
    since: float | None = None
    until: float | None = None
    limit: int = 50
    own: bool = False


Progress = Callable[[float, str], None]
"""Reports (share done between 0 and 1, what is being done)."""


class Waiter(Protocol):
    """What an edge does for a call that lasts."""

    @property
    def patience_s(self) -> float | None:
        """How long the call may wait for a person; None: as long as the settings say."""
        ...

    async def begin_wait(self, what: str) -> None:
        """The call waits for a person, and has sent nothing."""
        ...

    async def end_wait(self) -> None:
        """The call goes on. Raises: TidegateError."""
        ...

    async def note_change(self) -> None:
        """What is sent next may change data. Raises: TidegateError."""
        ...


class Call(msgspec.Struct, frozen=True):
    """One request as the gate sees it, whatever edge and tool it came through.

    `scope` is what the tool itself demands, in addition to what the statement turns out to need.
    `source` is the name or id of the source; None means the actor's only one, or all
    that it may see where the request is about several. `confirmed` shows that the caller
    typed the phrase of confirmation; `reads_only` that the tool is for reading whatever the
    caller may do elsewhere; `can_ask` that its client can show a person a question; `by_person`
    that a person is to approve it, whatever the source asks for.
    `session` is the id of the state that the call's session keeps, under which it may have opened
    temporary sources. `address` is the client's IP address, empty if it did not come over HTTP.
    `on_behalf_of` is the caller for whom a proxy speaks (`Actor.proxy`), whose own gate let the
    call pass, and `plan` the digest of the requests that were approved there; both are empty for
    every other caller.
    `transaction` is the id of the transaction that it belongs to, empty if it belongs to none.
    `reason` is what the caller says that the call is for, shown to a person who is to approve it.
    With `waits` it may wait for that person's answer, as the settings say, or as long as `waiter`
    can, to which what the call does is reported when it lasts.
    """

    actor: Actor
    surface: str
    tool: str
    request: Request
    source: str | None = None
    scope: Scope = Scope.READ_ONLY
    client: str = ""
    cancellation: Cancellation = msgspec.field(default_factory=Cancellation)
    progress: Progress | None = None
    confirmed: bool = False
    reads_only: bool = False
    can_ask: bool = False
    by_person: bool = False
    session: str = ""
    address: str = ""
    on_behalf_of: str = ""
    plan: str = ""
    transaction: str = ""
    reason: str = ""
    waits: bool = True
    waiter: Waiter | None = None
