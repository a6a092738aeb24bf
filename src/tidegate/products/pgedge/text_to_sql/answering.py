"""Answers a question: finds its tables, gets a statement, checks it, runs it, says why to trust it.

Everything is read and run through `GateClient.handle`, as the caller: its rights, masks, row
filters and limits hold, and each step is on record. Nothing that a model writes can do more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.gate_client import GateClient
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog
from tidegate.products.pgedge.text_to_sql.detection import is_sql
from tidegate.products.pgedge.text_to_sql.model import (
    MAX_QUESTION_CHARS,
    Answer,
    AskClientModel,
    AskUser,
    Example,
    Guide,
    Question,
    Refusal,
)
from tidegate.products.pgedge.text_to_sql.pairs import answer_from_pair, examples, usable
from tidegate.products.pgedge.text_to_sql.prompts import rules_for
from tidegate.products.pgedge.text_to_sql.requests import (
    Guidance,
    KeepAnswer,
    ReadGuidance,
    prompt_text,
)
from tidegate.products.pgedge.text_to_sql.running import Runner
from tidegate.products.pgedge.text_to_sql.schema_linking import LinkedSchema, link_schema
from tidegate.products.pgedge.text_to_sql.writing import (
    Writer,
    first_message,
    write_statement,
    writer_for,
)
from tidegate.search.privileges import readable_catalog
from tidegate.secrets.redaction import holds_login


async def answer(
    caller: GateClient,
    question: Question,
    *,
    client_model: AskClientModel | None = None,
    ask_user: AskUser | None = None,
) -> Answer:
    """Answer a question, or run it if it is SQL.

    `client_model` asks the model of the caller's client, where it offers one; `ask_user` lets the
    caller's user choose between readings. What fails after the tables were found is a `refusal` in
    the answer. Raises: TidegateError for a question that cannot be read or holds a password, a
    statement of the caller that fails, and a source that the caller cannot use; what `client_model`
    and `ask_user` raise.
    """
    text = _checked(question)
    catalog = await caller.handle(Browse("catalog"), question.source, Catalog)
    if question.mode == "sql" or (
        question.mode == "auto" and is_sql(text, catalog.dialect, catalog)
    ):
        runner = Runner(caller, question, catalog, Guidance.of_nothing(catalog.dialect))
        return await runner.run(question.text, "sql")
    _refuse_login(text)
    guidance = await caller.handle(ReadGuidance(question.previous), question.source, Guidance)
    runner = Runner(caller, question, catalog, guidance)
    pairs = usable(guidance.pairs, catalog)
    known = await answer_from_pair(runner, pairs) if question.previous is None else None
    if known is not None:
        return await _keep(runner, known)
    catalog = await _readable(caller, question, catalog)
    runner = Runner(caller, question, catalog, guidance)
    linked = await link_schema(caller, question.source, catalog, guidance, _whole(text, guidance))
    writer = writer_for(caller, question.source, guidance, client_model)
    if writer is None:
        found = _guide(question, guidance, linked, examples(pairs, text))
    else:
        found = await _written(runner, writer, linked, ask_user, examples(pairs, text))
    return structs.replace(found, tables=tuple([table.name for table in linked.tables]))


async def _readable(caller: GateClient, question: Question, catalog: Catalog) -> Catalog:
    """The catalog of what the caller's account may read. Raises: TidegateError."""

    async def handle(request: Any, expected: Any) -> Any:
        return await caller.handle(
            request, question.source, expected, reads_only=True, quiet=True, asks=False
        )

    return await readable_catalog(handle, catalog)


async def show_prompt(caller: GateClient, question: Question) -> str:
    """What a model would be sent first for a question. Sends nothing.

    Raises: TidegateError QUESTION_EMPTY, QUESTION_TOO_LONG, ARGUMENT_INVALID; whatever the gate
    refuses.
    """
    text = _checked(question)
    _refuse_login(text)
    catalog = await caller.handle(Browse("catalog"), question.source, Catalog)
    guidance = await caller.handle(ReadGuidance(question.previous), question.source, Guidance)
    similar = examples(usable(guidance.pairs, catalog), text)
    catalog = await _readable(caller, question, catalog)
    linked = await link_schema(caller, question.source, catalog, guidance, _whole(text, guidance))
    system, message = first_message(Runner(caller, question, catalog, guidance), linked, similar)
    return prompt_text(system, (message,))


async def _written(
    runner: Runner,
    writer: Writer,
    linked: LinkedSchema,
    ask_user: AskUser | None,
    similar: Sequence[Example],
) -> Answer:
    """The answer with a model's statement. A refusal of the gate or a failure is in the answer."""
    question = runner.question
    try:
        found = await write_statement(runner, writer, linked, ask_user, similar)
    except TidegateError as error:
        found = Answer(question=question.text, source=question.source, refusal=Refusal.of(error))
    found = structs.replace(found, model=writer.use, rounds=writer.rounds)
    return await _keep(runner, found) if found.sql is not None else found


async def _keep(runner: Runner, found: Answer) -> Answer:
    """The answer with the handle under which it is kept."""
    keep = KeepAnswer(runner.question.text.strip(), found.sql or "")
    handle = await runner.caller.handle(keep, runner.question.source, str)
    return structs.replace(found, handle=handle)


def _guide(
    question: Question, guidance: Guidance, linked: LinkedSchema, similar: tuple[Example, ...]
) -> Answer:
    """What the calling agent needs to write the statement itself."""
    known = guidance.knowledge
    rules = (
        *rules_for(guidance.dialect),
        *known.instructions,
        *(f"{each.term} means: {each.means}" for each in known.definitions),
        *(f"{join.left} joins {join.to}" for join in known.joins),
    )
    guide = Guide("No model is configured on this server.", linked.text, rules, similar)
    return Answer(question=question.text, source=question.source, guide=guide)


def _whole(text: str, guidance: Guidance) -> str:
    """The question with the one before, whose tables it may be about as well."""
    return text if guidance.previous is None else f"{text} {guidance.previous.question}"


def _refuse_login(text: str) -> None:
    """Raises: TidegateError ARGUMENT_INVALID for a question with a password to a database: it would
    be sent to a model, and come back in the answer."""
    if holds_login(text):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "The question holds a password to a database, and may be sent to a model",
            hint="Leave the login out, and name the database by its source.",
        )


def _checked(question: Question) -> str:
    """The question's text. Raises: TidegateError QUESTION_EMPTY, QUESTION_TOO_LONG."""
    text = question.text.strip()
    if not text:
        raise TidegateError(Code.QUESTION_EMPTY, "The question is empty")
    if question.mode != "sql" and len(text) > MAX_QUESTION_CHARS:
        raise TidegateError(
            Code.QUESTION_TOO_LONG,
            f"The question has {len(text):,} characters; the limit is {MAX_QUESTION_CHARS:,}",
        )
    return text
