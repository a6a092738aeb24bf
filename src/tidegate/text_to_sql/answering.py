"""Answers a question: finds its tables, gets a statement, checks it, runs it, says why to trust it.

Everything is read and run through `Caller.handle`, as the caller: its rights, masks, row filters
and limits hold, and each step is on record. Nothing that a model writes can do more.
"""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.model.caller import Caller
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Page
from tidegate.model.schema import Catalog
from tidegate.model.statements import Statement
from tidegate.text_to_sql.detection import is_sql
from tidegate.text_to_sql.linking import Linker
from tidegate.text_to_sql.model import (
    MAX_QUESTION_CHARS,
    Answer,
    AskClientModel,
    AskUser,
    Guide,
    Question,
)
from tidegate.text_to_sql.prompts import rules_for, write_schema
from tidegate.text_to_sql.requests import Guidance, ReadGuidance
from tidegate.text_to_sql.shared_schema import shared_catalog

_MOST_LINKED = 40


async def answer(
    caller: Caller,
    question: Question,
    *,
    client_model: AskClientModel | None = None,
    ask_user: AskUser | None = None,
) -> Answer:
    """Answer a question, or run it if it is SQL.

    `client_model` asks the model of the caller's client, where it offers one; `ask_user` lets the
    caller's user choose between readings. What fails after the tables were found is a `refusal` in
    the answer. Raises: TidegateError for a question that cannot be read and a source that the
    caller cannot use; what `client_model` and `ask_user` raise.
    """
    text = _checked(question)
    catalog = await caller.handle(Browse("catalog"), question.source, Catalog)
    if question.mode == "sql" or (question.mode == "auto" and is_sql(text, catalog)):
        return await _run_given(caller, question)
    guidance = await caller.handle(ReadGuidance(), question.source, Guidance)
    shared = shared_catalog(catalog, guidance.share, guidance.knowledge)
    linker = Linker(shared, guidance.knowledge)
    places = linker.link(text, _MOST_LINKED)
    families = [linker.families[at] for at in places] or linker.families
    schema, shown = write_schema(linker, families, {}, guidance.schema_bytes)
    return Answer(
        question=text,
        source=question.source,
        tables=tuple([family.newest.name for family in families[:shown]]),
        guide=Guide("No model is configured on this server.", schema, rules_for(catalog.dialect)),
    )


def _checked(question: Question) -> str:
    """The question's text. Raises: TidegateError QUESTION_EMPTY, QUESTION_TOO_LONG."""
    text = question.text.strip()
    if not text:
        raise TidegateError(Code.QUESTION_EMPTY, "The question is empty")
    if question.mode != "sql" and len(text) > MAX_QUESTION_CHARS and "\n" not in text[:1]:
        raise TidegateError(
            Code.QUESTION_TOO_LONG,
            f"The question has {len(text):,} characters; {MAX_QUESTION_CHARS:,} are the most",
        )
    return text


async def _run_given(caller: Caller, question: Question) -> Answer:
    """Run the caller's own statement, which must only read. Raises: TidegateError."""
    page = await caller.handle(
        _query(question, question.text), question.source, Page, reads_only=True
    )
    return Answer(
        question=question.text,
        source=question.source,
        origin="sql",
        sql=question.text,
        page=page,
        masks=tuple([f"{table}.{column}" for table, column in page.masked]),
    )


def _query(question: Question, sql: str) -> Query:
    return Query(
        Statement(sql),
        limits=question.limits,
        cells=question.cells,
        sink=question.sink,
        keep_rest=question.keep_rest,
    )
