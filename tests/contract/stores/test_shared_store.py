"""The contract of `SharedStore`: what every process on one state agrees on."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tidegate.errors import Code, TidegateError


def test_a_secret_is_made_once_and_the_same_for_everyone(state, other):
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda one: one.shared.secret("seal"), [state, other] * 4))
    assert len(set(made)) == 1
    assert len(made[0]) == 32
    assert state.shared.secret("another") != made[0]


def test_a_value_is_used_once_by_whoever_is_first(state, other):
    with ThreadPoolExecutor(8) as pool:
        used = list(
            pool.map(
                lambda one: one.shared.use_once("nonce", "n", 200.0, 100.0), [state, other] * 8
            )
        )
    assert used.count(True) == 1
    assert state.shared.use_once("nonce", "m", 200.0, 100.0)
    assert state.shared.use_once("another kind", "n", 200.0, 100.0)


def test_a_used_value_is_remembered_until_it_has_expired(state, other):
    assert state.shared.use_once("nonce", "n", 200.0, 100.0)
    other.shared.forget(199.0, 60.0)
    assert not other.shared.use_once("nonce", "n", 300.0, 199.0)
    assert other.shared.use_once("nonce", "n", 300.0, 200.0)


def test_failures_are_counted_within_their_window_by_all_processes(state, other):
    for at, store in ((100.0, state), (110.0, other)):
        assert not store.shared.add_failure("10.0.0.1", at, most=3, window_s=60.0)
    assert not state.shared.add_failure("10.0.0.2", 120.0, most=3, window_s=60.0)
    assert not state.shared.add_failure("10.0.0.1", 165.0, most=3, window_s=60.0)
    assert other.shared.add_failure("10.0.0.1", 166.0, most=3, window_s=60.0)
    assert not other.shared.add_failure("10.0.0.1", 167.0, most=3, window_s=60.0)


def test_a_lock_holds_for_all_processes_until_its_time(state, other):
    state.shared.lock("10.0.0.1", 200.0)
    assert other.shared.locked_until("10.0.0.1", 199.0) == 200.0
    assert other.shared.locked_until("10.0.0.1", 200.0) is None
    assert other.shared.locked_until("10.0.0.2", 100.0) is None
    state.shared.lock("10.0.0.1", 400.0)
    other.shared.forget(300.0, 60.0)
    assert other.shared.locked_until("10.0.0.1", 300.0) == 400.0


def test_a_try_writes_nothing_and_is_refused_once_the_state_is_closed(state, other):
    state.shared.keep_unrecorded(b"before")
    before = other.shared.unrecorded()
    state.try_writing()
    other.try_writing()
    assert state.shared.unrecorded() == before
    state.close()
    with pytest.raises(TidegateError) as caught:
        state.try_writing()
    assert caught.value.code is Code.STATE_FAILED


def test_a_sealed_lock_ends_as_any_other_and_both_are_seen(state, other):
    state.shared.lock_sealed("ip", 200.0, 100.0)
    assert other.shared.sealed_until("ip", 199.0) == 200.0
    assert other.shared.locked_until("ip", 199.0) == 200.0  # by a gate of the version before
    assert other.shared.sealed_until("ip", 200.0) is None
    assert other.shared.sealed_until("other", 100.0) is None
    other.shared.lock("ip", 300.0)
    assert state.shared.sealed_until("ip", 299.0) == 300.0
    other.shared.lock_sealed("ip", 150.0, 110.0)  # the clock was set back
    assert state.shared.sealed_until("ip", 149.0) == 150.0
    assert state.shared.sealed_until("ip", 151.0) is None
