"""The statements for cloud providers as one of the languages that the gate knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from tidegate.errors import ERRORS, Code, table_refused
from tidegate.model.data_rules import DataRules, EngineRules
from tidegate.model.language import Language
from tidegate.model.requests import EngineRequest, Explain, Prepare, Query, Request
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.language.data_rules import (
    HiddenData,
    change_refused,
    column_refused,
    masked_columns,
)
from tidegate.products.cloud.language.statements import (
    CloudStatement,
    DescribeStatement,
    ExecStatement,
    ReadStatement,
    SqlStatement,
    read_statement,
)
from tidegate.sql import quoting
from tidegate.sql.dialects import find
from tidegate.sql.finding import CODES, Refusal
from tidegate.sql.judge import judge
from tidegate.sql.lex import NAME, WORD, lex
from tidegate.sql.redaction import redact_statement

DIALECT = "cloud"
_REPLACE = re.compile(r"REPLACE\b(?!\s+INTO\b)", re.IGNORECASE)
_CHANGES = {
    "mutation_create": "Creates or changes something at a provider",
    "mutation_delete": "Deletes something at a provider",
    "lifecycle": "Calls a method of a provider, which may do anything",
}


class CloudLanguage(Language):
    """SELECT and the statements that change, over `provider.service.resource`; SHOW, DESCRIBE,
    REGISTRY, EXEC. A judgement's `verb` is the statement's class: select, mutation_create,
    mutation_delete or lifecycle."""

    def classify(self, request: Request, source: Source) -> Judgement:
        if not isinstance(request, (Query, Prepare, Explain)):
            return Judgement(
                Effect.UNKNOWN,
                "request.unlisted",
                f"A source of cloud providers answers no request of the kind {request.kind!r}",
                None,
                "Send a statement instead.",
            )
        try:
            read = read_statement(request.statement.text)
        except Refusal as refusal:
            finding = refusal.finding
            code = finding.code or CODES[finding.effect]
            return Judgement(
                *(finding.effect, finding.rule, finding.reason, code.value),
                finding.hint or ERRORS[code].hint,
            )
        if isinstance(request, Explain):
            read = structs.replace(read, statement_class="select", explained="plan")
        return _judge(read)

    def redact(self, text: str, dialect: str, *, mentions: bool = False) -> str:
        return redact_statement(text, DIALECT, mentions=mentions)

    def literal(self, value: Any, dialect: str) -> str:
        return quoting.literal(value, DIALECT)

    def rewrite(
        self,
        request: EngineRequest,
        source: Source,
        rules: DataRules,
        catalog: Catalog,
        key: str,
    ) -> EngineRequest | None:
        """The request with what the engine must hide of the resources that it reads, which are
        tables of the engine's own. A change is refused if it could use what is hidden."""
        if not isinstance(request, (Query, Prepare, Explain)):
            return None
        try:
            read = read_statement(request.statement.text)
        except Refusal:
            return None
        tables = _judge(read).tables
        hidden = HiddenData(rules, key)
        if _touches_data(read):
            for table in tables:
                _check_listed(table, rules)
            if not isinstance(read.statement, SqlStatement) or read.statement.verb != "select":
                _check_change(read.statement, tables, hidden)
        whole = structs.replace(request, engine_rules=EngineRules(rules, key))
        if isinstance(whole, Explain):
            return whole
        named = [found for table in tables if (found := hidden.of(table)) is not None]
        masked = _touched(read, [column for each in named for column in masked_columns(each)])
        return structs.replace(whole, masked=tuple(dict.fromkeys(masked)))


LANGUAGE = CloudLanguage()


def _judge(read: ReadStatement) -> Judgement:
    """What a statement would do. EXPLAIN changes nothing, whatever it explains."""
    statement = read.statement
    tables: tuple[str, ...] = ()
    if isinstance(statement, SqlStatement):
        judged = judge(sql_of(statement), DIALECT)
        expected = Effect.READ if statement.verb == "select" else Effect.WRITE
        if judged.effect is not expected:
            return judged
        tables = judged.tables
        if statement.verb == "select":
            return structs.replace(judged, verb="select")
    elif isinstance(statement, (DescribeStatement, ExecStatement)):
        tables = (".".join(statement.path[:3]),)
    if read.statement_class == "select":
        return Judgement(Effect.READ, "read", "Reads only", tables=tables, verb="select")
    return Judgement(
        Effect.WRITE,
        f"cloud.{read.statement_class}",
        _CHANGES[read.statement_class],
        Code.POLICY_READ_ONLY.value,
        ERRORS[Code.POLICY_READ_ONLY].hint,
        tables,
        verb=read.statement_class,
    )


def sql_of(statement: SqlStatement) -> str:
    """The text as SQLite's grammar has it: here REPLACE has the form of an UPDATE."""
    if statement.verb == "replace":
        return _REPLACE.sub("UPDATE", statement.text, count=1)
    return statement.text


def _touches_data(read: ReadStatement) -> bool:
    """Whether it shows or changes what is at a provider; documents are public."""
    reads = read.explained in (None, "preview")
    return reads and isinstance(read.statement, (SqlStatement, ExecStatement))


def _touched(read: ReadStatement, masked: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of masked columns those that a query names, or may mean by a star; all of what a change is
    about."""
    statement = read.statement
    if not isinstance(statement, SqlStatement) or statement.verb != "select":
        return masked
    named = {folded(token.text) for token in lex(statement.text, find(DIALECT).lexical_rules)}
    return [each for each in masked if "*" in named or folded(each[1]) in named]


def _check_listed(table: str, rules: DataRules) -> None:
    """Raises: TidegateError POLICY_TABLE for a resource that is not on the caller's list."""
    parts = folded(table).split(".")
    if rules.only is not None and len(parts) == 3:
        listed = [folded(each).removesuffix(".*").split(".") for each in rules.only]
        if not any(parts[: len(each)] == each for each in listed):
            raise table_refused(table)


def _check_change(statement: CloudStatement, tables: Sequence[str], hidden: HiddenData) -> None:
    """Refuse a change that reads from a resource with rules, that is about hidden rows, or that
    names a masked column, also after RETURNING. Raises: TidegateError POLICY_MASKED."""
    for table in tables:
        rules = hidden.of(table)
        if rules is None:
            continue
        if rules.conditions or not isinstance(statement, SqlStatement) or len(tables) > 1:
            raise change_refused(table)
        for token in lex(statement.text, find(DIALECT).lexical_rules):
            if token.kind not in (WORD, NAME):
                continue
            if folded(token.text).removeprefix("data__") in rules.masks:
                raise column_refused(f"{table}.{token.text}")
