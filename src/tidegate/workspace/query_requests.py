"""Requests about saved queries, and the replies to them. Frozen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from tidegate.model.requests import Request, metadata
from tidegate.model.statements import Judgement
from tidegate.store.saved_queries import (
    Audience,
    QueryContent,
    QueryVersion,
    SavedQuery,
)

QUERIES = metadata("saved_query", "reads or writes texts of saved queries, and runs none")


class QueryRequest(Request, frozen=True):
    """The base of the requests below."""

    kind: ClassVar[str] = "saved_query"
    judgement: ClassVar[Judgement | None] = QUERIES
    spans_sources: ClassVar[bool] = True


class ListQueries(QueryRequest, frozen=True):
    """List the queries that the caller may read."""


class FindQuery(QueryRequest, frozen=True):
    """Read a query with its text, of a version or the newest."""

    id: str
    version: int | None = None

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        return {"query": self.id}


class ListQueryVersions(QueryRequest, frozen=True):
    """List the versions of a query, the newest first."""

    id: str

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        return {"query": self.id}


class AddQuery(QueryRequest, frozen=True):
    """Save a query on the source."""

    name: str
    content: QueryContent
    folder: str = ""
    description: str = ""
    shared_with: Audience = ""
    database: str | None = None
    schema: str | None = None

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        return {"name": self.name, "shared_with": self.shared_with}


class ChangeQuery(QueryRequest, frozen=True):
    """Write a query over the version that was read. What is None stays as it is; `restores` is the
    version whose content it gets again."""

    id: str
    version: int
    name: str | None = None
    folder: str | None = None
    description: str | None = None
    shared_with: Audience | None = None
    content: QueryContent | None = None
    restores: int | None = None

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        given = {"name": self.name, "shared_with": self.shared_with, "restores": self.restores}
        named = {name: value for name, value in given.items() if value is not None}
        return {"query": self.id, "changes_text": self.content is not None, **named}


class RemoveQuery(QueryRequest, frozen=True):
    """Remove a query with all its versions."""

    id: str
    version: int

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        return {"query": self.id}


class QueryEntry(msgspec.Struct, frozen=True):
    """A saved query as one reader has it. `source` is the source's name; `ran` the version that he
    ran last, None if he never did; `may_change` whether he may write it."""

    query: SavedQuery
    source: str
    may_change: bool
    ran: int | None = None


class QueryEntries(msgspec.Struct, frozen=True):
    """The queries that a caller may read. `tabs` are his tabs that hold one of them: its id and
    version by the id of the tab."""

    queries: tuple[QueryEntry, ...]
    tabs: Mapping[str, tuple[str, int]]

    @property
    def row_count(self) -> int:
        return len(self.queries)


class QueryText(msgspec.Struct, frozen=True):
    """A query with the content of one version."""

    entry: QueryEntry
    version: QueryVersion


class QueryVersions(msgspec.Struct, frozen=True):
    """A query with its versions, the newest first, without texts."""

    entry: QueryEntry
    versions: tuple[QueryVersion, ...]


class WrittenQuery(msgspec.Struct, frozen=True):
    """A query with its newest content, and whether it is as the request has written it."""

    found: QueryText
    written: bool


class RemovedQuery(msgspec.Struct, frozen=True):
    """A query was removed."""
