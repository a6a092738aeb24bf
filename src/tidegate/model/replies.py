"""What the gate answers: the reply, and what it carries for each request. Frozen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from tidegate.model.data_rules import DataRules
from tidegate.model.results import Column
from tidegate.model.schema import Status
from tidegate.model.sources import Identity, Source


class ConnectionState(msgspec.Struct, frozen=True):
    """The state of a source's connection; times are Unix seconds, None while never connected."""

    status: Literal["connected", "connecting", "disconnected", "error"]
    current: Status | None = None
    connected_at: float | None = None
    last_active_at: float | None = None
    error: str | None = None


class SourceEntry(msgspec.Struct, frozen=True):
    """One line of a source listing, as the actor may see it. `temporary`: the caller's session
    opened it for itself."""

    source: Source
    state: ConnectionState
    temporary: bool = False


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

    @property
    def row_count(self) -> int:
        return len(self.entries)


class RecordedPayload(msgspec.Struct, frozen=True):
    """A payload that adds to the record of its call."""

    def recorded_arguments(self) -> Mapping[str, Any]:
        """What is recorded with the outcome, beside the arguments of the request."""
        return {}


class Prepared(msgspec.Struct, frozen=True):
    """A query before it runs. `columns` and `parameters` (the database's type names, empty where it
    gives none) are None where the engine cannot tell them. `effect` is the gate's judgement of it.
    `asks`: a person is asked before it runs. `tables` are those that it reads, as far as the gate
    knows them, `masked` the masked columns among theirs, as (table, column). `digest` is another
    one if anything of this changes, or what the statement is rewritten to for its caller."""

    columns: tuple[Column, ...] | None
    parameters: tuple[str, ...] | None
    effect: str
    asks: bool
    tables: tuple[str, ...]
    masked: tuple[tuple[str, str], ...]
    digest: str


class BegunTransaction(msgspec.Struct, frozen=True):
    """A transaction that calls may name by its `id`; empty if the source has none over several
    statements. `reads_only`: the database refuses every change in it."""

    id: str
    reads_only: bool


class EndedTransaction(msgspec.Struct, frozen=True):
    """A transaction that has ended: `committed`, or rolled back. `row_count` of its changes.
    `change` is the id under which its rows are kept, empty if they are not."""

    committed: bool
    row_count: int = 0
    change: str = ""


class Reply(msgspec.Struct, frozen=True):
    """What the gate answers. Its sender knows which payload belongs to its request, and checks it;
    the surface renders it in its product's shape. `approved`: a person had approved the call.
    `source`, `identity` and `data_rules` are what it was answered under. `changed`: it may have
    changed data."""

    payload: Any
    call_id: str = ""
    approved: bool = False
    source: Source | None = None
    identity: Identity | None = None
    data_rules: DataRules | None = None
    changed: bool = False
