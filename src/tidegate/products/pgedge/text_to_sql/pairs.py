"""Confirmed pairs: answers that need no model, and that are checked again.

A pair is a question with the statement that a person has confirmed for it. It is used for callers
who may see all its tables, as long as these are what they were; values in it are slots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.gate_client import GateClient
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog, Table
from tidegate.model.statements import Statement
from tidegate.products.pgedge.text_to_sql.binding import bind
from tidegate.products.pgedge.text_to_sql.model import Answer, Example, Question
from tidegate.products.pgedge.text_to_sql.requests import (
    ConfirmPair,
    FindAnswer,
    Guidance,
    ReadGuidance,
)
from tidegate.products.pgedge.text_to_sql.running import Runner
from tidegate.products.pgedge.text_to_sql.slots import (
    Filled,
    fill,
    make_pattern,
    match,
    pair_id,
    schema_digest,
    tables_named,
)
from tidegate.search.words import split
from tidegate.sql.quoting import identifier, literal, qualified
from tidegate.sql.redaction import redact_statement, without_values
from tidegate.store.records import AnswerEntry, PairEntry

MOST_EXAMPLES = 3
_LOOKUP = Limits(max_rows=2, max_bytes=4_096, timeout_s=2.0)
_SLOT = re.compile(r"\{\d+:\w+\}")
SAMPLES = {"text": "x", "number": "1", "date": "2024-01-01"}
"""Values of slots, by their kind, with which a statement is tried."""

PairState = Literal["same", "differs", "runs", "lapsed", "failed"]
"""What a check found: the rows that were confirmed, others, that a statement with slots can still
run, that its tables are gone or changed, or that it fails."""


class PairCheck(msgspec.Struct, frozen=True):
    """The state of a pair, and what is wrong with it."""

    pair: PairEntry
    state: PairState
    reason: str = ""


def usable(pairs: Sequence[PairEntry], catalog: Catalog) -> list[PairEntry]:
    """The pairs whose tables the caller sees, unchanged, and that compare no column which is
    masked for the caller: a value in such a statement is one of the hidden ones."""
    found: list[PairEntry] = []
    for pair in pairs:
        tables = tables_named(pair.tables, catalog)
        if tables is None or schema_digest(tables) != pair.schema_digest:
            continue
        if not _may_tell_masked(pair, tables, catalog.dialect):
            found.append(pair)
    return found


def _may_tell_masked(pair: PairEntry, tables: Sequence[Table], dialect: str) -> bool:
    """Whether a statement with literals names a masked column of its tables, in any way."""
    masked = [column.name for table in tables for column in table.columns if column.masked]
    plain = _SLOT.sub("", pair.sql)
    if not masked or without_values(plain, dialect, "", numbers=True) == plain:
        return False
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", pair.sql, re.I) for name in masked)


def examples(pairs: Sequence[PairEntry], question: str) -> tuple[Example, ...]:
    """The pairs most like a question, for the writer of another statement."""
    words = set(split(question))
    scored: list[tuple[float, str, PairEntry]] = []
    for pair in pairs:
        own = set(split(pair.question))
        common = len(words & own)
        if common:
            scored.append((-common / len(words | own), pair.id, pair))
    best = sorted(scored, key=lambda each: each[:2])[:MOST_EXAMPLES]
    return tuple([Example(pair.question, pair.sql) for _, _, pair in best])


async def answer_from_pair(runner: Runner, pairs: Sequence[PairEntry]) -> Answer | None:
    """The answer of the one pair that the question fits; None if none does, or several do."""
    fitting: list[tuple[PairEntry, tuple[Filled, ...]]] = []
    for pair in pairs:
        filled = match(pair, runner.question.text)
        if filled is not None:
            fitting.append((pair, filled))
    exact = [each for each in fitting if not each[1]]
    chosen = exact or fitting
    if len(chosen) != 1:
        return None
    pair, filled = chosen[0]
    values: dict[str, str] = {}
    for each in filled:
        value = await _spelled(runner, each)
        if value is None:
            return None
        values[each.slot.name] = value
    sql = fill(pair, values, runner.catalog.dialect)
    try:
        checked = await runner.check(sql)
    except TidegateError as error:
        if error.code in (Code.SQL_FAILED, Code.TABLE_UNKNOWN):
            return None
        raise
    return await runner.finish(checked, "pair", (f"Confirmed as {pair.id}: {pair.question}",))


async def _spelled(runner: Runner, filled: Filled) -> str | None:
    """The value of a slot as the database spells it. A text that is not in quotes must be in the
    column that it is compared with: otherwise it may be any words of another question."""
    slot = filled.slot
    if slot.kind != "text":
        return filled.value
    if not slot.column:
        return filled.value if filled.quoted else None
    schema, table, column = slot.column.split(".", 2)
    dialect = runner.catalog.dialect
    name, place = identifier(column, dialect), qualified(schema, table, dialect)
    same = f"lower({name}) = lower({literal(filled.value, dialect)})"
    query = Query(
        Statement(f"SELECT DISTINCT {name} FROM {place} WHERE {same} LIMIT 2"), limits=_LOOKUP
    )
    try:
        page = await runner.caller.handle(
            query, runner.question.source, Page, reads_only=True, quiet=True, asks=False
        )
    except TidegateError:
        return filled.value if filled.quoted else None
    rows = msgspec.json.decode(page.rows, type=list[list[str | None]])
    texts = [row[0] for row in rows if row[0] is not None]
    if filled.value in texts:
        return filled.value
    if len(texts) == 1:
        return texts[0]
    return filled.value if filled.quoted else None


async def confirm(caller: GateClient, source: str | None, handle: str) -> PairEntry:
    """Confirm the answer of that handle: its statement answers the question from now on.

    Raises: TidegateError ANSWER_UNKNOWN, POLICY_SCOPE for a caller who may not confirm,
    ARGUMENT_INVALID for a statement that holds a secret or whose tables are not clear; whatever the
    gate says to the statement.
    """
    entry = await caller.handle(FindAnswer(handle), source, AnswerEntry)
    catalog = await caller.handle(Browse("catalog"), source, Catalog)
    if redact_statement(entry.sql, catalog.dialect) != entry.sql:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "The statement holds what may be a secret, and is not kept",
            hint="Ask without the secret, and confirm that answer.",
        )
    bound = bind(entry.sql, catalog)
    if bound is None or not bound.tables:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "It is not clear which tables the statement reads",
            hint="Confirm an answer that reads tables of the source.",
        )
    pattern = make_pattern(entry.question, entry.sql, bound, catalog.dialect)
    page = await caller.handle(Query(Statement(entry.sql)), source, Page, reads_only=True)
    return await caller.handle(
        ConfirmPair(
            pair_id(pattern.question),
            pattern.question,
            pattern.sql,
            pattern.slots,
            tuple(sorted({f"{table.schema}.{table.name}" for table in bound.tables})),
            schema_digest(list(bound.tables)),
            "" if pattern.slots else result_digest(page),
        ),
        source,
        PairEntry,
    )


async def check_pairs(caller: GateClient, source: str | None) -> list[PairCheck]:
    """Run every pair of the source again, and say what became of it. Raises: TidegateError."""
    catalog = await caller.handle(Browse("catalog"), source, Catalog)
    guidance = await caller.handle(ReadGuidance(), source, Guidance)
    fresh = {pair.id for pair in usable(guidance.pairs, catalog)}
    checks: list[PairCheck] = []
    for pair in guidance.pairs:
        if pair.id not in fresh:
            checks.append(
                PairCheck(pair, "lapsed", f"Its tables have changed: {', '.join(pair.tables)}")
            )
            continue
        runner = Runner(caller, Question(text=pair.question, source=source), catalog, guidance)
        samples = {slot.name: SAMPLES[slot.kind] for slot in pair.slots}
        try:
            checked = await runner.check(fill(pair, samples, catalog.dialect))
            if pair.slots:
                checks.append(PairCheck(pair, "runs"))
                continue
            page = (await runner.finish(checked, "pair")).page
        except TidegateError as error:
            checks.append(PairCheck(pair, "failed", error.message))
            continue
        same = page is not None and result_digest(page) == pair.result_digest
        checks.append(PairCheck(pair, "same" if same else "differs"))
    return checks


def result_digest(page: Page) -> str:
    """A digest of the columns and rows, whatever the order of the rows."""
    rows = sorted(msgspec.json.encode(row) for row in msgspec.json.decode(page.rows))
    names = msgspec.json.encode([column.name for column in page.columns])
    return sha256(names + b"\n".join(rows)).hexdigest()


def export(pairs: Sequence[PairEntry]) -> str:
    """The pairs as YAML, in the order of their ids."""
    import yaml

    listed = [
        {
            "id": pair.id,
            "question": pair.question,
            "sql": pair.sql,
            "slots": [
                {"name": slot.name, "kind": slot.kind, "column": slot.column} for slot in pair.slots
            ],
            "tables": list(pair.tables),
            "confirmed_by": pair.confirmed_by,
        }
        for pair in sorted(pairs, key=lambda each: each.id)
    ]
    return yaml.safe_dump({"pairs": listed}, sort_keys=False, allow_unicode=True)
