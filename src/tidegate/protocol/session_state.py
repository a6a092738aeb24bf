"""State that a tool keeps between calls, and closes with the session it belongs to.

In the handshake era a session has one `SessionState`. The stateless era has no sessions: there a
tool asks for a state, gives its id to the client as a handle, and finds it by that handle on a
later call. A handle is bound to its actor and expires when it lies unused.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any

from tidegate.model.actors import Actor

MOST_STATES = 4096
MOST_OF_ACTOR = 64
IDLE_S = 3600.0

CloseHook = Callable[[], Awaitable[None] | None]

_closing: set[asyncio.Future[None]] = set()


class SessionState(dict[str, Any]):
    """Values by name, and what to close with them. `id` is unguessable and names the owner of
    what a session opens (a temporary source)."""

    def __init__(self) -> None:
        super().__init__()
        self.id = urlsafe_b64encode(os.urandom(18)).decode()
        self.closed = False
        self.watched = False
        """Whether the gate is notified of the end."""
        self._hooks: list[CloseHook] = []

    def on_close(self, hook: CloseHook) -> None:
        """Call `hook` when the session ends, the last one first. If it has ended, call it now."""
        if self.closed:
            _run(hook)
        else:
            self._hooks.append(hook)

    def close(self) -> None:
        """Run the hooks and forget the values. Asynchronous hooks run in the background; `settled`
        waits for them. Safe to call twice."""
        self.closed = True
        while self._hooks:
            _run(self._hooks.pop())
        self.clear()


class SessionStates:
    """The states of the stateless era, by handle: bound to their actor, bounded in number."""

    def __init__(
        self, *, idle_s: float = IDLE_S, most: int = MOST_STATES, most_of_actor: int = MOST_OF_ACTOR
    ) -> None:
        self._idle_s = idle_s
        self._most = most
        self._most_of_actor = most_of_actor
        self._states: dict[str, tuple[Actor, SessionState]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def create(self, actor: Actor) -> SessionState:
        """A new state; the oldest one of the actor, or of all, ends if there are too many."""
        own = [id for id, (owner, _) in self._states.items() if owner.id == actor.id]
        if len(own) >= self._most_of_actor:
            self.end(own[0])
        elif len(self._states) >= self._most:
            self.end(next(iter(self._states)))
        state = SessionState()
        self._states[state.id] = actor, state
        self._keep(state.id)
        return state

    def find(self, id: str, actor: Actor) -> SessionState | None:
        """The actor's own state, or None: the state of another actor is unknown to it."""
        owner, state = self._states.get(id, (None, None))
        if owner is None or owner.id != actor.id:
            return None
        self._keep(id)
        return state

    def end(self, id: str) -> None:
        """Close a state; does nothing for an unknown one."""
        timer = self._timers.pop(id, None)
        if timer is not None:
            timer.cancel()
        _, state = self._states.pop(id, (None, None))
        if state is not None:
            state.close()

    def actors(self) -> Iterator[Actor]:
        """The actors of the states; one with several comes several times."""
        return (actor for actor, _ in self._states.values())

    def end_of(self, ids: Collection[str]) -> None:
        """Close the states of these actors."""
        for id, (actor, _) in list(self._states.items()):
            if actor.id in ids:
                self.end(id)

    def close(self) -> None:
        """Close every state."""
        for id in list(self._states):
            self.end(id)

    def _keep(self, id: str) -> None:
        timer = self._timers.pop(id, None)
        if timer is not None:
            timer.cancel()
        self._timers[id] = asyncio.get_running_loop().call_later(self._idle_s, self.end, id)


async def settled() -> None:
    """Wait until every hook that was started in the background has ended."""
    while _closing:
        await asyncio.wait(set(_closing))


def _run(hook: CloseHook) -> None:
    result = hook()
    if inspect.isawaitable(result):
        try:
            task = asyncio.ensure_future(result)
        except RuntimeError:  # the loop has ended, and everything on it with it
            if inspect.iscoroutine(result):
                result.close()
            return
        _closing.add(task)
        task.add_done_callback(_closing.discard)
