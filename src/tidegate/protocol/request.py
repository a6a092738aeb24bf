"""One request being answered: what its handler may know and do (`model.Context`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.protocol import elicitation_results
from tidegate.protocol import params as p
from tidegate.protocol.jsonrpc import notification_frame
from tidegate.protocol.long_calls import NO_SUCH_CALL, LongCalls, Resumed, declares_tasks
from tidegate.protocol.model import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LOG_LEVELS,
    MISSING_CAPABILITY,
    Ask,
    Info,
    LogLevel,
    RpcError,
)
from tidegate.protocol.revisions import Revision
from tidegate.protocol.session import AskFailed, MessageSender, Session
from tidegate.protocol.session_state import SessionState, SessionStates
from tidegate.protocol.tasks import Task, Work
from tidegate.protocol.text_stream import ReplyBody, TextStream
from tidegate.protocol.transport import Answer

NOTHING: Mapping[str, Any] = {}
PROGRESS_KEY = "progressToken"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"

_CAPABILITIES = {"sampling/createMessage": "sampling", "roots/list": "roots"}


def _capability_of(ask: Ask) -> str:
    if ask.method == "elicitation/create":
        return f"elicitation.{ask.params.get('mode', 'form')}"
    return _CAPABILITIES[ask.method]


def progress_token(meta: Mapping[str, Any]) -> str | int | None:
    """The caller's token; one that is neither text nor integer is ignored."""
    token = meta.get(PROGRESS_KEY)
    return token if isinstance(token, (str, int)) and not isinstance(token, bool) else None


class InputRequired(Exception):
    """Unwinds a handler of the stateless era that needs answers it does not have yet."""

    def __init__(self, asks: Mapping[str, Ask]) -> None:
        super().__init__("input required")
        self.asks = asks


class McpRequest(msgspec.Struct, eq=False, kw_only=True):
    """The context of one request. `sender` is the request's own stream. `state`, and its
    `state_id`, is that of the session, or the one of `states` that this request has made or found.
    """

    id: bytes
    actor: Actor
    wire: Revision
    sender: MessageSender
    client: Info
    client_capabilities: Mapping[str, Any] = NOTHING
    meta: Mapping[str, Any] = NOTHING
    session: Session | None = None
    cancellation: Cancellation = msgspec.field(default_factory=Cancellation)
    closer: Callable[[int | None], Awaitable[None]] | None = None
    states: SessionStates | None = None
    state: SessionState | None = None
    state_id: str = ""
    wants_progress: bool = False
    user_agent: str = ""
    address: str = ""
    answers: Mapping[str, Any] = NOTHING
    volunteered: Mapping[str, Any] = NOTHING
    body: ReplyBody | None = None
    stream: TextStream | None = None
    early: Callable[[Answer], None] | None = None
    passes_on: int = 0
    called: p.CallTool | None = None
    """The call of a tool that this is, and `calls` those that are under way with it."""
    calls: LongCalls | None = None
    work: Work | None = None
    task: Task | None = None
    """What the call became when it was answered before it had ended."""
    running: dict[bytes, Cancellation] | None = None
    """The calls of the connection that their client may cancel."""
    waits_for: str = ""
    may_change: bool = False

    @property
    def revision(self) -> str:
        return self.wire.name

    def new_state(self) -> SessionState:
        """See `model.Context.new_state`."""
        if self.state is None:
            # Without a table of states the state lives as long as this request.
            self.state = self.states.create(self.actor) if self.states else SessionState()
            self.state_id = self.state.id
        return self.state

    def find_state(self, handle: str) -> SessionState | None:
        """See `model.Context.find_state`."""
        if self.session is not None:
            return self.session.state if handle == self.session.state.id else None
        found = self.states.find(handle, self.actor) if self.states else None
        if found is not None:
            self.state, self.state_id = found, found.id
        return found

    def text_stream(self) -> TextStream | None:
        """See `model.Context.text_stream`."""
        if self.stream is not None and self.stream.started:
            return self.stream
        if self.body is None or not self.body.usable or self.wants_progress:
            return None
        if self.stream is None:
            self.stream = TextStream(self.body, self.id)
        return self.stream

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Send `notifications/progress`, if the caller gave a token."""
        token = progress_token(self.meta)
        if token is None or self.cancellation.cancelled:
            return
        params: dict[str, Any] = {"progressToken": token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None and self.wire.progress_messages:
            params["message"] = message
        frame = notification_frame("notifications/progress", params)
        own = self.session.sender if self.session is not None else None
        # A client that takes plain JSON as its reply may listen on the session's own stream.
        if own is not None and not self.sender.open:
            own.send(frame)
        elif self.session is None or not self.session.is_shared or self.sender.open:
            self.sender.send(frame)
        else:  # that stream may be at another process
            self.session.tell_others("event", b"", frame)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send `notifications/message`, if the caller wants that level."""
        wanted = self._log_level()
        if wanted is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(wanted):
            return
        params: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        self.sender.send(notification_frame("notifications/message", params))

    def _log_level(self) -> LogLevel | None:
        if self.session is not None:
            return self.session.log_level
        level = self.meta.get(LOG_LEVEL_KEY)
        return level if level in LOG_LEVELS else None

    def can(self, capability: str) -> bool:
        """Whether the client declared a capability; dots go deeper (`sampling.tools`)."""
        at: Any = self.client_capabilities
        for name in capability.split("."):
            if not isinstance(at, Mapping) or name not in at:
                return False
            at = at[name]  # pyright: ignore[reportUnknownVariableType]
        return True

    async def ask(self, key: str, ask: Ask) -> Mapping[str, Any]:
        """Ask one thing; see `model.Context.ask`."""
        return (await self.ask_all({key: ask}))[key]

    async def ask_all(self, asks: Mapping[str, Ask]) -> Mapping[str, Mapping[str, Any]]:
        """Ask several things; see `model.Context.ask_all`."""
        for ask in asks.values():
            self._require(_capability_of(ask))
        if self.task is not None and self.wire.modern:
            if not declares_tasks(self):
                raise RpcError(INVALID_PARAMS, "The client has its reply: it is asked no more")
            given = await self.task.ask(asks)
        elif self.wire.modern:
            given = self._take_answers(asks)
        else:
            given = {key: await self._request(ask) for key, ask in asks.items()}
        for key, ask in asks.items():
            elicitation_results.check(key, ask, given[key])
        return given

    def _require(self, capability: str) -> None:
        name, _, part = capability.partition(".")
        declared: Any = self.client_capabilities.get(name)
        # Bare `elicitation` has always meant forms; `elicitation` with `url` alone does not.
        if declared is None or (part and declared and part not in declared):
            raise RpcError(
                MISSING_CAPABILITY,
                f"The client did not declare the capability {capability}",
                {"requiredCapabilities": {name: {part: {}} if part and declared else {}}},
                status=400 if self.wire.modern else None,
            )

    def _take_answers(self, asks: Mapping[str, Ask]) -> dict[str, Mapping[str, Any]]:
        given: dict[str, Mapping[str, Any]] = {}
        for key, ask in asks.items():
            if key in self.answers:
                given[key] = self.answers[key]
            elif ask.volunteered and key in self.volunteered:
                given[key] = self.volunteered[key]
        if len(given) < len(asks):
            raise InputRequired({key: ask for key, ask in asks.items() if key not in given})
        return given

    async def _request(self, ask: Ask) -> Mapping[str, Any]:
        if self.session is None:
            raise RpcError(INTERNAL_ERROR, "No session to ask through")
        try:
            return await self.session.request(
                self.sender, ask.method, ask.params, self.cancellation
            )
        except AskFailed as failure:
            raise RpcError(INVALID_PARAMS, f"The client did not answer: {failure}") from None

    # What lasts (`model.requests.Waiter`)

    def answer_early(self, answer: Answer) -> None:
        """Give the reply, though the call goes on."""
        if self.early is not None:
            self.early(answer)

    @property
    def patience_s(self) -> float | None:
        """How long the call may wait for a person; None: as long as the settings say."""
        if self.calls is None or self.called is None or not declares_tasks(self):
            return None
        return self.calls.tasks.times.keep_s

    async def begin_wait(self, what: str) -> None:
        """The call waits for a person, and has sent nothing."""
        self.waits_for = what
        if self.calls is None:
            return
        if self.task is None:
            await self.calls.leave(self)
        else:
            await self.calls.tasks.update(self.task, waiting=what)

    async def end_wait(self) -> None:
        """The call goes on. Raises: TidegateError STATE_FAILED if that cannot be kept."""
        self.waits_for = ""
        if self.task is not None and self.calls is not None:
            await self.calls.tasks.update(self.task)

    async def note_change(self) -> None:
        """What is sent next may change data. Raises: TidegateError STATE_FAILED if that cannot be
        kept."""
        self.may_change = True
        if self.task is not None and self.calls is not None:
            await self.calls.tasks.update(self.task, changes=True)

    async def resume(self, id: str) -> Resumed:
        """See `model.Context.resume`."""
        if self.calls is None:
            return Resumed(lost=NO_SUCH_CALL)
        return await self.calls.resume(self, id)

    async def close_stream(self, retry_ms: int | None = None) -> None:
        """End the response stream early; see `model.Context.close_stream`."""
        if self.closer is not None:
            await self.closer(retry_ms)
