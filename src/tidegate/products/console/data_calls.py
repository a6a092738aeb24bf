"""Calls of the gate for the Data page, as the operator who reads it.

Each is one `Call` like any other: judged, decided on, on record. A viewer and an approver of a
source read there; an admin of it may also change, as far as the source lets anyone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, get_origin

import msgspec

from tidegate.config.model import LimitSettings
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.identity.operators import SignedIn
from tidegate.model.cancellation import Cancellation
from tidegate.model.replies import Reply, SourceEntry
from tidegate.model.requests import Browse, Call, ListSources, Request
from tidegate.model.results import Limits
from tidegate.model.schema import Catalog, Table
from tidegate.model.sources import Source
from tidegate.model.statements import Judgement
from tidegate.policy.explanation import Explanation
from tidegate.policy.verdict import is_visible
from tidegate.products.console.advice import NO_ROLE
from tidegate.products.console.sign_in import actor_of
from tidegate.sql.dialects import DIALECTS, find
from tidegate.typed_values import convert_value

PayloadT = TypeVar("PayloadT")
SURFACE = "console"


class Place(msgspec.Struct, frozen=True):
    """Where a request is about. Without a schema the current one is meant."""

    source: str
    database: str | None = None
    schema: str | None = None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Place:
        """From the fields of a query string."""
        return cls(
            query.get("source", ""), query.get("database") or None, query.get("schema") or None
        )


class Caller(NamedTuple):
    """The operator, and the address of the request."""

    signed_in: SignedIn
    address: str


class DataCalls:
    """The way of the Data page to the sources. `sources` gives all that there are."""

    def __init__(
        self, gateway: Gateway, limits: LimitSettings, sources: Callable[[], Sequence[Source]]
    ) -> None:
        self._gateway = gateway
        self._sources = sources
        self.limits = limits

    def call(
        self,
        caller: Caller,
        request: Request,
        source: str | None,
        *,
        tool: str = "",
        cancellation: Cancellation | None = None,
    ) -> Call:
        """The call of a request, as this operator. Without a source it is about all of them."""
        return Call(
            *(actor_of(caller.signed_in, source), SURFACE, tool or request.kind, request, source),
            client=SURFACE,
            cancellation=cancellation or Cancellation(),
            address=caller.address,
            waits=False,
        )

    async def ask(
        self,
        caller: Caller,
        request: Request,
        source: str | None,
        expected: type[PayloadT],
        *,
        tool: str = "",
        cancellation: Cancellation | None = None,
    ) -> tuple[PayloadT, str]:
        """The answer, and the id of the call. Raises: TidegateError, whatever the gate refuses or
        the database says."""
        if source == "":
            raise TidegateError(Code.ARGUMENT_INVALID, "The request names no source")
        call = self.call(caller, request, source, tool=tool, cancellation=cancellation)
        reply = await self._gateway.handle(call)
        payload = reply.payload
        if not isinstance(payload, get_origin(expected) or expected):
            raise TidegateError(Code.INTERNAL, f"The gate answered {type(payload).__name__}")
        return payload, reply.call_id

    async def handle(self, call: Call) -> Reply:
        """The answer to a call that `call` made. Raises: as `ask`; ApprovalNeeded."""
        return await self._gateway.handle(call)

    async def judge(self, call: Call) -> tuple[Judgement, Explanation]:
        """What the gate would say to a call by its text alone."""
        return await self._gateway.judge(call)

    async def judge_under_rules(self, call: Call) -> tuple[Judgement, Explanation]:
        """What the gate would say to a call, by its text and by what is hidden from the caller."""
        return await self._gateway.judge_under_rules(call)

    async def sources(self, caller: Caller) -> tuple[SourceEntry, ...]:
        """The sources that the operator may read, by name, with the state of each."""
        entries, _ = await self.ask(caller, ListSources(), None, tuple[SourceEntry, ...])
        return entries

    def visible(self, caller: Caller) -> list[Source]:
        """The same as they are set up: asks nothing, and so leaves no line on record."""
        return [
            each
            for each in self._sources()
            if caller.signed_in.may("viewer", each.name)
            and is_visible(actor_of(caller.signed_in, each.name), each)
        ]

    def source(self, caller: Caller, name: str) -> Source:
        """The source of that name. Raises: TidegateError POLICY_SOURCE, the same for every source
        that the operator may not read and for none."""
        for each in self.visible(caller):
            if each.name == name:
                return each
        raise TidegateError(
            Code.POLICY_SOURCE,
            NO_ROLE,
            hint="Choose one of the sources on the left.",
        )

    async def catalog(self, caller: Caller, place: Place) -> Catalog:
        """What is named in the place's database, as the operator may see it."""
        found = next((each for each in self.visible(caller) if each.name == place.source), None)
        schema = place.schema if found is not None and lists_by_schema(found) else None
        request = Browse("catalog", database=place.database, schema=schema)
        catalog, _ = await self.ask(caller, request, place.source, Catalog)
        if place.schema is not None and place.schema not in catalog.schemas:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"Schema not found: {place.schema[:100]}",
                hint=f"Schemas: {', '.join(catalog.schemas[:20])}.",
            )
        return catalog

    async def table(self, caller: Caller, place: Place, name: str) -> tuple[Table, Catalog]:
        """The table of exactly that name, with its catalog. Raises: TidegateError TABLE_UNKNOWN."""
        catalog = await self.catalog(caller, place)
        schema = catalog.default_schema if place.schema is None else place.schema
        for table in catalog.tables:
            if table.name == name and table.schema == schema:
                return table, catalog
        raise TidegateError(
            Code.TABLE_UNKNOWN,
            f"Table not found: {name[:200]}",
            hint="It may have been dropped: reload the list of tables.",
        )

    def row_limits(self, rows: int) -> Limits:
        """The limits of a statement that reads so many rows."""
        return Limits(rows, self.limits.max_bytes, self.limits.timeout_s)


def speaks_sql(source: Source) -> bool:
    """Whether the source's language is SQL."""
    return source.dialect in DIALECTS


def lists_by_schema(source: Source) -> bool:
    """Whether the source has its tables listed for one schema at a time alone."""
    return speaks_sql(source) and find(source.dialect).path_schemas


def check_sql(source: Source, lacks: str) -> None:
    """Raises: TidegateError UNSUPPORTED for a source of another language; `lacks` says what it
    cannot have."""
    if not speaks_sql(source):
        raise TidegateError(
            Code.UNSUPPORTED,
            f"{source.name} does not speak SQL: {lacks}",
            hint="Write a statement of its own language in the editor.",
        )


def decode(fields: Any, model: type[PayloadT]) -> PayloadT:
    """Fields of a query string as this model. Raises: TidegateError ARGUMENT_INVALID."""
    try:
        return convert_value(fields, model, strict=False)
    except msgspec.ValidationError as error:
        raise TidegateError(Code.ARGUMENT_INVALID, f"The query is not valid: {error}") from None
