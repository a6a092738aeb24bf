"""What a store keeps of saved queries, and the protocol of its area.

A saved query is a definition: a name, a text with typed parameters, its versions, and with whom it
is shared. It carries no rights: each reader runs it by a call of his own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, Protocol

import msgspec

from tidegate.errors import Code, TidegateError

MOST_QUERIES = 1_000
"""Saved queries of one owner."""
MOST_VERSIONS = 100
"""Versions of one query that are kept; the oldest go."""
MOST_QUERY_BYTES = 33_554_432
"""How much text (UTF-8) all versions of the queries of one owner hold together."""

ParameterType = Literal["text", "integer", "decimal", "boolean", "date", "timestamp"]
Audience = Literal["", "viewer", "approver", "admin"]
"""The role on the source by which others may read a query; empty: its owner alone."""


class QueryParameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named parameter of a text. `default` is as a person types it, None without one."""

    name: str
    type: ParameterType = "text"
    description: str = ""
    default: str | None = None


class QueryContent(msgspec.Struct, frozen=True):
    """What a version is about. `chart` is the JSON of a chart, empty without one."""

    text: str
    parameters: tuple[QueryParameter, ...] = ()
    chart: str = ""


class QueryVersion(msgspec.Struct, frozen=True):
    """A version of a query: what it held, and who wrote it when (Unix seconds)."""

    version: int
    content: QueryContent
    changed_by: str
    changed_at: float


class SavedQuery(msgspec.Struct, frozen=True):
    """A saved query without its text.

    `version` grows with every change, also of its name; `text_version` is the newest version of its
    content, and `text_by` who wrote that. `owner` is the name of an operator, empty if the account
    is gone. Unqualified names in the text are of `database` and `schema`.
    """

    id: str
    source_id: str
    owner: str
    name: str
    folder: str = ""
    description: str = ""
    shared_with: Audience = ""
    database: str | None = None
    schema: str | None = None
    version: int = 1
    text_version: int = 1
    text_by: str = ""
    changed_by: str = ""
    changed_at: float = 0.0


def version_values(query: SavedQuery, content: QueryContent) -> dict[str, object]:
    """The columns of the newest version of a query, in their order."""
    return {
        "query_id": query.id,
        "version": query.text_version,
        "text": content.text,
        "parameters": msgspec.json.encode(content.parameters).decode(),
        "chart": content.chart,
        "changed_by": query.changed_by,
        "changed_at": query.changed_at,
    }


def changed_text() -> TidegateError:
    """The error of a version that is not as a gate has written it."""
    return TidegateError(
        Code.STATE_FAILED,
        "This version of the query was written past the gates, or by a version of Tidegate that"
        " leaves no stamp.",
        hint="Save its text again, or see what it holds and run `tidegate state seal`.",
    )


def taken_name() -> TidegateError:
    """The error of a query whose owner has another one of that name in the folder."""
    return TidegateError(
        Code.ARGUMENT_INVALID,
        "There is already a query of that name in the folder.",
        hint="Use another name or folder.",
    )


def check_room_for_queries(owner: str, count: int, size: int) -> None:
    """Raises: TidegateError LIMIT_BYTES if the owner's queries, `count` of `size` bytes with all
    versions, are more than they may be."""
    if count <= MOST_QUERIES and size <= MOST_QUERY_BYTES:
        return
    raise TidegateError(
        Code.LIMIT_BYTES,
        f"{owner or 'The gate'} would hold {count:,} saved queries of {size:,} bytes with all"
        f" versions; at most {MOST_QUERIES:,} of {MOST_QUERY_BYTES:,} are kept.",
        hint="Remove a query that is not needed any more.",
    )


class SavedQueryStore(Protocol):
    """Saved queries and their versions. More than an owner may hold raises TidegateError
    LIMIT_BYTES, a name that the owner has in that folder of that source ARGUMENT_INVALID; each
    changes nothing."""

    def add(self, query: SavedQuery, content: QueryContent) -> SavedQuery:
        """Keep a new query, as version 1."""
        ...

    def find(self, id: str) -> SavedQuery | None:
        """The query of that id."""
        ...

    def list(self, source_ids: Iterable[str]) -> list[SavedQuery]:
        """The queries on these sources, by folder and name."""
        ...

    def change(
        self, query: SavedQuery, was: int, content: QueryContent | None
    ) -> SavedQuery | None:
        """Write a query over the version that was read, with other content or with that which it
        has. Its id, source and owner stay. None if it is of another version by now, or gone."""
        ...

    def remove(self, id: str, was: int) -> bool:
        """Remove a query with its versions; False if it is not of that version."""
        ...

    def versions(self, id: str) -> list[QueryVersion]:
        """The versions of a query that are kept, the newest first, without their texts."""
        ...

    def version(self, id: str, version: int) -> QueryVersion | None:
        """One version of a query."""
        ...

    def note_run(self, id: str, operator: str, version: int) -> None:
        """Keep which version an operator has run last."""
        ...

    def last_runs(self, operator: str, ids: Collection[str]) -> Mapping[str, int]:
        """Which versions of these queries the operator has run last."""
        ...

    def attach(self, tab_id: str, owner: str, id: str, version: int) -> None:
        """Keep that an open tab of the owner holds a query, as of that version."""
        ...

    def attached(self, owner: str) -> Mapping[str, tuple[str, int]]:
        """The tabs of the owner that hold a query: its id and version by the tab's id."""
        ...
