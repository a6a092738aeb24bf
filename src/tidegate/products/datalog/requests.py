"""Requests to a Datalog source that are no query text: the operations of the tools of
`datalevin`. Frozen.

A source is one directory, or one database of a remote server. What callers hold as ids
(`database-…`, `kv-…`) is the surface's: each request names its source and its `DatalogTarget`, so
that an engine can open it again after its worker has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Literal

import msgspec

from tidegate.model.replies import RecordedPayload
from tidegate.model.requests import EngineRequest, OpenTemporary
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

TUPLE = "tuple of "
"""How the note of an attribute begins that Datalevin makes of others, which follow."""


class DatalogOperation(StrEnum):
    """What a Datalog source is asked for. The set is closed: an engine has no way to another.

    The values are the tools' names without `datalevin_`. `api_info` is missing: it asks no source.
    The last four have no tool: the command line asks for them.
    """

    OPEN_DATABASE = "open_database"
    CLOSE_DATABASE = "close_database"
    QUERY = "query"
    PULL = "pull"
    PULL_MANY = "pull_many"
    ENTITY = "entity"
    DATOMS = "datoms"
    SEARCH_DATOMS = "search_datoms"
    COUNT_DATOMS = "count_datoms"
    FULLTEXT_DATOMS = "fulltext_datoms"
    TRANSACT = "transact"
    OPEN_KV = "open_kv"
    CLOSE_KV = "close_kv"
    KV_GET = "kv_get"
    KV_RANGE = "kv_range"
    KV_TRANSACT = "kv_transact"
    OPEN_SEARCH_INDEX = "open_search_index"
    CLOSE_SEARCH_INDEX = "close_search_index"
    ADD_DOCUMENT = "add_document"
    REMOVE_DOCUMENT = "remove_document"
    CLEAR_DOCUMENTS = "clear_documents"
    DOCUMENT_COUNT = "document_count"
    DOCUMENT_INDEXED = "document_indexed"
    SEARCH_DOCUMENTS = "search_documents"
    OPEN_VECTOR_INDEX = "open_vector_index"
    CLOSE_VECTOR_INDEX = "close_vector_index"
    ADD_VECTOR = "add_vector"
    REMOVE_VECTOR = "remove_vector"
    VECTOR_INDEX_INFO = "vector_index_info"
    VECTOR_INDEXED = "vector_indexed"
    VECTOR_SEARCH = "vector_search"
    COPY = "copy"
    DUMP = "dump"
    LOAD = "load"
    STAT = "stat"


WRITING_OPERATIONS = frozenset(
    {
        DatalogOperation.TRANSACT,
        DatalogOperation.KV_TRANSACT,
        DatalogOperation.ADD_DOCUMENT,
        DatalogOperation.REMOVE_DOCUMENT,
        DatalogOperation.CLEAR_DOCUMENTS,
        DatalogOperation.ADD_VECTOR,
        DatalogOperation.REMOVE_VECTOR,
        DatalogOperation.LOAD,
    }
)
"""The operations that change data whatever their arguments are."""

TargetKind = Literal["database", "kv", "search_index", "vector_index"]


class DatalogTarget(msgspec.Struct, frozen=True):
    """What of the source an operation works on: its Datalog database, its key-value store, or an
    index in that store.

    `options` are those that the target was opened with, as JSON values (`{":domain": "docs"}`), by
    which an engine opens it again. `client` are those of the connection to a remote server.
    """

    kind: TargetKind
    options: dict[str, Any] = {}
    client: dict[str, Any] = {}


class DatalogRequest(EngineRequest, frozen=True, kw_only=True):
    """One operation. The source's language judges it, the engine answers with a `Document`.

    `arguments` are those of the tool without its ids, under the tool's names, as JSON values in
    Datalevin's spelling: `":a/b"` is a keyword where a value is asked for and a plain string where
    a text is (`docText`, a search's `query`); tags are `{"~i64": "1"}` and their like; whole
    numbers are longs. `create`: what is opened may be made, and its schema and options changed,
    which is a write; without it an absent directory, database or index is refused.

    An error's `details` have `engine_code` where Datalevin names one (`:invalid-request`,
    `:json-unsupported-type`, `:tool-error` otherwise), and `absent` (`directory`, `database`,
    `dbi`, `search_index`, `vector_index`) where something was not made. Codes: SQL_FAILED for what
    Datalevin refuses, ARGUMENT_INVALID for arguments that do not fit, POLICY_READ_ONLY for what is
    absent and may not be made, SQL_FUNCTION, LIMIT_TIME, LIMIT_BYTES, CALL_CANCELLED, SQL_OUTCOME
    for a write whose worker ended, SOURCE_UNREACHABLE, SOURCE_LOCKED (another process writes),
    SOURCE_WARMING (with `retry_after_s`), ENGINE_MISSING (names the extra `datalog`).

    Of a result that is a collection `max_items` come at most, in an order that is the same at every
    call; `Document.items` is how many there are. `text` is what a person and the records are shown.
    """

    kind: ClassVar[str] = "datalog"
    has_dry_run: ClassVar[bool] = True

    operation: DatalogOperation
    target: DatalogTarget
    arguments: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    create: bool = False
    max_items: int = 200
    text: str = ""

    @property
    def writes(self) -> bool:
        """Whether it changes data, or may make what it opens."""
        return self.create or self.operation in WRITING_OPERATIONS

    def recorded_text(self) -> str | None:
        return self.text or self.operation.value

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        return {"target": self.target.kind, **self.arguments}

    def shown_statement(self) -> Statement:
        return Statement(
            self.text or self.operation.value,
            (self.operation.value, self.target.kind, self.arguments, self.create),
        )


class OpenDatalog(OpenTemporary, frozen=True, kw_only=True):
    """Open a Datalevin directory, `datalevin://…`, or a database of a Datalevin server, `dtlv://…`,
    as a temporary source. The URL may hold a password. The answer is an `OpenedDatalog`."""

    handler: ClassVar[str] = "tidegate.products.datalog.opening:make_handler"


class OpenedDatalog(RecordedPayload, frozen=True):
    """A temporary source in a Datalevin directory or on a Datalevin server. `place` is where it
    is, without a password."""

    source: Source
    place: str

    def recorded_arguments(self) -> Mapping[str, Any]:
        return {"place": self.place}
