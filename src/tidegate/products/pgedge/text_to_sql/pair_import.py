"""Confirms pairs from a file of `tidegate ask --export`, as they fit the source that is here.

Each statement is judged, planned and, if it has no slots, run again, as the person who imports it.
Its tables are those of this source, as they are now. If one cannot be kept, none is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.gate_client import GateClient
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Page
from tidegate.model.schema import Catalog
from tidegate.model.statements import Statement
from tidegate.products.pgedge.text_to_sql.binding import bind
from tidegate.products.pgedge.text_to_sql.model import Question
from tidegate.products.pgedge.text_to_sql.pairs import SAMPLES, result_digest
from tidegate.products.pgedge.text_to_sql.requests import ConfirmPair, Guidance
from tidegate.products.pgedge.text_to_sql.running import Runner
from tidegate.products.pgedge.text_to_sql.slots import fill, pair_id, schema_digest
from tidegate.sql.redaction import redact_statement
from tidegate.store.records import PairEntry, PairSlot
from tidegate.typed_values import convert_value

MOST_PAIRS = 10_000
_MARK = re.compile(r"\{(\d+):(\w+)\}")


class ExportedPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pair as `pairs.export` writes it. Its id follows from its question; its tables, and who
    confirmed it there, say nothing about this source."""

    question: str
    sql: str
    id: str = ""
    slots: tuple[PairSlot, ...] = ()
    tables: tuple[str, ...] = ()
    confirmed_by: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pairs: tuple[ExportedPair, ...]


def read_pairs(content: str) -> tuple[ExportedPair, ...]:
    """The pairs of a file. Raises: TidegateError ARGUMENT_INVALID that says what is wrong."""
    import yaml

    try:
        parsed: Any = yaml.safe_load(content)
        found = convert_value(parsed, _File).pairs
    except (yaml.YAMLError, msgspec.ValidationError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise _wrong(f"The file is not one of confirmed questions: {reason}") from None
    if len(found) > MOST_PAIRS:
        raise _wrong(f"The file has {len(found):,} questions; {MOST_PAIRS:,} are the most")
    for pair in found:
        _check_slots(pair)
    ids = [pair_id(pair.question) for pair in found]
    twice = next((pair for pair, id in zip(found, ids, strict=True) if ids.count(id) > 1), None)
    if twice is not None:
        raise _wrong(f"The file has the question {twice.question[:80]!r} twice")
    return found


async def import_pairs(
    caller: GateClient, source: str | None, pairs: Sequence[ExportedPair]
) -> list[PairEntry]:
    """Confirm all of them on the source. One with the question of a confirmed pair replaces it.

    Raises: TidegateError POLICY_SCOPE for a caller who may not confirm; for the first that cannot
    be kept what is wrong with it, with its question, and then none is.
    """
    catalog = await caller.handle(Browse("catalog"), source, Catalog)
    requests = [await _confirmed(caller, source, catalog, pair) for pair in pairs]
    return [await caller.handle(request, source, PairEntry) for request in requests]


async def _confirmed(
    caller: GateClient, source: str | None, catalog: Catalog, pair: ExportedPair
) -> ConfirmPair:
    guidance = Guidance.of_nothing(catalog.dialect)
    runner = Runner(caller, Question(text=pair.question, source=source), catalog, guidance)
    entry = PairEntry(
        pair_id(pair.question), "", pair.question, pair.sql, pair.slots, (), "", "", "", 0.0
    )
    sql = fill(entry, {slot.name: SAMPLES[slot.kind] for slot in pair.slots}, catalog.dialect)
    try:
        if redact_statement(sql, catalog.dialect) != sql:
            raise _wrong("The statement holds what may be a secret")
        bound = (await runner.check(sql)).bound or bind(sql, catalog)
        if bound is None or not bound.tables:
            raise _wrong("It is not clear which tables the statement reads")
        digest = ""
        if not pair.slots:
            page = await caller.handle(Query(Statement(sql)), source, Page, reads_only=True)
            digest = result_digest(page)
    except TidegateError as error:
        raise TidegateError(
            error.code,
            f"{pair.question[:80]!r} cannot be kept: {error.message}",
            hint="Correct the file, or leave this question out: none was imported.",
        ) from None
    return ConfirmPair(
        entry.id,
        pair.question,
        pair.sql,
        pair.slots,
        tuple(sorted({f"{table.schema}.{table.name}" for table in bound.tables})),
        schema_digest(list(bound.tables)),
        digest,
    )


def _check_slots(pair: ExportedPair) -> None:
    """Raises: TidegateError ARGUMENT_INVALID unless question and statement have these slots."""
    slots = {(slot.name, slot.kind) for slot in pair.slots}
    for text in (pair.question, pair.sql):
        marks = _MARK.findall(text)
        if set(marks) != slots or (text is pair.question and len(marks) != len(slots)):
            raise _wrong(f"The slots of {pair.question[:80]!r} are not those of its statement")


def _wrong(message: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        message,
        hint="`tidegate ask SOURCE --export` writes such a file.",
    )
