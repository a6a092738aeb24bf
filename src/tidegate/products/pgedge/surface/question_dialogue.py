"""What the client of a tool offers for answering questions: its model, and its user's choice.

For `text_to_sql.answering.answer`, which takes both. In every revision of the protocol they go
through `ToolContext.sample` and `ask`: since 2026-07-28 the call runs again for each reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tidegate.errors import Code, TidegateError
from tidegate.products.pgedge.text_to_sql.model import AskClientModel, AskUser, Message, ModelReply
from tidegate.surfaces.tool_context import ToolContext

_MOST_CHOICES = 8


def client_model(context: ToolContext) -> AskClientModel | None:
    """The client's model; None if the client offers none."""
    if not context.can_sample:
        return None

    async def ask_model(
        key: str, system: str, messages: Sequence[Message], max_tokens: int
    ) -> ModelReply:
        result = await context.sample(
            key,
            [
                {"role": each.role, "content": {"type": "text", "text": each.text}}
                for each in messages
            ],
            max_tokens=max_tokens,
            system=system,
        )
        text = _text(result.get("content"))
        if text is None:
            raise TidegateError(
                Code.PROVIDER_REPLY, "The client's model answered with something else than text"
            )
        model = result.get("model")
        return ModelReply(
            text,
            model[:200] if isinstance(model, str) and model else "unknown",
            complete=result.get("stopReason") != "maxTokens",
        )

    return ask_model


def user_choice(context: ToolContext) -> AskUser | None:
    """A question to the client's user; None if the client shows no forms."""
    if not context.can_ask:
        return None

    async def ask_user(key: str, question: str, choices: Sequence[str]) -> str | None:
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                "reading": {
                    "type": "string",
                    "title": "Meaning",
                    "enum": list(choices[:_MOST_CHOICES]),
                }
            },
            "required": ["reading"],
        }
        content = await context.ask(key, f"What is meant by: {question}", schema)
        chosen = None if content is None else content.get("reading")
        return chosen if chosen in choices else None

    return ask_user


def _text(content: object) -> str | None:
    """The text of one content block or of several (2025-11-25); None if there is none."""
    blocks = cast("list[object]", content) if isinstance(content, list) else [content]
    texts = [
        cast("Mapping[str, Any]", block).get("text")
        for block in blocks
        if isinstance(block, Mapping) and cast("Mapping[str, Any]", block).get("type") == "text"
    ]
    found = [text for text in texts if isinstance(text, str)]
    return "\n".join(found) if found else None
