"""The requests of this package to the gate. `service.AnswerService` has their handlers."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from tidegate.config.language import Share
from tidegate.model.requests import Request, metadata
from tidegate.model.statements import Judgement
from tidegate.text_to_sql.knowledge import Knowledge


class Guidance(msgspec.Struct, frozen=True):
    """What the server's settings say of questions on one source.

    `provider`, `model` and `host` are those of the configured model, empty if there is none.
    """

    share: Share
    schema_bytes: int
    rounds: int
    max_cost: float
    provider: str = ""
    model: str = ""
    host: str = ""
    max_tokens: int = 2_048
    sampling: bool = False
    knowledge: Knowledge = Knowledge()


class ReadGuidance(Request, frozen=True):
    """Read what holds for questions on the source: settings and its knowledge file."""

    kind: ClassVar[str] = "guidance"
    judgement: ClassVar[Judgement | None] = metadata("guidance", "reads settings for questions")
