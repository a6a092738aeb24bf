"""How often each topic of the state has changed: what one process knows, and how it comes to know.

A topic is a part of the state that others wait for, and has a counter in the state. The transaction
that changes the topic adds one to its counter, so the numbers are in order of commit: who has read
number `n` sees every change up to `n`. (Numbers that are given when a row is inserted are not: one
that is lower may be committed later, and who reads "after `n`" never sees it.)

An implementation of the state does three things. `State.read_versions` reads all counters in one
statement that waits for no writer. `State.versions` is the `Versions` of this process, made with
that method. Before a method that has changed a topic returns, `versions.learn` is given the
counters that its transaction saw last. A server whose transactions run side by side changes
counters last, in the order of `TOPICS`, so that no two wait for each other.

A server calls `follow`: then one thread reads the counters every `LOOK_S` or, where that costs
little, more often, whatever the number of those who wait, and `of` answers from memory. It refuses
once the state has not been seen for `STALE_S`: a right may have been taken away meanwhile. Where
nothing follows, as in a command, `of` reads the state when what it knows is older than `_FRESH_S`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import Literal

from tidegate.errors import Code, TidegateError

Topic = Literal[
    "approvals",
    "budgets",
    "messages",
    "operators",
    "pairings",
    "sources",
    "tabs",
    "tasks",
    "tokens",
]
TOPICS: tuple[Topic, ...] = (
    "approvals", "budgets", "messages", "operators", "pairings", "sources", "tabs", "tasks",
    "tokens",
)  # fmt: skip
"""`operators`: also their sessions, except the time of their last use. `tabs`: what `events` of
the windows gives. `tasks`: new calls that are found when they are sent again. The others are what
the area of that name holds; the use of a budget or a token is no change."""

LOOK_S = 0.25
STALE_S = 2.0
RETRY_S = 1.0
_FRESH_S = 0.01
UNFINISHED = "its other end: it is not whole; run the same `tidegate state copy` again"
"""Where a state has moved that is being copied here."""


class StateMoved(TidegateError):
    """The refusal of a state that was copied to another place: the same until a person acts."""

    def __init__(self, place: str) -> None:
        """`place` is the other directory, or the database without its login."""
        self.place = place
        if place == UNFINISHED:
            message = "The copy of a state that is here is not whole."
            hint = "Run the same `tidegate state copy` again."
        elif place.startswith("PostgreSQL "):
            message = f"This state has moved to {place}, and is used here no more."
            hint = "Who runs this gate names that database as `state_url`, or with --state, and"
        else:
            message = f"This state has moved to {place}, and is used here no more."
            hint = (
                "Who runs this gate names that directory as `state`, or with --state, leaves"
                " `state_url` out, and"
            )
        if place != UNFINISHED:
            hint += " starts it again."
        details = {"path": place} if place.startswith("/") else None
        super().__init__(Code.STATE_FAILED, message, hint=hint, details=details)


class Versions:
    """The counters of one state as this process knows them. Safe to use from any thread."""

    def __init__(
        self,
        read: Callable[[], Mapping[Topic, int]],
        look_s: float = LOOK_S,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`read` gives the counters as they are in the state (raises: TidegateError), and is
        called every `look_s` where they are followed."""
        self._read = read
        self._look_s = look_s
        self._clock = clock
        self._known: dict[Topic, int] = {}
        self._seen_at = float("-inf")
        self._failure: TidegateError | None = None
        self._looking = Lock()
        self._publishing = Lock()
        self._learned = 0
        self._loads: dict[Topic, Callable[[], None]] = {}
        self._works: list[Callable[[], None]] = []
        self._listeners: dict[Topic, list[Callable[[], None]]] = {topic: [] for topic in TOPICS}
        self._thread: Thread | None = None
        self._closing = Event()

    @property
    def followed(self) -> bool:
        """Whether a thread follows the state, so that answers come from memory."""
        return self._thread is not None

    @property
    def age_s(self) -> float:
        """For how long the state has not been seen."""
        return self._clock() - self._seen_at

    @property
    def is_stale(self) -> bool:
        """Whether the state is followed and was not seen for `STALE_S`."""
        return self._thread is not None and self._clock() - self._seen_at > STALE_S

    def of(self, topic: Topic) -> int:
        """How often the topic changed. Raises: TidegateError STATE_FAILED."""
        age_s = self._clock() - self._seen_at
        if self._thread is None:
            if age_s >= _FRESH_S:
                self.look()
        elif age_s > STALE_S:
            raise self.stale_error()
        return self._known[topic]

    def check(self) -> None:
        """Raises: TidegateError STATE_FAILED where the state is followed and was not seen for
        `STALE_S`."""
        if self.is_stale:
            raise self.stale_error()

    def stale_error(self) -> TidegateError:
        """What callers get while the state cannot be seen: what a person can do where that is
        needed, and when to look again, since it may be done meanwhile."""
        failure = self._failure
        if isinstance(failure, StateMoved):
            return StateMoved(failure.place)
        text = f"The state has not been read for {STALE_S:g} s, and rights may have changed."
        hint, details = "Retry in a moment.", None
        if failure is not None:
            text, details = f"{text} {failure.message}", failure.details
            if failure.retry_after_s is None:
                hint = failure.hint
        return TidegateError(
            Code.STATE_FAILED, text, hint=hint, retry_after_s=RETRY_S, details=details
        )

    def look(self) -> None:
        """Read the counters now. Raises: TidegateError STATE_FAILED."""
        with self._looking:
            # Before the read: what changes during it must be seen by the next one.
            now, learned = self._clock(), self._learned
            try:
                found = self._read()
                with self._publishing:
                    # A state that lost its last moments counts from a lower number. Only what this
                    # process has changed since the read began is not lost.
                    ours = self._learned != learned
                    more: dict[Topic, int] = {}
                    for topic, number in found.items():
                        had = self._known.get(topic, -1)
                        if number > had or (number < had and not ours):
                            more[topic] = number
                    self._publish(more)
                for work in self._works:
                    work()
            except TidegateError as error:
                self._failure = error
                raise
            self._failure = None
            self._seen_at = now

    def learn(self, found: Mapping[Topic, int]) -> None:
        """Take note of what this process has changed: the counters that its transaction saw last.
        Never raises: what cannot be read after it is read again by those who follow."""
        with self._publishing:
            self._learned += 1
            more: dict[Topic, int] = {}
            for topic, number in found.items():
                if number > self._known.get(topic, -1):
                    more[topic] = number
            try:
                self._publish(more)
            except TidegateError as error:
                self._failure = error
                self._seen_at = float("-inf")

    def load_with(self, topic: Topic, load: Callable[[], None]) -> None:
        """Have `load` read what the topic holds before its number is known, where it is followed:
        so answers about it come from memory. It may raise TidegateError."""
        self._loads[topic] = load

    def work_with(self, work: Callable[[], None]) -> None:
        """Have `work` called after each read of the counters, on the thread that reads them: what
        has to be written again and again needs no thread of its own. It may raise TidegateError:
        then the state counts as not seen."""
        self._works.append(work)

    def listen(self, topic: Topic, call: Callable[[], None]) -> Callable[[], None]:
        """Have `call` called after each change of the topic that this process learns of, on any
        thread; it must be quick. Returns what ends that."""
        listeners = self._listeners[topic]
        listeners.append(call)

        def forget() -> None:
            with suppress(ValueError):
                listeners.remove(call)

        return forget

    async def changed(self, topic: Topic, since: int, within_s: float) -> bool:
        """Wait until the number of the topic is not `since`; False if it still is after so long."""
        if self._known.get(topic) != since:
            return True
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(changed.set)

        forget = self.listen(topic, tell)
        try:
            if self._known.get(topic) == since:
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), within_s)
            return self._known.get(topic) != since
        finally:
            forget()

    def follow(self) -> None:
        """Read the state now and from now on, until `close`. Raises: TidegateError STATE_FAILED,
        and then nothing follows."""
        if self._thread is not None or self._closing.is_set():
            return
        for load in list(self._loads.values()):
            load()
        self.look()
        self._thread = Thread(target=self._follow, name="tidegate-versions", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, unless it waits for a state that does not answer. Safe to call twice."""
        self._closing.set()
        self._seen_at = float("-inf")
        if self._thread is not None:
            self._thread.join(self._look_s)

    def _follow(self) -> None:
        while not self._closing.wait(self._look_s):
            with suppress(TidegateError):  # it is known as `_failure`, and read again
                self.look()

    def _publish(self, more: Mapping[Topic, int]) -> None:
        if not more:
            return
        if self._thread is not None:
            for topic in more:
                if (load := self._loads.get(topic)) is not None:
                    load()
        self._known.update(more)
        for topic in more:
            for call in list(self._listeners.get(topic, ())):  # none of those of a newer version
                call()
