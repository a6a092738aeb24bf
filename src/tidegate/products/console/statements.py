"""What the editor of the Data page shows of a statement before it runs: what it would do, how it
goes on, and how the database would run it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, ParamSpec, TypeVar

import msgspec
from msgspec import Meta

from tidegate.errors import Code, TidegateError
from tidegate.judging_thread import SHORT, compute, compute_on_thread
from tidegate.model.requests import Explain, Query, ReadRows
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.products.console.cards import marked_parts
from tidegate.products.console.data_calls import Caller, DataCalls, Place, check_sql, speaks_sql
from tidegate.products.console.plan_tree import (
    PlanNode,
    duckdb_plan,
    is_deeper,
    mariadb_plan,
    plan_text,
    postgres_plan,
    read_plan,
    sqlite_plan,
)
from tidegate.products.console.runs import MOST_STATEMENT, statement_of
from tidegate.products.console.statement_parts import Part, Utf16, statement_parts
from tidegate.products.console.typed_values import Value, typed_values
from tidegate.sql.completion import MOST_TEXT, complete
from tidegate.sql.dialects import find
from tidegate.sql.formatting import format_text
from tidegate.sql.highlighting import highlight
from tidegate.store.saved_queries import ParameterType

MOST_PARTS = 100
"""Statements of one text that are judged."""
MANY_TABLES = 200
"""Tables of a catalog among which proposals are searched on a thread."""
MOST_PLAN_ROWS = 10_000
MOST_LEVELS = 200
"""Levels of a plan that is shown as a tree."""
Params = ParamSpec("Params")
Result = TypeVar("Result")
_ROWS = msgspec.json.Decoder(list[list[Any]])
_ASKS = {"allow": "allow", "ask": "ask", "confirm": "ask", "deny": "deny"}
_READERS = {
    "nodes": postgres_plan,
    "operators": duckdb_plan,
    "query blocks": mariadb_plan,
    "rows": sqlite_plan,
}
"""What reads a plan, by its form."""
_TRAILING = re.compile(r"[;\s]+\Z")


class Text(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `judge`."""

    statement: Annotated[str, Meta(max_length=MOST_TEXT)]


class TextAt(Text, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `complete`: a place in the text, in UTF-16 code units."""

    at: Annotated[int, Meta(ge=0)]


class Explained(Text, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `explain`."""

    params: dict[str, Value] | list[Value] | None = None
    types: dict[str, ParameterType] | None = None
    analyze: bool = False


class Statements:
    """Statements that are checked before they run."""

    def __init__(self, calls: DataCalls) -> None:
        self._calls = calls
        self._reading = asyncio.Lock()

    async def judge(self, body: Text, caller: Caller) -> dict[str, Any]:
        """What each statement of a text would do and what the gate would say, by the text and by
        what is hidden from the operator."""
        source = self._calls.source(caller, body.source)
        text = body.statement
        if not speaks_sql(source):
            judged = await self._judged(text, (0, Utf16(text).units(len(text))), body, caller)
            return {"statements": [judged] if text.strip() else [], "spans": None, "error": None}
        read = await self._compute(text, read_text, text, source.dialect)
        statements: list[dict[str, Any]] = []
        for part, units in read.parts:
            statements.append(await self._judged(text[part.start : part.end], units, body, caller))
            await asyncio.sleep(0)  # each takes up to some milliseconds
        return {"statements": statements, "spans": read.spans, "error": read.error}

    async def _compute(
        self,
        text: str,
        function: Callable[Params, Result],
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """What a function makes of a text. Long ones are read on the thread that judges, one at a
        time, so that the texts of callers are judged between them."""
        if len(text) <= SHORT:
            return await compute(text, function, *args, **kwargs)
        async with self._reading:
            return await compute_on_thread(function, *args, **kwargs)

    async def _judged(
        self, text: str, units: tuple[int, int], place: Place, caller: Caller
    ) -> dict[str, Any]:
        query = Query(Statement(text), database=place.database, schema=place.schema)
        call = self._calls.call(caller, query, place.source, tool="run")
        judgement, explanation = await self._calls.judge_under_rules(call)
        verdict = explanation.verdict
        # That a person is asked is what the page says itself.
        why = {"allow": judgement.reason, "ask": ""}.get(verdict.kind, verdict.reason)
        return {
            "start": units[0],
            "end": units[1],
            "effect": judgement.effect.label,
            "tables": list(judgement.tables),
            "verdict": _ASKS[verdict.kind],
            "why": why,
        }

    async def complete(self, body: TextAt, caller: Caller) -> dict[str, Any]:
        """How the text may go on at a place."""
        source = self._calls.source(caller, body.source)
        if not speaks_sql(source):
            return {"from": body.at, "to": body.at, "items": []}
        catalog = await self._calls.catalog(caller, body)
        args = (body.statement, body.at, source.dialect, catalog)
        if len(catalog.tables) > MANY_TABLES:
            return await compute_on_thread(completed, *args)
        return await self._compute(body.statement, completed, *args)

    async def format(self, body: Text, caller: Caller) -> dict[str, Any]:
        """The text in lines of clauses, with the same tokens."""
        source = self._calls.source(caller, body.source)
        check_sql(source, "its statements are not formatted")
        text = await self._compute(body.statement, format_text, body.statement, source.dialect)
        return {"statement": text}

    async def explain(self, body: Explained, caller: Caller) -> dict[str, Any]:
        """How the database would run a statement, or with `analyze` has run one that reads."""
        source = self._calls.source(caller, body.source)
        check_sql(source, "its statements are not explained")
        text = _TRAILING.sub("", body.statement)
        params = typed_values(body.params, body.types, source)
        statement = await self._compute(text, statement_of, text, params, source)
        limits = Limits(
            MOST_PLAN_ROWS, self._calls.limits.max_bytes, self._calls.limits.max_timeout_s
        )
        dialect = find(source.dialect)
        if body.analyze:
            return await self._analyze(statement, body, source, limits, caller)
        read = _READERS.get(dialect.plan_format)
        place: Any = {"limits": limits, "database": body.database, "schema": body.schema}
        request = (
            Explain(statement, **place)
            if dialect.plan_prefixes is None
            else ReadRows(
                Statement(dialect.plan_prefixes[0] + statement.text, statement.params), **place
            )
        )
        page, _ = await self._calls.ask(caller, request, body.source, Page)
        rows = _ROWS.decode(page.rows)
        if read is not None and (rows or dialect.plan_prefixes is None):
            return tree_of(read, rows, "" if dialect.plan_prefixes is None else _lines(rows))
        reason = f"{dialect.title or source.engine} shows its plans as text alone."
        return {"text": _lines(rows), "tree": None, "reason": reason}

    async def _analyze(
        self, statement: Statement, body: Explained, source: Source, limits: Limits, caller: Caller
    ) -> dict[str, Any]:
        dialect = find(source.dialect)
        if dialect.plan_prefixes is None:
            raise TidegateError(
                Code.UNSUPPORTED,
                f"{source.name} does not measure a statement that it runs",
                hint="Explain it without running it.",
            )
        before, read = dialect.plan_prefixes[1], _READERS[dialect.plan_format]
        query = Query(statement, database=body.database, schema=body.schema)
        judgement, _ = await self._calls.judge(
            self._calls.call(caller, query, body.source, tool="run")
        )
        if judgement.effect is not Effect.READ:
            raise TidegateError(
                Code.UNSUPPORTED,
                "To measure this statement would be to run it, and it does not only read",
                hint="Explain it without running it.",
            )
        request = ReadRows(
            Statement(before + statement.text, statement.params),
            limits=limits,
            database=body.database,
            schema=body.schema,
        )
        page, _ = await self._calls.ask(caller, request, body.source, Page)
        rows = _ROWS.decode(page.rows)
        return tree_of(read, rows, _lines(rows))


class TextRead(NamedTuple):
    """A text that was read: its first statements, each with where it is in UTF-16 code units, its
    parts by colour, and where it cannot be read."""

    parts: list[tuple[Part, tuple[int, int]]]
    spans: list[tuple[str, str]] | None
    error: dict[str, Any] | None


def read_text(text: str, dialect: str) -> TextRead:
    """Read a text for the editor."""
    units = Utf16(text)
    parts, unreadable = statement_parts(text, dialect)
    found = [
        (each, (units.units(each.start), units.units(each.end))) for each in parts[:MOST_PARTS]
    ]
    error = None
    if unreadable is not None:
        at = 0 if unreadable.at is None else units.units(unreadable.at)
        error = {"message": unreadable.message, "at": at}
    spans = None
    if len(text) <= MOST_STATEMENT:
        spans = list(marked_parts(list(highlight(text, dialect))))
    return TextRead(found, spans, error)


def completed(text: str, at: int, dialect: str, catalog: Catalog) -> dict[str, Any]:
    """How a text may go on at a place in UTF-16 code units, as JSON."""
    units = Utf16(text)
    found = complete(text, units.characters(at), dialect, catalog)
    return {
        "from": units.units(found.start),
        "to": units.units(found.end),
        "items": [each._asdict() for each in found.items],
    }


def tree_of(
    read: Callable[[list[list[Any]]], PlanNode | None], rows: list[list[Any]], text: str
) -> dict[str, Any]:
    """A plan as a tree, or as its text with the reason."""
    tree, reason = None, f"The plan has over {MOST_LEVELS} levels."
    with suppress(RecursionError):
        found = read_plan(read, rows)
        if found is None:
            reason = "The plan has a form that is not known here."
        elif not is_deeper(found, MOST_LEVELS):
            tree, reason = found, ""
    shown = (text or _lines(rows)) if tree is None else plan_text(tree)
    return {
        "text": shown,
        "tree": None if tree is None else msgspec.to_builtins(tree),
        "reason": reason,
    }


def _lines(rows: list[list[Any]]) -> str:
    return "\n".join(["  ".join([_cell(cell) for cell in row]) for row in rows])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
