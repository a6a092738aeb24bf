"""Questions in plain language: asks for a statement and its rows, and writes the answer as text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from tidegate.model.results import Page
from tidegate.products.pgedge.surface.errors import GUIDE
from tidegate.products.pgedge.surface.question_dialogue import client_model, user_choice
from tidegate.products.pgedge.surface.result_text import (
    Sent,
    ending,
    page_text,
    question_heading,
    structured,
    with_short_vectors,
)
from tidegate.products.pgedge.surface.streaming import StreamedRows
from tidegate.products.pgedge.text_to_sql.answering import answer
from tidegate.products.pgedge.text_to_sql.model import Answer, Question
from tidegate.protocol.model import ToolResult
from tidegate.protocol.model import text as text_block
from tidegate.protocol.text_stream import TextStream
from tidegate.surfaces.core.errors import error_text
from tidegate.surfaces.tool_context import ToolContext


async def answer_question(
    context: ToolContext, question: Question, stream: TextStream | None, place: str = ""
) -> ToolResult:
    """The answer to a question in the document's form; `place` says where it ran. With a `stream`
    its rows are sent while they are fetched, and what is returned is the part that was not sent.
    Raises: TidegateError."""
    streamed: list[StreamedRows] = []

    def open_sink(stream: TextStream, sql: str) -> StreamedRows:
        rows = StreamedRows(stream, question_heading(question.text, sql))
        streamed[:] = [rows]
        return rows

    sink = None if stream is None else partial(open_sink, stream)
    asked = structs.replace(question, sink=sink)
    found = await answer(
        context, asked, client_model=client_model(context), ask_user=user_choice(context)
    )
    is_costly = found.refusal is not None and found.plan is not None
    if found.refusal is not None and not is_costly:
        raise found.refusal.error()
    if found.page is None:
        # A statement that costs too much is shown all the same, with its plan.
        reply = "\n".join([*_without_rows(found), *([place] if place else [])])
        return ToolResult(content=[text_block(reply)], body=_as_json(found), is_error=is_costly)
    cut: list[str] = streamed[0].notes if streamed else []
    page = found.page
    if not streamed:
        page, cut = with_short_vectors(page)
    notes = [*cut, *([place] if place else []), *_notes(found)]
    end = ending(page, question.offset, notes).encode()
    if streamed:
        return ToolResult(body=streamed[0].rest() + end, structured=False)
    return _with_rows(found, page, question.offset, end)


def _with_rows(found: Answer, page: Page, offset: int, end: bytes) -> ToolResult:
    sql = found.sql or ""
    reply = b"".join((question_heading(found.question, sql).encode(), page_text(page), end))
    return ToolResult(
        content=[text_block(reply.decode())],
        body=structured(
            page,
            sql,
            offset,
            question=found.question,
            source=found.source,
            answer=found,
        ),
    )


def _notes(found: Answer) -> Iterator[str]:
    for assumption in found.assumptions:
        yield f"Assumed: {assumption}"
    for join in found.joins:
        if not join.declared:
            yield f"Joined without a declared key: {join.left} = {join.right}"
    for check in found.checks:
        yield f"Check {check.name}: {check.message}"
    sent = Sent.of(found)
    if sent is not None:
        yield str(sent)
    if found.handle is not None:
        yield f"Answer: {found.handle}"


def _without_rows(found: Answer) -> Iterator[str]:
    """An answer that holds a plan, or what the calling agent needs to write the SQL itself."""
    yield f"Natural Language Query: {found.question}"
    if found.sql is not None:
        yield f"\nGenerated SQL:\n{found.sql}"
        if found.refusal is not None:
            yield f"\nNot run: {error_text(found.refusal.error(), GUIDE)}"
        yield f"\nPlan:\n{found.plan or ''}"
    guide = found.guide
    if guide is not None:
        yield f"\nNo SQL was generated: {guide.reason}"
        yield "Write the statement yourself and send it as the query.\n\nTables:"
        yield guide.schema
        yield "\nRules:"
        yield from (f"- {rule}" for rule in guide.rules)
        if guide.examples:
            yield "\nConfirmed questions like this one:"
            yield from (f"- {example.question}\n  {example.sql}" for example in guide.examples)
    yield from _notes(found)


def _as_json(found: Answer) -> bytes:
    guide = found.guide
    shown: dict[str, Any] = {
        "question": found.question,
        "source": found.source,
        "sql": found.sql,
        "plan": found.plan,
        "cost": found.cost,
        "refusal": found.refusal.code.value if found.refusal else None,
        "tables": found.tables,
        "reason": guide.reason if guide else None,
        "schema": guide.schema if guide else None,
        "rules": guide.rules if guide else (),
        "examples": guide.examples if guide else (),
    }
    return msgspec.json.encode({name: value for name, value in shown.items() if value})
