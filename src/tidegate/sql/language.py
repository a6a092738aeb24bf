"""SQL as one of the languages that the gate knows, for every dialect in `sql/dialects`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules, Show
from tidegate.model.joined_tables import Condition, TableNames
from tidegate.model.language import Language
from tidegate.model.profiles import Comparison
from tidegate.model.requests import EngineRequest, Explain, Prepare, Query, Request
from tidegate.model.results import Column
from tidegate.model.schema import Catalog, Table
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement, Statement
from tidegate.sql import quoting
from tidegate.sql.dialects import find
from tidegate.sql.judge import judge
from tidegate.sql.masking.table_ddl import table_ddl
from tidegate.sql.redaction import redact_statement


class SqlLanguage(Language):
    """Statements in a source's dialect. SQL has no operations."""

    def classify(self, request: Request, source: Source) -> Judgement:
        if isinstance(request, (Query, Prepare)):
            return judge(request.statement.text, source.dialect, source.functions)
        if isinstance(request, Explain):
            # The word EXPLAIN is judged as well: the text after it could turn it into an execution.
            return judge(f"EXPLAIN {request.statement.text}", source.dialect, source.functions)
        return Judgement(
            Effect.UNKNOWN,
            "request.unlisted",
            f"A source that speaks SQL answers no request of the kind {request.kind!r}",
            Code.SQL_UNKNOWN.value,
            "Send an SQL statement instead.",
        )

    def redact(self, text: str, dialect: str, *, mentions: bool = False) -> str:
        return redact_statement(text, dialect, mentions=mentions)

    def literal(self, value: Any, dialect: str) -> str:
        return quoting.literal(value, dialect)

    def rewrite(
        self,
        request: EngineRequest,
        source: Source,
        rules: DataRules,
        catalog: Catalog,
        key: str,
    ) -> EngineRequest | None:
        if not isinstance(request, (Query, Explain, Prepare)):
            return None
        # Imported where something is hidden: it takes a tenth of the time to the first answer.
        from tidegate.sql.masking import rewrite

        given = (request.statement, source.dialect, rules, catalog, key, request.schema)
        if isinstance(request, Explain):
            statement = rewrite.rewrite_explained(*given)
            tuning = _tuning(request, statement, source)
            return structs.replace(request, statement=statement, tuning=tuning)
        statement, (masked, filtered) = rewrite.rewrite_noting(*given)
        if isinstance(request, Prepare):
            return structs.replace(request, statement=statement, masked=masked)
        tuning = _tuning(request, statement, source)
        return structs.replace(
            request, statement=statement, masked=masked, filtered=filtered, tuning=tuning
        )

    def bound_to_session(self, catalog: Catalog, source: Source, rules: DataRules) -> str | None:
        from tidegate.sql.masking.session_settings import table_bound_to_session

        return table_bound_to_session(rules, catalog, source.dialect)

    def masked_columns(
        self, catalog: Catalog, source: Source, rules: DataRules
    ) -> Mapping[tuple[str, str], Mapping[str, Show]]:
        from tidegate.sql.masking import rewrite

        try:
            return rewrite.masked_columns(source.dialect, rules, catalog)
        except TidegateError:
            return {}  # such rules close the source: every statement says which is wrong

    def ddl(self, table: Table, source: Source) -> str | None:
        return table_ddl(table, source.dialect)

    def sample(
        self,
        table: Table,
        columns: Sequence[str],
        most_rows: int,
        source: Source,
        *,
        all_over: bool = False,
    ) -> Statement | None:
        from tidegate.sql import samples

        write = samples.rows_all_over if all_over else samples.first_rows
        return _statement(write(table, columns, most_rows, source.dialect))

    def bounds(
        self, table: Table, columns: Sequence[str], source: Source
    ) -> tuple[Sequence[str], Statement | None]:
        from tidegate.sql import samples

        known = samples.bounded(table, columns, source.dialect)
        return known, _statement(samples.bounds(table, known, source.dialect) if known else None)

    def statistics(self, table: Table, source: Source) -> Statement | None:
        from tidegate.sql import samples

        return _statement(samples.statistics(table, source.dialect))

    def read_table(
        self,
        names: TableNames,
        columns: Sequence[Column],
        conditions: Sequence[Condition],
        source: Source,
    ) -> Statement | None:
        from tidegate.sql.table_reads import table_read  # only joins of sources need it

        return Statement(table_read(names, columns, conditions, source.dialect))

    def padded(self, table: Table, source: Source) -> frozenset[str]:
        if not find(source.dialect).pads_chars:
            return frozenset()
        fixed = ("char(", "character(", "bpchar")
        return frozenset(
            [column.name for column in table.columns if column.type.lower().startswith(fixed)]
        )

    def overlaps(self, comparisons: Sequence[Comparison], source: Source) -> Statement | None:
        from tidegate.sql import samples

        return _statement(samples.overlaps(comparisons, source.dialect))


def _tuning(
    request: Query | Explain, statement: Statement, source: Source
) -> tuple[tuple[str, str], ...]:
    """The settings of a request, with those that keep the order of a masked table's rows."""
    dialect = find(source.dialect)
    if not dialect.as_stored or dialect.as_stored not in statement.text:
        return request.tuning
    return (*request.tuning, *dialect.stored_order)


def _statement(text: str | None) -> Statement | None:
    return Statement(text) if text else None


LANGUAGE = SqlLanguage()
