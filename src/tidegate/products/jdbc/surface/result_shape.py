"""Writes extractions and results in the document's shape; what it does not name is in addition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.model.results import Column, DriverType, Page
from tidegate.products.jdbc.extraction.model import Condition, Extraction
from tidegate.products.jdbc.fixtures import FixtureResult, Language, fixture_code
from tidegate.products.jdbc.result_types import TEXT_CODES, jdbc_type
from tidegate.results.notes import page_note

MOST_COLUMNS = 52
"""Acolyte's largest row list."""

TYPED_RULE = (
    "Use RowLists.rowListN with typed columns; do not use RowLists.stringList for mixed or non-text"
    " columns."
)
TEXT_RULE = (
    "Every column is text. RowLists.stringList holds one column; for more use RowLists.rowListN."
)
_ENCODINGS = {
    "bytes": "base64", "decimal": "decimal string", "date": "ISO 8601", "time": "ISO 8601",
    "time_tz": "ISO 8601", "timestamp": "ISO 8601", "timestamp_tz": "ISO 8601",
    "interval": "ISO 8601 duration", "integer": "number, a string beyond 2^53",
}  # fmt: skip
"""How values of a kind are written, where it is not plain (`results/json_values.py`)."""


def extracted(found: Extraction) -> dict[str, Any]:
    """The member `extracted` of a reply."""
    return {
        "selectFields": [field.text for field in found.fields],
        "whereConditions": [_condition(each) for each in found.conditions],
        "parameterCount": len(found.parameters),
        "tables": found.tables,
        "aliases": {field.alias: field.text for field in found.fields if field.alias},
        "filters": [_filter(each) for each in found.filters],
        "parameters": [
            {"index": index, "clause": each.clause, "field": each.field}
            for index, each in enumerate(found.parameters, 1)
        ],
        "dialect": found.dialect,
    }


def awaiting(query: str, found: Extraction, note: str = "") -> dict[str, Any]:
    """The reply of the first step."""
    fields, conditions = len(found.fields), len(found.conditions)
    message = (
        f"Extracted {fields} field(s), {conditions} condition(s), {len(found.parameters)}"
        " parameter(s). Please confirm this extraction is correct before execution."
    )
    return {
        "status": "awaiting_confirmation",
        "query": query,
        "extracted": extracted(found),
        "message": f"{note}{message}",
    }


def executed(query: str, pages: Sequence[Page], dialect: str, left_out: int) -> dict[str, Any]:
    """The reply of the second step. The columns are those of the first execution, the rows of all
    follow each other."""
    first = pages[0]
    values = _first_row(pages, len(first.columns))
    types = [
        jdbc_type(column, dialect, value)
        for column, value in zip(first.columns, values, strict=True)
    ]
    reply: dict[str, Any] = {
        "status": "executed",
        "query": query,
        "executionCount": len(pages),
        "totalRows": sum(page.row_count for page in pages),
        "columns": [
            _column(index, column, type_)
            for index, (column, type_) in enumerate(zip(first.columns, types, strict=True), 1)
        ],
        "dslHints": dsl_hints(first.columns, types),
        "rows": msgspec.Raw(_joined(pages)),
    }
    cuts: list[Any] = [
        {"execution": number, "kind": cut.kind, "limit": cut.limit, "returned": cut.returned}
        for number, page in enumerate(pages, 1)
        for cut in page.truncations
    ]
    if left_out:
        whole = len(pages) + left_out
        cuts.append({"kind": "executions", "limit": whole, "returned": len(pages)})
    if cuts:
        reply["truncated"] = True
        reply["truncations"] = cuts
    if note := page_note(first):
        reply["note"] = note
    return reply


def dsl_hints(columns: Sequence[Column], types: Sequence[DriverType]) -> dict[str, Any]:
    """What an Acolyte fixture of the result needs: its row list, and what does not fit one."""
    count = len(columns)
    text = count > 0 and all(each.code in TEXT_CODES for each in types)
    fits = 1 <= count <= MOST_COLUMNS
    hints: dict[str, Any] = {
        "recommendedRowListFactory": f"rowList{count}" if fits else None,
        "useStringList": text,
        "rule": TEXT_RULE if text else TYPED_RULE,
    }
    names = [column.name for column in columns]
    warnings: list[str] = []
    if count > MOST_COLUMNS:
        warnings.append(
            f"A row list has at most {MOST_COLUMNS} columns: select fewer than {count}."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        warnings.append(f"Give columns of one name aliases: {', '.join(twice)}.")
    if "" in names:
        warnings.append("Give every column a name: a row list has no column without one.")
    if warnings:
        hints["warnings"] = warnings
    return hints


def generated(
    languages: Sequence[Language], name: str, results: Sequence[FixtureResult]
) -> dict[str, Any]:
    """The members `code` and `codeWarnings` of a reply: the code of each language, None where it
    cannot hold the result."""
    code: dict[str, str | None] = {}
    warnings: dict[str, None] = {}
    for language in languages:
        try:
            written = fixture_code(language, name, results)
        except ValueError as unfit:
            code[language] = None
            warnings[str(unfit)] = None
            continue
        code[language] = written.text
        warnings |= dict.fromkeys(written.warnings)
    reply: dict[str, Any] = {"code": code}
    if warnings:
        reply["codeWarnings"] = list(warnings)
    return reply


def _condition(each: Condition) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "field": each.field,
        "operator": each.operator,
        "placeholder": "?",
        "clause": each.clause,
        "parameterCount": each.parameter_count,
    }
    if each.negated:
        shown["negated"] = True
    return shown


def _filter(each: Condition) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "field": each.field,
        "operator": each.operator,
        "value": each.value,
        "clause": each.clause,
    }
    if each.negated:
        shown["negated"] = True
    return shown


def _column(index: int, column: Column, type_: DriverType) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "index": index,
        "name": column.name,
        "jdbcType": type_.code,
        "jdbcTypeName": type_.name,
        "javaClassName": type_.value_class,
    }
    encoding = _ENCODINGS.get(column.kind)
    if encoding is not None:
        shown["encoding"] = encoding
    return shown


def _first_row(pages: Sequence[Page], width: int) -> Sequence[Any]:
    for page in pages:
        if page.row_count:
            rows: list[list[Any]] = msgspec.json.decode(page.rows)
            return rows[0]
    return [None] * width


def _joined(pages: Sequence[Page]) -> bytes:
    parts = [page.rows[1:-1] for page in pages if page.row_count]
    return b"[" + b",".join(parts) + b"]"
