"""Questions of one gate to the others about their records, and the answers.

Texts of statements are in both, so messages say only that there is a question or an answer: these
are encrypted values of the state (`store/carried.py`), which end after `KEPT_S` and are removed
once they were read. A question names the session of the operator for whom it is asked. The gate
that answers reads from the state who that is, and gives what that operator would see in its own
console. A gate that has not answered in time is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from secrets import token_hex
from typing import Any, Literal, NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.store.calls import change_state, read_state
from tidegate.store.carried import CarriedValues, name_of
from tidegate.store.messages import Mailbox
from tidegate.typed_values import decode_json

ASK, ANSWER = "activity.ask", "activity.answer"
KEPT_S = 15.0
MOST_BYTES = 1_048_576
"""What an answer is to have at most; `MOST_PARTS` is where one with a single long line ends."""
MOST_PARTS = 64
MOST_ASKED = 16
"""Questions of this gate that wait for answers at a time."""
MOST_ANSWERING = 8
"""Questions of others that this gate works on at a time; it leaves the others unanswered."""
_PART = 262_144

About = Literal["lines", "export", "sessions", "story", "line", "recent", "proof"]


class Question(msgspec.Struct, frozen=True):
    """What is asked for an operator's session, and from where on, by the gates that are to
    answer."""

    session: str
    about: About
    query: dict[str, str]
    before: dict[str, int | None]


class Refused(msgspec.Struct, frozen=True):
    """Why a gate has no answer."""

    code: str
    message: str
    hint: str


class _Sealed(msgspec.Struct, frozen=True):
    """An answer as it is encrypted."""

    refused: Refused | None
    body: msgspec.Raw


class Answer(NamedTuple):
    """What a gate answered: JSON, or why it refused."""

    body: bytes
    refused: Refused | None

    def read(self) -> bytes:
        """The JSON. Raises: TidegateError as the gate refused it."""
        if self.refused is None:
            return self.body
        codes = {each.value: each for each in Code}  # another release may have others
        code = codes.get(self.refused.code, Code.STATE_FAILED)
        raise TidegateError(code, self.refused.message, hint=self.refused.hint)


class Shared(NamedTuple):
    """What a gate needs to ask and to answer: its messages, the encrypted values, the sessions of
    operators, and its own id."""

    mailbox: Mailbox
    values: CarriedValues
    sessions: Callable[[], Mapping[str, SignedIn]]
    own: str


class _Waiting(NamedTuple):
    gates: frozenset[str]
    found: dict[str, Answer]
    done: asyncio.Event


class GateQuestions:
    """Asks the other gates, and answers them. `answer` makes the JSON of an answer, on a thread.
    Used on the event loop."""

    def __init__(self, shared: Shared, answer: Callable[[Question, SignedIn], bytes]) -> None:
        self._mailbox, self._values, self._sessions, self.own = shared
        self._answer = answer
        self._waiting: dict[str, _Waiting] = {}
        self._answering = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._mailbox.handle(ASK, self._on_ask)
        self._mailbox.handle(ANSWER, self._on_answer)

    async def ask(
        self, question: Question, signed_in: SignedIn, seconds: float
    ) -> dict[str, Answer]:
        """What the gates answer within so many seconds, by gate. Never raises TidegateError: a gate
        that could not be asked has not answered."""
        gates = frozenset(question.before)
        if not gates or len(self._waiting) >= MOST_ASKED:
            return {}
        id = token_hex(16)
        waiting = self._waiting[id] = _Waiting(gates, {}, asyncio.Event())
        try:
            with suppress(TidegateError, TimeoutError):
                async with asyncio.timeout(seconds):
                    body = msgspec.json.encode(question)
                    owner = signed_in.operator.id
                    await change_state(self._values.put, id, owner, _parts(body), KEPT_S)
                    await self._mailbox.send(ASK, msgspec.json.encode((id, self.own)))
                    await waiting.done.wait()
        finally:
            del self._waiting[id]
            self._begin(self._remove(id))
        return waiting.found

    def _on_answer(self, sender: str, body: bytes) -> None:
        with suppress(msgspec.MsgspecError):  # of another release
            id, gate = msgspec.json.decode(body, type=tuple[str, str])
            self._begin(self._take(id, gate))

    async def _take(self, id: str, gate: str) -> None:
        """Read an answer, and remove it, also one that comes too late."""
        name = _name_of_answer(id, gate)
        waiting = self._waiting.get(id)
        with suppress(TidegateError, msgspec.MsgspecError):
            if waiting is not None and gate in waiting.gates:
                parts = await read_state(self._values.read, name, 0, MOST_PARTS - 1)
                sealed = decode_json(b"".join(parts), _Sealed)
                waiting.found[gate] = Answer(bytes(sealed.body), sealed.refused)
                if waiting.gates == waiting.found.keys():
                    waiting.done.set()
        await self._remove(name)

    def _on_ask(self, sender: str, body: bytes) -> None:
        with suppress(msgspec.MsgspecError):
            id, gate = msgspec.json.decode(body, type=tuple[str, str])
            if gate != self.own and self._answering < MOST_ANSWERING:
                self._begin(self._tell(id, sender))

    async def _tell(self, id: str, to: str) -> None:
        self._answering += 1
        try:
            with suppress(TidegateError, msgspec.MsgspecError):
                parts = await read_state(self._values.read, id, 0, MOST_PARTS - 1)
                question = decode_json(b"".join(parts), Question)
                signed_in = (await read_state(self._sessions)).get(question.session)
                if self.own not in question.before or signed_in is None:
                    return
                sealed = await asyncio.to_thread(self._make, question, signed_in)
                name, owner = _name_of_answer(id, self.own), signed_in.operator.id
                await change_state(self._values.put, name, owner, _parts(sealed), KEPT_S)
                await self._mailbox.send(ANSWER, msgspec.json.encode((id, self.own)), to=to)
        finally:
            self._answering -= 1

    def _make(self, question: Question, signed_in: SignedIn) -> bytes:
        try:
            body = self._answer(question, signed_in)
            return msgspec.json.encode(_Sealed(None, msgspec.Raw(body)))
        except TidegateError as error:
            refused = Refused(error.code.value, error.message, error.hint)
            return msgspec.json.encode(_Sealed(refused, msgspec.Raw(b"null")))

    async def _remove(self, id: str) -> None:
        with suppress(TidegateError):  # it ends by itself
            await change_state(self._values.remove, id)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _parts(body: bytes) -> list[bytes]:
    return [body[at : at + _PART] for at in range(0, len(body), _PART)][:MOST_PARTS]


def _name_of_answer(id: str, gate: str) -> str:
    return name_of("answer", id, gate)
