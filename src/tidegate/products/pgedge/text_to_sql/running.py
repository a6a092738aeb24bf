"""Checks a statement and runs it, through the gate, as the caller.

The gate judges it and the database plans it before it runs. What may make its result wrong is
searched for in the statement (`evidence`), and with small queries of the caller's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from time import monotonic

import msgspec

from tidegate.errors import HIDDEN_PLAN, Code, TidegateError
from tidegate.model.gate_client import GateClient
from tidegate.model.profiles import Place, TableProfile
from tidegate.model.requests import Explain, Query
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog
from tidegate.model.statements import Statement
from tidegate.products.pgedge.text_to_sql.binding import Bound, bind
from tidegate.products.pgedge.text_to_sql.evidence import (
    NullProbe,
    check_statement,
    joins_to_confirm,
    null_check,
    null_probes,
    used_joins,
)
from tidegate.products.pgedge.text_to_sql.literals import (
    MOST_VALUES,
    literal_probes,
    missing_check,
    near_texts,
)
from tidegate.products.pgedge.text_to_sql.model import (
    Answer,
    AnswerSink,
    Check,
    Origin,
    Question,
    Refusal,
)
from tidegate.products.pgedge.text_to_sql.plans import Plan, read_plan
from tidegate.products.pgedge.text_to_sql.requests import Guidance
from tidegate.products.pgedge.text_to_sql.schema_linking import read_profiles
from tidegate.results.notes import cut_note, found_nothing
from tidegate.search.suggestions import nearest_columns, note_near_values
from tidegate.sql.quoting import identifier, qualified

_MOST_PROBES, _MOST_LITERALS = 4, 10
_PROBING_S = 4.0
"""Seconds after which no other text is searched for."""
_PROBE = Limits(max_rows=1, max_bytes=4_096, timeout_s=2.0)
_VALUES = Limits(max_rows=MOST_VALUES, max_bytes=64 * 1024, timeout_s=2.0)
_LONGEST_BOUND = 20_000


class Checked(msgspec.Struct, frozen=True):
    """A statement that the gate admits and the database can run. `plan` is None where the caller
    may not see one, since it would tell of hidden rows, or not without asking a person; `bound`
    where the names could not be looked up."""

    sql: str
    plan: Plan | None
    bound: Bound | None


class Runner:
    """Checks and runs statements for one question."""

    def __init__(
        self, caller: GateClient, question: Question, catalog: Catalog, guidance: Guidance
    ) -> None:
        self.caller = caller
        self.question = question
        self.catalog = catalog
        self.guidance = guidance
        self._sink: AnswerSink | None = None

    @property
    def has_begun(self) -> bool:
        """Whether rows have left through the question's sink: then nothing is tried again."""
        return self._sink is not None and self._sink.sent

    async def run(self, sql: str, origin: Origin, assumptions: Sequence[str] = ()) -> Answer:
        """The answer with a statement that is taken as it is. Raises: TidegateError."""
        bound = bind(sql, self.catalog) if len(sql) <= _LONGEST_BOUND else None
        return await self.finish(Checked(sql, None, bound), origin, assumptions)

    async def check(self, sql: str) -> Checked:
        """Have the gate judge the statement and the database plan it; look up its names.

        Raises: TidegateError, whatever is wrong with it.
        """
        plan: Plan | None = None
        request = Explain(Statement(sql), limits=self.question.limits)
        try:
            page = await self.caller.handle(
                request, self.question.source, Page, reads_only=True, quiet=True, asks=False
            )
            plan = read_plan(page)
        except TidegateError as error:
            hidden = error.details.get("rule") == HIDDEN_PLAN
            if error.code is not Code.APPROVAL_NEEDED and not hidden:
                raise
        bound = bind(sql, self.catalog) if len(sql) <= _LONGEST_BOUND else None
        if bound is not None and bound.unknown:
            name = bound.unknown[0]
            near = nearest_columns(name.replace('"', ""), self.catalog, bound.tables)
            raise TidegateError(
                Code.SQL_FAILED,
                f"no such column: {name}",
                hint=f"Nearest: {', '.join(near)}." if near else None,
            )
        return Checked(sql, plan, bound)

    async def finish(
        self, checked: Checked, origin: Origin, assumptions: Sequence[str] = ()
    ) -> Answer:
        """Run a checked statement, unless it costs too much or is not to be run; with what is to be
        said of it. Raises: TidegateError."""
        question, plan = self.question, checked.plan
        joins = (
            used_joins(checked.bound, self.catalog, self.guidance.knowledge)
            if checked.bound is not None
            else ()
        )
        guessed = [
            f"{join.left} refers to {join.right}: no key declares it."
            for join in joins
            if not join.declared
        ]
        found = Answer(
            question=question.text,
            source=question.source,
            origin=origin,
            sql=checked.sql,
            assumptions=(*assumptions, *(guessed if origin != "sql" else ())),
            joins=joins,
            cost=plan.cost if plan is not None else None,
        )
        if plan is not None and plan.cost is not None and plan.cost > self.guidance.max_cost:
            refusal = Refusal.of(
                TidegateError(
                    Code.QUESTION_COSTLY,
                    f"The plan costs {plan.cost:,.0f}; the limit is {self.guidance.max_cost:,.0f}",
                )
            )
            return msgspec.structs.replace(found, plan=plan.text, refusal=refusal)
        if not question.run:
            checks = tuple(await self._checks(checked, None, origin))
            return msgspec.structs.replace(
                found, plan=plan.text if plan is not None else None, checks=checks
            )
        page = await self._query(checked.sql)
        return msgspec.structs.replace(
            found,
            page=page,
            masks=tuple([f"{table}.{column}" for table, column in page.masked]),
            checks=tuple(await self._checks(checked, page, origin)),
        )

    async def _query(self, sql: str) -> Page:
        question = self.question
        self._sink = None if question.sink is None else question.sink(sql)
        request = Query(
            Statement(sql),
            limits=question.limits,
            cells=question.cells,
            sink=self._sink,
            offset=question.offset,
            keep_rest=question.keep_rest,
        )
        return await self.caller.handle(request, question.source, Page, reads_only=True)

    async def _checks(self, checked: Checked, page: Page | None, origin: Origin) -> list[Check]:
        """What may be wrong. Of a statement that the caller wrote, only what costs no query unless
        it found nothing."""
        found: list[Check] = []
        bound = checked.bound
        if bound is not None:
            profiles: Mapping[Place, TableProfile] = {}
            probes: list[NullProbe] = []
            if origin != "sql":
                tables = list(bound.tables)
                profiles = await read_profiles(self.caller, self.question.source, tables)
                probes = list(null_probes(bound))[:_MOST_PROBES]
            found += check_statement(bound, self.catalog, self.guidance.knowledge, profiles)
            for probe in probes:
                if await self._finds_null(probe):
                    found.append(null_check(probe))
            if origin != "sql" and page is not None:
                found += await self._missing_values(bound)
                found += await self._doubtful_joins(bound, profiles)
        if page is not None and self._found_nothing(page):
            near = await note_near_values(checked.sql, self.caller, self.question.source)
            if near or not page.row_count:
                found.append(Check("no_rows", near or "No row fits the conditions."))
        if page is not None and page.truncations:
            note = cut_note(page)
            if any(cut.kind != "value" for cut in page.truncations):
                note += ", which sums and counts of what is shown leave out"
            found.append(Check("truncated", f"The result is incomplete: {note}."))
        return list(dict.fromkeys(found))

    async def _missing_values(self, bound: Bound) -> list[Check]:
        """Texts of the statement that no row has which the caller sees, each with what is like
        it. What cannot be found out in time is not said."""
        found: list[Check] = []
        until = monotonic() + _PROBING_S
        for probe in islice(literal_probes(bound, self.catalog.dialect), _MOST_LITERALS):
            if monotonic() > until:
                break
            if await self._finds_row(probe.sql) is not False:
                continue
            values = await self._probe(probe.values, _VALUES)
            near = near_texts(probe, values.rows if values is not None else b"[]")
            if near or not probe.is_alternative:
                found.append(missing_check(probe, near))
        return found

    async def _doubtful_joins(
        self, bound: Bound, profiles: Mapping[Place, TableProfile]
    ) -> list[Check]:
        """Joins of columns that neither a key, nor names, nor values say belong together."""
        found: list[Check] = []
        joins = joins_to_confirm(bound, self.catalog, self.guidance.knowledge, profiles)
        for join in joins[:_MOST_PROBES]:
            orphans = [await self._finds_row(sql) for sql in join.probes(self.catalog.dialect)]
            if all(orphans):
                found.append(join.check())
        return found

    async def _finds_row(self, sql: str) -> bool | None:
        """Whether the caller sees a row; None if that cannot be found out."""
        page = await self._probe(sql, _PROBE)
        return None if page is None else page.row_count > 0

    async def _probe(self, sql: str, limits: Limits) -> Page | None:
        query = Query(Statement(sql), limits=limits)
        try:
            return await self.caller.handle(
                query, self.question.source, Page, reads_only=True, quiet=True, asks=False
            )
        except TidegateError:
            return None

    def _found_nothing(self, page: Page) -> bool:
        """Whether no row met the conditions, also where the rows went to a sink."""
        if self.question.offset:
            return False
        if self._sink is not None:
            page = msgspec.structs.replace(page, rows=self._sink.first_row)
        return found_nothing(page)

    async def _finds_null(self, probe: NullProbe) -> bool:
        """Whether the caller sees a NULL in the column; True if that cannot be found out."""
        table, dialect = probe.column.table, self.catalog.dialect
        name = identifier(probe.column.column.name, dialect)
        place = qualified(table.schema, table.name, dialect)
        return (
            await self._finds_row(f"SELECT 1 FROM {place} WHERE {name} IS NULL LIMIT 1")
            is not False
        )
