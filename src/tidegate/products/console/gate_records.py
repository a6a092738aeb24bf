"""The records of all gates on a state, as one operator may see them: that of this gate, and what
the others answer of theirs.

A gate that does not answer in time is missing, and is said to be. Where gates do not share the
state there is this record alone, under the name "".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import holds
from tidegate.products.console.activity import Activity
from tidegate.products.console.activity_pages import Cursor, cut_lines, read_cursor
from tidegate.products.console.gate_questions import (
    MOST_BYTES,
    About,
    Answer,
    GateQuestions,
    Question,
    Shared,
)
from tidegate.products.console.gates import name_gates, serving_elsewhere
from tidegate.store.calls import read_state
from tidegate.store.gates import GateStore
from tidegate.typed_values import decode_json

WAIT_S = 1.0
"""How long a page waits for other gates."""
LONG_WAIT_S = 4.0
"""How long it waits for what one gate alone has, and an export for each of its parts."""
PATIENCE_S = 0.3
"""How long a gate that is asked reads its record into the index before it answers."""
EXPORT_PAGE = 5_000
_Page = TypeVar("_Page")


class OtherGates(NamedTuple):
    """How other gates are asked, which there are, and the time of the state, `now`."""

    shared: Shared
    gates: GateStore
    now: Callable[[], float]


class Collected(NamedTuple, Generic[_Page]):
    """The pages of the gates that have answered, and why others have not (`silent`, `failed`, or
    `gone` for one that does not run), by id."""

    pages: dict[str, _Page]
    missing: dict[str, str]


class GateRecords:
    """The record at `home` and those of `others`. Used on the event loop."""

    def __init__(self, home: Activity, others: OtherGates | None = None) -> None:
        self._home = home
        self.others = others
        self.own = "" if others is None else others.shared.own
        """The id of this gate."""
        self._questions = (
            None if others is None else GateQuestions(others.shared, self._make_answer)
        )

    async def collect(
        self,
        about: About,
        query: Mapping[str, str],
        signed_in: SignedIn,
        kind: type[_Page],
        read: Callable[[dict[str, str], int | None], _Page],
    ) -> Collected[_Page]:
        """The page of each gate from where the cursor of the query goes on. That of this gate is
        `read` on a thread. Raises: TidegateError ARGUMENT_INVALID, STATE_FAILED."""
        cursor = read_cursor(query.get("before", ""), self.own)
        name, _, gate = query.get("session", "").partition("@")
        asked = {**query, "session": name}
        serving, gone = await self.list_others()
        if cursor is None:
            cursor = dict.fromkeys([self.own, *serving])
        if gate or name.isdigit():  # a session of one gate
            cursor = {each: n for each, n in cursor.items() if each == (gate or self.own)}
            gone = [each for each in gone if each == gate]
        before = {each: n for each, n in cursor.items() if each in serving}
        asking = asyncio.ensure_future(self.ask(about, asked, signed_in, before, WAIT_S))
        found = Collected[_Page]({}, dict.fromkeys(gone, "gone"))
        try:
            if self.own in cursor:
                own = await asyncio.to_thread(read, asked, cursor[self.own])
                found.pages[self.own] = own
            answers = await asking
        finally:
            asking.cancel()
        for each in before:
            try:
                found.pages[each] = decode_json(answers[each].read(), kind)
            except KeyError:
                found.missing[each] = "silent"
            except (TidegateError, msgspec.MsgspecError):
                found.missing[each] = "failed"
        return found

    async def find_one(
        self,
        about: About,
        named: str,
        query: Mapping[str, str],
        signed_in: SignedIn,
        read: Callable[[str], dict[str, Any]],
    ) -> tuple[str, dict[str, Any]]:
        """What the query has under `named`, with its gate: of the gate that its name ends with, or
        of the first that knows it. Raises: as `read`, and TidegateError STATE_FAILED if the gate
        that may know it does not answer."""
        name, _, gate = query.get(named, "").partition("@")
        unknown = TidegateError(Code.ARGUMENT_INVALID, f"There is no gate {gate[:20]}")
        if gate in ("", self.own):
            try:
                return self.own, await asyncio.to_thread(read, name)
            except TidegateError as error:
                if gate or name.isdigit() or error.code is not Code.ARGUMENT_INVALID:
                    raise
                unknown = error
        serving, gone = await self.list_others()
        if gate and gate not in (*serving, *gone):
            raise unknown
        before: Cursor = {each: None for each in serving if gate in ("", each)}
        asked = {**query, named: name}
        answers = await self.ask(about, asked, signed_in, before, LONG_WAIT_S)
        for each, answer in answers.items():
            if gate or answer.refused is None:
                return each, msgspec.json.decode(answer.read(), type=dict[str, Any])
        silent = [gate] if gate else sorted(before.keys() - answers.keys())
        if not silent:
            raise unknown
        raise TidegateError(
            Code.STATE_FAILED,
            f"That may be in the record of a gate that does not answer: {', '.join(silent)}.",
            hint="Try again, or look in the console of that gate.",
        )

    async def ask(
        self,
        about: About,
        query: Mapping[str, str],
        signed_in: SignedIn,
        before: Cursor,
        seconds: float,
    ) -> dict[str, Answer]:
        """What other gates answer, by id. Never raises TidegateError."""
        if self._questions is None:
            return {}
        question = Question(signed_in.session.id, about, dict(query), before)
        return await self._questions.ask(question, signed_in, seconds)

    async def list_others(self) -> tuple[list[str], list[str]]:
        """The other gates that serve, and those that have served and do not run. Raises:
        TidegateError STATE_FAILED."""
        if self.others is None:
            return [], []
        gates, now = await read_state(self.others.gates.list), self.others.now()
        serving = [each.id for each in serving_elsewhere(gates, self.own, now)]
        others = [each.id for each in gates if each.processes and each.id != self.own]
        return serving, [each for each in others if each not in serving]

    async def read_names(self) -> dict[str, str]:
        """The gates' names for people who may see all. Raises: TidegateError STATE_FAILED."""
        return {} if self.others is None else name_gates(await read_state(self.others.gates.list))

    async def name(self, found: Collected[Any], signed_in: SignedIn) -> dict[str, Any]:
        """The gates whose lines are there and those whose lines are not, with names for people:
        their ids, or places for those who may see all. Raises: TidegateError STATE_FAILED."""
        names: dict[str, str] = {}
        if holds(signed_in.operator.roles, "viewer", None):
            names = await self.read_names()
        return {
            "gates": {gate: names.get(gate, gate) for gate in found.pages if gate},
            "missing": [
                {"gate": gate, "name": names.get(gate, gate), "why": why}
                for gate, why in found.missing.items()
            ],
        }

    def _make_answer(self, question: Question, signed_in: SignedIn) -> bytes:
        """What another gate has asked of the record here. On a thread. Raises: TidegateError."""
        home, query, before = self._home, question.query, question.before.get(self.own)
        if question.about == "sessions":
            sessions = home.session_page(query, signed_in, before=before, patience_s=PATIENCE_S)
            return msgspec.json.encode(sessions)
        if question.about == "story":
            return _encode_story(home.story(query, signed_in))
        if question.about == "proof":
            return msgspec.json.encode(home.proof(signed_in, patience_s=PATIENCE_S))
        if question.about == "recent":
            return msgspec.json.encode(home.last_calls(signed_in))
        if question.about == "line":
            return msgspec.json.encode(home.line(query.get("line", ""), signed_in)[0])
        size = {"most": EXPORT_PAGE} if question.about == "export" else {}
        page = home.page(query, signed_in, before=before, patience_s=PATIENCE_S, **size)
        return msgspec.json.encode(cut_lines(page, MOST_BYTES))


def _encode_story(story: dict[str, Any]) -> bytes:
    """A story with as many lines as an answer takes, and one at least."""
    size, lines = 0, story["lines"]
    for place, line in enumerate(lines):
        size += len(msgspec.json.encode(line))
        if size > MOST_BYTES and place:
            story = {**story, "lines": lines[:place], "next": lines[place - 1]["n"]}
            break
    return msgspec.json.encode(story)
