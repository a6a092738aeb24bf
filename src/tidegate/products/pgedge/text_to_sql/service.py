"""Answers this package's requests to the gate, by the settings and the state."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.gateway.handlers import HandlerParts, RequestHandler
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Request
from tidegate.model.sources import Source
from tidegate.model_provider_limits import CallerLimits, ProviderLimits
from tidegate.products.pgedge.settings import LanguageSettings, ModelSettings
from tidegate.products.pgedge.text_to_sql.knowledge import Knowledge, read_knowledge
from tidegate.products.pgedge.text_to_sql.model import ModelReply
from tidegate.products.pgedge.text_to_sql.requests import (
    AskModel,
    ConfirmPair,
    FindAnswer,
    Guidance,
    KeepAnswer,
    NoteClientModel,
    ReadGuidance,
    RemovePair,
)
from tidegate.store.api import QuestionStore
from tidegate.store.calls import change_state, read_state
from tidegate.store.records import AnswerEntry, PairEntry

Handler = Callable[[Call, tuple[Source, ...]], Awaitable[Any]]

RequestT = TypeVar("RequestT", bound=Request)

KEPT_S = 7 * 86_400.0
"""How long an answer is kept for later questions."""
_BYTES_PER_TOKEN = 4
_KEPT = "pgedge.questions"


class AnswerService:
    """Handles the requests of `text_to_sql.requests`."""

    def __init__(
        self,
        settings: LanguageSettings,
        store: QuestionStore,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        limits = CallerLimits(
            "language",
            "tokens",
            settings.tokens_per_day,
            settings.seconds_per_day,
            settings.calls_per_minute,
        )
        self._limits = ProviderLimits(store, limits, clock)
        self._knowledge: dict[str, tuple[float, Knowledge]] = {}

    @property
    def handlers(self) -> Mapping[type[Request], Handler]:
        """For a gateway."""
        return {
            ReadGuidance: self._read_guidance,
            AskModel: self._ask_model,
            NoteClientModel: self._note,
            KeepAnswer: self._keep,
            FindAnswer: self._find_answer,
            ConfirmPair: self._confirm,
            RemovePair: self._remove,
        }

    async def _read_guidance(self, call: Call, sources: tuple[Source, ...]) -> Guidance:
        """Raises: TidegateError CONFIG_INVALID if the knowledge file cannot be used,
        ANSWER_UNKNOWN if the caller has no answer of that handle."""
        request = _expect(call, ReadGuidance)
        settings, source = self._settings, sources[0]
        model = settings.model
        pairs = await read_state(self._store.pairs, source.id)
        previous = None
        if request.previous is not None:
            previous = await read_state(self._store.answer, request.previous)
            if previous is None or (previous.actor, previous.source_id) != (
                call.actor.id,
                source.id,
            ):
                raise TidegateError(
                    Code.ANSWER_UNKNOWN, f"There is no answer {request.previous[:40]!r} of yours"
                )
        return Guidance(
            source=source.name,
            dialect=source.dialect,
            share=settings.share_of(source.name),
            schema_bytes=settings.schema_bytes,
            rounds=settings.rounds,
            max_cost=settings.max_cost,
            provider=model.provider if model else "",
            model=model.model if model else "",
            host=_host(model) if model else "",
            max_tokens=model.max_tokens if model else 2_048,
            sampling=settings.sampling,
            embeddings=settings.embeddings,
            knowledge=self._knowledge_of(source.name),
            pairs=pairs,
            previous=previous,
        )

    def _knowledge_of(self, source: str) -> Knowledge:
        """The source's knowledge file, read again when it changes."""
        own = self._settings.sources.get(source)
        if own is None or own.knowledge is None:
            return Knowledge()
        try:
            changed = Path(own.knowledge).stat().st_mtime
        except OSError:
            changed = -1.0
        kept = self._knowledge.get(source)
        if kept is None or kept[0] != changed:
            kept = self._knowledge[source] = changed, read_knowledge(own.knowledge)
        return kept[1]

    async def _ask_model(self, call: Call, sources: tuple[Source, ...]) -> ModelReply:
        """Send the prompt; cancelling the call ends the request.

        Raises: TidegateError LIMIT_RATE, MODEL_LIMIT, CALL_CANCELLED, PROVIDER_*.
        """
        request, model = _expect(call, AskModel), self._settings.model
        if model is None or (request.host, request.model) != (_host(model), model.model):
            raise TidegateError(Code.UNSUPPORTED, "That model is not configured")
        from tidegate.products.pgedge.text_to_sql.providers import (
            ask_provider,  # only calls that ask a model need it
        )

        sent = len(request.prompt.encode()) // _BYTES_PER_TOKEN

        async def ask() -> tuple[ModelReply, int]:
            began = time.monotonic()
            reply = await ask_provider(model, request.system, request.messages)
            received = reply.output_tokens or len(reply.text) // _BYTES_PER_TOKEN
            reply = structs.replace(reply, seconds=time.monotonic() - began)
            return reply, (reply.input_tokens or sent) + received

        return await self._limits.run(call, sent, ask)

    async def _note(self, call: Call, sources: tuple[Source, ...]) -> None:
        _expect(call, NoteClientModel)

    async def _keep(self, call: Call, sources: tuple[Source, ...]) -> str:
        request = _expect(call, KeepAnswer)
        now = self._clock()
        handle = f"a-{secrets.token_hex(8)}"
        entry = AnswerEntry(
            handle, call.actor.id, sources[0].id, request.question, request.sql, now
        )
        await change_state(self._store.add_answer, entry, now - KEPT_S)
        return handle

    async def _find_answer(self, call: Call, sources: tuple[Source, ...]) -> AnswerEntry:
        """Raises: TidegateError POLICY_SCOPE, ANSWER_UNKNOWN."""
        request = _expect(call, FindAnswer)
        _require_confirmer(call.actor)
        entry = await read_state(self._store.answer, request.handle)
        if entry is None or entry.source_id != sources[0].id:
            raise TidegateError(
                Code.ANSWER_UNKNOWN, f"There is no answer {request.handle[:40]!r} on this source"
            )
        return entry

    async def _confirm(self, call: Call, sources: tuple[Source, ...]) -> PairEntry:
        """Raises: TidegateError POLICY_SCOPE."""
        request = _expect(call, ConfirmPair)
        _require_confirmer(call.actor)
        pair = PairEntry(
            request.id,
            sources[0].id,
            request.question,
            request.sql,
            request.slots,
            request.tables,
            request.schema_digest,
            request.result_digest,
            call.actor.name,
            self._clock(),
        )
        await change_state(self._store.add_pair, pair)
        return pair

    async def _remove(self, call: Call, sources: tuple[Source, ...]) -> bool:
        """Raises: TidegateError POLICY_SCOPE."""
        request = _expect(call, RemovePair)
        _require_confirmer(call.actor)
        return await change_state(self._store.remove_pair, sources[0].id, request.id)


def _require_confirmer(actor: Actor) -> None:
    """Raises: TidegateError POLICY_SCOPE unless the actor is a person, or has full access."""
    if actor.kind != "human" and not actor.scope.covers(Scope.FULL_ACCESS):
        raise TidegateError(
            Code.POLICY_SCOPE,
            "Only a person, or a token with full access, may confirm a statement",
            hint="Ask the operator to run `tidegate ask SOURCE --confirm HANDLE`.",
        )


def _expect(call: Call, kind: type[RequestT]) -> RequestT:
    """The call's request. Raises: TypeError for one that another handler answers."""
    request = call.request
    if not isinstance(request, kind):
        raise TypeError(type(request).__name__)
    return request


def _host(model: ModelSettings) -> str:
    return urlsplit(model.address).netloc


def make_handler(parts: HandlerParts, request: type[Request]) -> RequestHandler:
    """What answers a request of `text_to_sql.requests`."""
    service = parts.kept.get(_KEPT)
    if not isinstance(service, AnswerService):
        service = AnswerService(parts.config.section(LanguageSettings), parts.state.questions)
        parts.kept[_KEPT] = service
    return service.handlers[request]
