"""Has a model write a statement, and has it correct what cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tidegate.errors import Code, TidegateError
from tidegate.model.gate_client import GateClient
from tidegate.model.schema import Table
from tidegate.model.statements import Effect
from tidegate.products.pgedge.text_to_sql.binding import bind
from tidegate.products.pgedge.text_to_sql.model import (
    Answer,
    AskClientModel,
    AskUser,
    Example,
    Message,
    ModelReply,
    ModelUse,
    Origin,
)
from tidegate.products.pgedge.text_to_sql.prompts import (
    question_prompt,
    repair_prompt,
    system_prompt,
)
from tidegate.products.pgedge.text_to_sql.replies import (
    NoStatement,
    Readings,
    Unanswerable,
    Written,
    read_reply,
)
from tidegate.products.pgedge.text_to_sql.requests import AskModel, Guidance, NoteClientModel
from tidegate.products.pgedge.text_to_sql.running import Runner
from tidegate.products.pgedge.text_to_sql.schema_linking import LinkedSchema
from tidegate.sql.judge import judge

REPAIRABLE = frozenset({
    Code.SQL_EMPTY, Code.SQL_TOO_LONG, Code.SQL_TOO_DEEP, Code.SQL_MULTIPLE, Code.SQL_UNREADABLE,
    Code.SQL_UNKNOWN, Code.SQL_FUNCTION, Code.SQL_FAILED, Code.TABLE_UNKNOWN, Code.POLICY_READ_ONLY,
    Code.POLICY_DENIED, Code.POLICY_MASKED, Code.POLICY_TABLE, Code.POLICY_SCOPE,
})  # fmt: skip
"""What a model may do better once it knows."""

_ITS_OWN = frozenset({
    Code.SQL_MULTIPLE, Code.POLICY_READ_ONLY, Code.POLICY_DENIED, Code.POLICY_MASKED,
    Code.POLICY_TABLE, Code.POLICY_SCOPE, Code.SQL_FUNCTION, Code.SQL_UNKNOWN,
})  # fmt: skip
"""Refusals that are the answer when the model does no better."""


class Writer(Protocol):
    """A model that is asked for one question. `use` adds up what it took."""

    origin: Origin
    rounds: int
    use: ModelUse

    async def ask(self, system: str, messages: Sequence[Message]) -> ModelReply:
        """The model's reply. Raises: TidegateError."""
        ...


class _GateWriter:
    """Asks the configured model, by a request of its own to the gate."""

    origin: Origin = "model"

    def __init__(self, caller: GateClient, source: str | None, guidance: Guidance) -> None:
        self._caller = caller
        self._source = source
        self._guidance = guidance
        self.rounds = 0
        self.use = ModelUse(guidance.provider, guidance.model, guidance.host, guidance.share)

    async def ask(self, system: str, messages: Sequence[Message]) -> ModelReply:
        guidance = self._guidance
        request = AskModel(
            guidance.provider,
            guidance.model,
            guidance.host,
            guidance.share,
            system,
            tuple(messages),
        )
        self.rounds += 1
        self.use = _sent(self.use, request)
        reply = await self._caller.handle(request, self._source, ModelReply)
        self.use = _answered(self.use, request, reply)
        return reply


class _ClientWriter:
    """Asks the model of the caller's client, after that is on record."""

    origin: Origin = "client_model"

    def __init__(
        self, caller: GateClient, source: str | None, guidance: Guidance, model: AskClientModel
    ) -> None:
        self._caller = caller
        self._source = source
        self._guidance = guidance
        self._model = model
        self.rounds = 0
        self.use = ModelUse("sampling", "", "client", guidance.share)

    async def ask(self, system: str, messages: Sequence[Message]) -> ModelReply:
        note = NoteClientModel(
            "sampling", "", "client", self._guidance.share, system, tuple(messages)
        )
        await self._caller.handle(note, self._source, type(None))
        self.rounds += 1
        self.use = _sent(self.use, note)
        key = f"statement-{self.rounds}"
        reply = await self._model(key, system, messages, self._guidance.max_tokens)
        self.use = _answered(self.use, note, reply)
        return reply


def writer_for(
    caller: GateClient,
    source: str | None,
    guidance: Guidance,
    client_model: AskClientModel | None,
) -> Writer | None:
    """The configured model, else the client's if the settings allow it, else None."""
    if guidance.model:
        return _GateWriter(caller, source, guidance)
    if guidance.sampling and client_model is not None:
        return _ClientWriter(caller, source, guidance, client_model)
    return None


def _sent(use: ModelUse, request: AskModel) -> ModelUse:
    return ModelUse(
        use.provider,
        use.model,
        use.host,
        use.share,
        use.bytes + len(request.prompt.encode("utf-8", "replace")),
        use.input_tokens,
        use.output_tokens,
        use.seconds,
        (*use.digests, request.digest),
    )


def _answered(use: ModelUse, request: AskModel, reply: ModelReply) -> ModelUse:
    """The use with a reply's tokens, estimated at four bytes each where they are not counted."""
    written = reply.output_tokens
    read = reply.input_tokens
    return ModelUse(
        use.provider,
        reply.model,
        use.host,
        use.share,
        use.bytes,
        use.input_tokens + (len(request.prompt.encode()) // 4 if read is None else read),
        use.output_tokens + (len(reply.text) // 4 if written is None else written),
        use.seconds + reply.seconds,
        use.digests,
    )


def first_message(
    runner: Runner, linked: LinkedSchema, examples: Sequence[Example] = ()
) -> tuple[str, Message]:
    """What a model is sent first: the system prompt and the question with its schema."""
    guidance = runner.guidance
    question = runner.question.text.strip()
    text = question_prompt(question, linked.text, guidance, examples, whole=linked.whole)
    return system_prompt(guidance), Message("user", text)


async def write_statement(
    runner: Runner,
    writer: Writer,
    linked: LinkedSchema,
    ask_user: AskUser | None,
    examples: Sequence[Example] = (),
) -> Answer:
    """The answer with the first statement of the model that can be used.

    What is wrong with a statement goes back to the model, `Guidance.rounds` times.
    Raises: TidegateError QUESTION_UNANSWERABLE, QUESTION_UNSOLVED, QUESTION_NO_SQL, the refusal of
    a statement that the gate does not admit, what the model's provider raises; what `ask_user`
    raises.
    """
    system, first = first_message(runner, linked, examples)
    messages = [first]
    failure: TidegateError | None = None
    readings_left = 1
    repairs = 0
    while repairs <= runner.guidance.rounds:
        reply = await writer.ask(system, messages)
        read = read_reply(reply.text, lambda text: _is_readable(text, runner.catalog.dialect))
        messages.append(Message("assistant", reply.text))
        match read:
            case Unanswerable(reason=reason):
                raise TidegateError(Code.QUESTION_UNANSWERABLE, reason)
            case Readings(readings=readings) if readings_left:
                readings_left -= 1
                messages.append(Message("user", await _choose(runner, readings, ask_user)))
                continue
            case Readings():
                failure = TidegateError(
                    Code.QUESTION_NO_SQL, "The model wrote no statement, but asked what is meant"
                )
                advice = "Take the most likely reading, and say so in `assumptions`."
            case NoStatement(reason=reason):
                cut = "" if reply.complete else " The reply was cut off at its limit of tokens."
                failure = TidegateError(
                    Code.QUESTION_NO_SQL, f"The model wrote no statement. {reason}{cut}".rstrip(".")
                )
                advice = f"{reason}{cut} Answer with the JSON object alone."
            case Written(sql=sql, assumptions=assumptions):
                try:
                    checked = await runner.check(sql)
                    return await runner.finish(checked, writer.origin, assumptions)
                except TidegateError as error:
                    if error.code not in REPAIRABLE or runner.has_begun:
                        raise
                    failure = error
                    advice = _repair(runner, linked, sql, error)
        repairs += 1
        messages.append(Message("user", advice))
    raise _final(failure, repairs)


def _repair(runner: Runner, linked: LinkedSchema, sql: str, error: TidegateError) -> str:
    return repair_prompt(sql, error, linked.catalog, _tables_in(sql, linked))


def _tables_in(sql: str, linked: LinkedSchema) -> list[Table]:
    """The shared tables that a statement names."""
    bound = bind(sql, linked.catalog)
    return list(bound.tables)[:8] if bound is not None else []


async def _choose(runner: Runner, readings: Sequence[str], ask_user: AskUser | None) -> str:
    """What to tell a model that sees several readings."""
    if ask_user is not None:
        chosen = await ask_user("reading", runner.question.text.strip(), readings)
        if chosen is not None:
            return f"The user means: {chosen}"
    return "Take the most likely reading, and say in `assumptions` which one."


def _is_readable(text: str, dialect: str) -> bool:
    judgement = judge(text, dialect)
    return judgement.effect is not Effect.UNKNOWN or judgement.code not in (
        Code.SQL_UNREADABLE.value,
        Code.SQL_UNKNOWN.value,
        Code.SQL_EMPTY.value,
    )


def _final(failure: TidegateError | None, rounds: int) -> TidegateError:
    if failure is None:
        return TidegateError(Code.QUESTION_UNSOLVED, "The model wrote no usable statement")
    if failure.code in _ITS_OWN or failure.code is Code.QUESTION_NO_SQL:
        return failure
    return TidegateError(
        Code.QUESTION_UNSOLVED,
        f"No statement of the model could be used, after {rounds} tries. The last failed: "
        f"{failure.message}",
    )
