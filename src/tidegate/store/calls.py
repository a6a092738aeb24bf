"""Calls to the state from an event loop: on threads of their own, and never longer than a bound.

A state may not answer: a disk hangs, a server waits for its standby, a network is cut. A call that
hangs keeps its thread, so these threads are not those that hash passwords and run engines, and
there are `MOST_THREADS` of them at most. The caller gets an answer within `PATIENCE_S`, whatever
bound the database has of its own. A change that was asked for and not confirmed by then may still
be made, and the error says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar

from tidegate.errors import Code, TidegateError

PATIENCE_S = 5.0
MOST_THREADS = 12
MOST_WAITING = 2_000
RETRY_S = 1.0

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


async def read_state(
    call: Callable[_Given, _Found], *args: _Given.args, **kwargs: _Given.kwargs
) -> _Found:
    """What a call that only reads the state returns. Raises: as the call, and TidegateError
    STATE_FAILED if it takes too long."""
    return await _run(lambda: call(*args, **kwargs), changes=False)


async def change_state(
    call: Callable[_Given, _Found], *args: _Given.args, **kwargs: _Given.kwargs
) -> _Found:
    """As `read_state`, for a call that changes the state. If it takes too long, it cannot be known
    whether it was done."""
    return await _run(lambda: call(*args, **kwargs), changes=True)


class _Call:
    """One call, and who waits for it."""

    __slots__ = ("_given_up", "_loop", "_run", "begun", "changes", "ended")

    def __init__(self, run: Callable[[], Any], *, changes: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._run = run
        self._given_up = False
        self.changes = changes
        self.begun = False
        self.ended: asyncio.Future[Any] = self._loop.create_future()

    def give_up(self) -> None:
        """Wait for it no more. It is not begun any more, either."""
        self._given_up = True
        if not self.ended.done():
            self.ended.set_exception(_too_long(unknown=self.changes and self.begun))

    def serve(self) -> None:
        """Make the call, on a thread of the pool."""
        self.begun = True  # before the look: who gives up meanwhile says that it may be done
        if self._given_up or self.ended.cancelled():
            return
        result, fault = None, None
        try:
            result = self._run()
        except BaseException as error:  # noqa: BLE001  it is raised where the call is awaited
            fault = error
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._tell, result, fault)

    def _tell(self, result: Any, fault: BaseException | None) -> None:
        if self.ended.done():
            return
        if fault is None:
            self.ended.set_result(result)
        elif isinstance(fault, StopIteration):
            self.ended.set_exception(RuntimeError("a state call raised StopIteration"))
        else:
            self.ended.set_exception(fault)


class _Pool:
    """The threads, which are made as they are needed, and end with the process at any time."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._lock = Lock()
        self._threads = 0
        self._idle = 0

    def submit(self, call: _Call) -> None:
        """Have a call made. Raises: TidegateError STATE_FAILED if too many wait."""
        if self._calls.qsize() >= MOST_WAITING:
            raise _too_long(unknown=False)
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self._threads < MOST_THREADS:
                self._threads += 1
                Thread(target=self._work, name="tidegate-state", daemon=True).start()
        self._calls.put(call)

    def _work(self) -> None:
        while True:
            self._calls.get().serve()
            with self._lock:
                self._idle += 1


_POOL = _Pool()


async def _run(run: Callable[[], Any], *, changes: bool) -> Any:
    context = copy_context()
    call = _Call(lambda: context.run(run), changes=changes)
    _POOL.submit(call)
    timer = asyncio.get_running_loop().call_later(PATIENCE_S, call.give_up)
    try:
        return await call.ended
    finally:
        timer.cancel()


def _too_long(*, unknown: bool) -> TidegateError:
    if unknown:
        return TidegateError(
            Code.STATE_FAILED,
            f"The state did not answer for {PATIENCE_S:g} s. It cannot be known whether the change"
            " was made.",
            hint="Look at what is there now before you do it again.",
            retry_after_s=RETRY_S,
        )
    return TidegateError(
        Code.STATE_FAILED,
        f"The state did not answer for {PATIENCE_S:g} s. Nothing was changed by this.",
        hint="Retry in a moment.",
        retry_after_s=RETRY_S,
    )
