"""Calls to a state that may hang: who asks is told in time, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from support.eventually import HANG_S, wait_until
from tidegate.errors import Code, TidegateError
from tidegate.store import calls
from tidegate.store.calls import change_state, read_state


class HangingState:
    """A state whose calls do not return until it is told to."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.begun = threading.Semaphore(0)
        self.done = 0

    def call(self) -> str:
        self.begun.release()
        assert self.answers.wait(HANG_S)
        self.done += 1
        return "done"


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingState]:
    monkeypatch.setattr(calls, "PATIENCE_S", 0.05)
    monkeypatch.setattr(calls, "_POOL", calls._Pool())
    state = HangingState()
    yield state
    state.answers.set()


async def refused(call: object) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        await call  # type: ignore[misc]
    assert caught.value.code is Code.STATE_FAILED
    assert caught.value.retry_after_s
    return caught.value


async def test_a_read_that_hangs_is_given_up_and_nothing_was_changed(state: HangingState) -> None:
    assert "Nothing was changed" in (await refused(read_state(state.call))).message


async def test_of_a_change_that_hangs_it_cannot_be_known_whether_it_was_made(
    state: HangingState,
) -> None:
    assert "cannot be known" in (await refused(change_state(state.call))).message


async def test_as_many_calls_hang_as_there_are_threads_and_others_are_never_begun(
    state: HangingState,
) -> None:
    most = calls.MOST_THREADS
    errors = await asyncio.gather(*(refused(change_state(state.call)) for _ in range(2 * most)))
    unknown = [each for each in errors if "cannot be known" in each.message]
    assert len(unknown) == most
    state.answers.set()
    assert await change_state(state.call) == "done"
    wait_until(lambda: state.done == most + 1, "those that were begun end")


async def test_other_work_on_threads_goes_on_while_the_state_hangs(state: HangingState) -> None:
    hanging = [asyncio.ensure_future(refused(read_state(state.call))) for _ in range(40)]
    for _ in range(calls.MOST_THREADS):
        assert await asyncio.to_thread(state.begun.acquire, True, HANG_S)
    assert await asyncio.gather(*(asyncio.to_thread(int, "7") for _ in range(40))) == [7] * 40
    await asyncio.gather(*hanging)


async def test_what_a_call_gives_or_raises_comes_back() -> None:
    def fail() -> None:
        raise TidegateError(Code.ARGUMENT_INVALID, "no")

    assert await read_state(divmod, 7, 2) == (3, 1)
    with pytest.raises(TidegateError, match="no"):
        await change_state(fail)
    with pytest.raises(ZeroDivisionError):
        await read_state(divmod, 1, 0)


async def test_a_call_sees_the_context_of_who_asks() -> None:
    from contextvars import ContextVar

    name: ContextVar[str] = ContextVar("name", default="")
    name.set("ada")
    assert await read_state(name.get) == "ada"
