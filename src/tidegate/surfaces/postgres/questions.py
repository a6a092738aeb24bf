"""Questions in plain language: asks for a statement and its rows, and writes the answer as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tidegate.model.results import Limits
from tidegate.protocol.model import ToolResult
from tidegate.protocol.model import text as text_block
from tidegate.surfaces.postgres.result_text import (
    ending,
    page_text,
    question_heading,
    structured,
)
from tidegate.surfaces.tool_context import ToolContext
from tidegate.text_to_sql.answering import answer
from tidegate.text_to_sql.model import Answer, Message, ModelReply, Question


async def answer_question(
    context: ToolContext, text: str, source: str | None, limits: Limits
) -> ToolResult:
    """The answer to a question in the document's form. Raises: TidegateError."""

    async def ask_model(
        key: str, system: str, messages: Sequence[Message], max_tokens: int
    ) -> ModelReply:
        said = [
            {"role": each.role, "content": {"type": "text", "text": each.text}} for each in messages
        ]
        reply = await context.sample(key, said, max_tokens=max_tokens, system=system)
        return ModelReply(
            _text_of(reply),
            str(reply.get("model", "")),
            complete=reply.get("stopReason") != "maxTokens",
        )

    async def ask_user(key: str, question: str, choices: Sequence[str]) -> str | None:
        schema = {
            "type": "object",
            "properties": {"choice": {"type": "string", "enum": list(choices)}},
            "required": ["choice"],
        }
        content = await context.ask(key, question, schema)
        return None if content is None else str(content["choice"])

    found = await answer(
        context,
        Question(text=text, source=source, mode="nl", limits=limits),
        client_model=ask_model if context.can_sample else None,
        ask_user=ask_user if context.can_ask else None,
    )
    return _rendered(found)


def _rendered(found: Answer) -> ToolResult:
    if found.refusal is not None:
        raise found.refusal.error()
    sql, page = found.sql or "", found.page
    if page is not None:
        said = b"".join(
            (
                question_heading(found.question, sql).encode(),
                page_text(page),
                ending(page, 0, tuple(_notes(found))).encode(),
            )
        )
        return ToolResult(
            content=[text_block(said.decode())],
            body=structured(
                page,
                sql,
                0,
                question=found.question,
                source=found.source,
                assumptions=found.assumptions,
            ),
        )
    return ToolResult(content=[text_block("\n".join(_without_rows(found)))], body=_as_json(found))


def _notes(found: Answer) -> Iterator[str]:
    for assumption in found.assumptions:
        yield f"Assumed: {assumption}"
    for join in found.joins:
        if not join.declared:
            yield f"Joined without a declared key: {join.left} = {join.right}"
    for check in found.checks:
        yield f"Check {check.name}: {check.message}"
    if found.handle is not None:
        yield f"Answer: {found.handle}"


def _without_rows(found: Answer) -> Iterator[str]:
    """An answer that holds a plan, or what the calling agent needs to write the SQL itself."""
    yield f"Natural Language Query: {found.question}"
    if found.sql is not None:
        yield f"\nGenerated SQL:\n{found.sql}"
        cost = "" if found.cost is None else f", estimated at {found.cost:.0f}"
        yield f"\nNot run: its cost{cost}, is above the limit of this server.\n\nPlan:"
        yield found.plan or ""
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
        "tables": found.tables,
        "reason": guide.reason if guide else None,
        "schema": guide.schema if guide else None,
        "rules": guide.rules if guide else (),
        "examples": guide.examples if guide else (),
    }
    return msgspec.json.encode({name: value for name, value in shown.items() if value})


def _text_of(reply: Any) -> str:
    """The text of a client's message, whose content is one block or several."""
    content = reply.get("content", ())
    blocks: list[Any] = [content] if isinstance(content, dict) else list(content)
    return "".join(str(block.get("text", "")) for block in blocks)
