"""A question and its answer, with the evidence for it. Frozen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, Protocol

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.replies import RecordedPayload
from tidegate.model.results import Cells, Limits, Page, RowSink

Mode = Literal["auto", "sql", "nl"]
"""What the text of a question is: SQL, a question in plain language (`nl`), or to be found out."""

Origin = Literal["sql", "pair", "model", "client_model", "none"]
"""Where the statement came from: the caller, a confirmed pair, the configured model, the model of
the caller's client; `none` if there is no statement."""

MAX_QUESTION_CHARS = 4_000


class AnswerSink(RowSink, Protocol):
    """A sink for the rows of one statement of an answer."""

    @property
    def sent(self) -> bool:
        """Whether rows have left: no other statement can take the place of this one then."""
        ...

    @property
    def first_row(self) -> bytes:
        """The first row as JSON, if it came alone; else empty."""
        ...


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller wants to know of a source.

    `source` is a source's name or id; None means the one source that the caller may see.
    `previous` is the handle of an earlier answer that this question continues. `limits`, `cells`,
    `offset` and `keep_rest` are those of the `Query` that runs the statement. With `sink` its rows
    go to the sink that this gives for a statement, and the page has none. Without `run` the
    statement is written and checked, and not run.
    """

    text: str
    source: str | None = None
    mode: Mode = "auto"
    previous: str | None = None
    limits: Limits = Limits()
    cells: Cells = "json"
    sink: Callable[[str], AnswerSink] | None = None
    offset: int = 0
    keep_rest: bool = False
    run: bool = True


class UsedJoin(msgspec.Struct, frozen=True):
    """A join of the statement, as `table.column`. `declared`: by a foreign key, or by a person in
    the knowledge file; otherwise the model guessed it."""

    left: str
    right: str
    declared: bool


class Check(msgspec.Struct, frozen=True):
    """Something that may make the answer wrong although the statement runs. `name` is the check:
    `fanout`, `null_in_not_in`, `no_rows` (also where there is one, of counts of nothing),
    `text_dates`, `default_filter`, `truncated`, `slot`, `unconnected`, `doubtful_join`,
    `missing_value`."""

    name: str
    message: str


class ModelUse(msgspec.Struct, frozen=True):
    """What was asked of a model for one answer, all rounds together.

    `share` says what of the source was in the prompts, `host` where they went (`client` for the
    model of the caller's client), `bytes` how long they were. `digests` are the SHA-256 of each
    prompt, as in the audit log. Tokens are as the provider counts them, estimated where it does
    not.
    """

    provider: str
    model: str
    host: str
    share: str
    bytes: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    digests: tuple[str, ...] = ()


class Example(msgspec.Struct, frozen=True):
    """A confirmed question and its statement, with slots such as `{1:date}` in place of values."""

    question: str
    sql: str


class Guide(msgspec.Struct, frozen=True):
    """What the calling agent needs to write the statement itself, where no model is configured.

    `schema` are the linked tables in shorthand, one a line. `reason` says why there is no
    statement.
    """

    reason: str
    schema: str
    rules: tuple[str, ...]
    examples: tuple[Example, ...] = ()


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no answer, or no rows. The words of a `TidegateError`."""

    code: Code
    message: str
    hint: str
    retry_after_s: float | None = None

    @classmethod
    def of(cls, error: TidegateError) -> Refusal:
        return cls(error.code, error.message, error.hint, error.retry_after_s)

    def error(self) -> TidegateError:
        """The same as an error."""
        return TidegateError(
            self.code, self.message, hint=self.hint, retry_after_s=self.retry_after_s
        )


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a question, with what it rests on.

    `sql` is the statement, None if there is none; `page` its rows, None if it did not run.
    `plan` is the database's plan of a statement that was not run for its cost, and `cost` the
    planner's estimate where the engine has one. `tables` are those that were linked to the question
    and so were shown to the model, best first; `joins` and `masks` (masked columns as
    `table.column`) are those of the statement. `rounds` counts the requests to a model. `handle`
    names the answer for `Question.previous` and for confirming it. Exactly one of these holds:
    there is a `page`; there is a `refusal`; there is a `guide`; or the question was not to be run.
    """

    question: str
    source: str | None
    origin: Origin = "none"
    sql: str | None = None
    page: Page | None = None
    plan: str | None = None
    cost: float | None = None
    assumptions: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    joins: tuple[UsedJoin, ...] = ()
    masks: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    model: ModelUse | None = None
    rounds: int = 0
    handle: str | None = None
    guide: Guide | None = None
    refusal: Refusal | None = None


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation with a model."""

    role: Literal["user", "assistant"]
    text: str


class ModelReply(RecordedPayload, frozen=True):
    """What a model answered. `complete` is False if it stopped at its limit of tokens."""

    text: str
    model: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    complete: bool = True
    seconds: float = 0.0

    def recorded_arguments(self) -> Mapping[str, Any]:
        # Not under a name with `token` in it: what has one is left out as a secret.
        counted = {"model_input": self.input_tokens, "model_output": self.output_tokens}
        known = {name: count for name, count in counted.items() if count is not None}
        return {**known, "answered_by": self.model, "reply_sha256": digest_of(self.text)}


def digest_of(text: str) -> str:
    """The SHA-256 of a text, as hexadecimal digits."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


class AskClientModel(Protocol):
    """Asks the model of the caller's client (MCP sampling). `key` names the request within the
    call: since 2026-07-28 the call runs again from its start when the reply is there."""

    def __call__(
        self, key: str, system: str, messages: Sequence[Message], max_tokens: int
    ) -> Awaitable[ModelReply]: ...


class AskUser(Protocol):
    """Asks the caller's user which of several readings is meant; None if there is no answer."""

    def __call__(
        self, key: str, question: str, choices: Sequence[str]
    ) -> Awaitable[str | None]: ...
