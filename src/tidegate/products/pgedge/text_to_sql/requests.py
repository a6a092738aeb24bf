"""The requests of this package to the gate. `service.AnswerService` has their handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from tidegate.model.requests import Request, metadata
from tidegate.model.statements import Judgement
from tidegate.products.pgedge.settings import Share
from tidegate.products.pgedge.text_to_sql.knowledge import Knowledge
from tidegate.products.pgedge.text_to_sql.model import Message, digest_of
from tidegate.store.records import AnswerEntry, PairEntry, PairSlot

_HANDLER = "tidegate.products.pgedge.text_to_sql.service:make_handler"


class Guidance(msgspec.Struct, frozen=True):
    """What holds for questions on one source: settings, knowledge file, confirmed pairs.

    `provider`, `model` and `host` are those of the configured model, empty if there is none.
    `previous` is the earlier answer that was asked for.
    """

    source: str
    dialect: str
    share: Share
    schema_bytes: int
    rounds: int
    max_cost: float
    provider: str = ""
    model: str = ""
    host: str = ""
    max_tokens: int = 2_048
    sampling: bool = False
    embeddings: bool = False
    knowledge: Knowledge = Knowledge()
    pairs: tuple[PairEntry, ...] = ()
    previous: AnswerEntry | None = None

    @classmethod
    def of_nothing(cls, dialect: str) -> Guidance:
        """For a statement that the caller wrote: nothing is asked of a model."""
        return cls("", dialect, "names", 0, 0, float("inf"))


class ReadGuidance(Request, frozen=True):
    """Read what holds for questions on the source, and the caller's own answer of that handle."""

    handler: ClassVar[str] = _HANDLER
    kind: ClassVar[str] = "guidance"
    judgement: ClassVar[Judgement | None] = metadata("guidance", "reads settings for questions")

    previous: str | None = None


class AskModel(Request, frozen=True):
    """Send a prompt to the configured model. `provider`, `model`, `host` and `share` are those of
    the `Guidance` by which it was written."""

    handler: ClassVar[str] = _HANDLER
    kind: ClassVar[str] = "model"
    judgement: ClassVar[Judgement | None] = metadata("model", "sends a prompt to a model")
    recorded_first: ClassVar[bool] = True

    provider: str
    model: str
    host: str
    share: Share
    system: str
    messages: tuple[Message, ...]

    def recorded_arguments(self) -> Mapping[str, Any]:
        return {
            "provider": self.provider,
            "model": self.model,
            "host": self.host,
            "share": self.share,
            "bytes": len(self.prompt.encode("utf-8", "replace")),
            "sha256": self.digest,
        }

    @property
    def prompt(self) -> str:
        """All that is sent, as text."""
        return prompt_text(self.system, self.messages)

    @property
    def digest(self) -> str:
        return digest_of(self.prompt)


class NoteClientModel(AskModel, frozen=True):
    """Record that a prompt goes to the model of the caller's client. Sends nothing itself."""

    kind: ClassVar[str] = "client_model"


class KeepAnswer(Request, frozen=True):
    """Keep the caller's question and its statement, for later questions and for confirming it. The
    payload is its handle."""

    handler: ClassVar[str] = _HANDLER
    kind: ClassVar[str] = "answer"
    judgement: ClassVar[Judgement | None] = metadata("answer", "keeps the caller's own answer")

    question: str
    sql: str

    def recorded_text(self) -> str | None:
        return self.sql


class FindAnswer(Request, frozen=True):
    """Find an answer to confirm, of whatever caller. Needs the right to confirm."""

    handler: ClassVar[str] = _HANDLER
    kind: ClassVar[str] = "answer"
    judgement: ClassVar[Judgement | None] = metadata("answer", "reads an answer to confirm it")

    handle: str


class ConfirmPair(Request, frozen=True):
    """Keep a question with its statement as confirmed. Only a person may, or a token with full
    access. The payload is the `PairEntry`."""

    handler: ClassVar[str] = _HANDLER
    kind: ClassVar[str] = "confirm"
    judgement: ClassVar[Judgement | None] = metadata("confirm", "confirms a statement")
    recorded_first: ClassVar[bool] = True

    id: str
    question: str
    sql: str
    slots: tuple[PairSlot, ...]
    tables: tuple[str, ...]
    schema_digest: str
    result_digest: str

    def recorded_text(self) -> str | None:
        return self.sql

    def recorded_arguments(self) -> Mapping[str, Any]:
        return {"pair": self.id, "question": self.question}


class RemovePair(Request, frozen=True):
    """Remove a confirmed pair. Who may confirm may remove. The payload says whether there was
    one."""

    handler: ClassVar[str] = _HANDLER
    kind: ClassVar[str] = "unconfirm"
    judgement: ClassVar[Judgement | None] = metadata("unconfirm", "removes a confirmed statement")
    recorded_first: ClassVar[bool] = True

    id: str

    def recorded_arguments(self) -> Mapping[str, Any]:
        return {"pair": self.id}


def prompt_text(system: str, messages: tuple[Message, ...]) -> str:
    """A prompt as one text: what `ask --show-prompt` shows, and what digests are of."""
    parts = [f"[system]\n{system}", *(f"[{each.role}]\n{each.text}" for each in messages)]
    return "\n\n".join(parts) + "\n"
