"""Deferred writes: in order, in groups, bounded, and none lost while writing fails."""

import threading
from threading import Event

import pytest

from support.eventually import PATIENCE_S
from tidegate.errors import Code, TidegateError
from tidegate.store.write_behind import WriteBehind


def test_items_are_written_in_order_soon_without_being_asked():
    written, done = [], Event()

    def write(items):
        written.extend(items)
        if len(written) == 100:
            done.set()

    deferred = WriteBehind(write, delay_s=0.01)
    for number in range(100):
        deferred.add(number)
    assert done.wait(PATIENCE_S)
    deferred.close()
    assert written == list(range(100))


def test_items_added_during_a_write_are_written_by_the_next():
    groups = []

    def write(items):
        groups.append(items)
        if len(groups) == 1:
            deferred.add("later")

    deferred = WriteBehind(write, delay_s=60)
    deferred.add("first")
    deferred.flush()
    deferred.flush()
    deferred.close()
    assert groups == [["first"], ["later"]]


def test_what_could_not_be_written_waits_and_beyond_the_bound_is_dropped_and_counted():
    failing, written = [True], []

    def write(items):
        if failing:
            raise TidegateError(Code.STATE_FAILED, "full")
        written.extend(items)

    deferred = WriteBehind(write, delay_s=60, bound=3)
    for number in range(5):
        deferred.add(number)
    with pytest.raises(TidegateError):
        deferred.flush()
    assert deferred.dropped == 2
    failing.clear()
    deferred.close()
    assert written == [0, 1, 2]


def test_after_a_failure_the_thread_tries_again(monkeypatch):
    monkeypatch.setattr("tidegate.store.write_behind._RETRY_S", 0.01)
    attempts, done = [], Event()

    def write(items):
        attempts.append(items)
        if len(attempts) < 3:
            raise TidegateError(Code.STATE_FAILED, "full")
        done.set()

    deferred = WriteBehind(write, delay_s=0.01)
    deferred.add(1)
    assert done.wait(PATIENCE_S)
    deferred.close()
    assert attempts == [[1]] * 3


def test_closing_without_use_starts_no_thread():
    before = set(threading.enumerate())
    deferred = WriteBehind(lambda items: None)
    assert set(threading.enumerate()) <= before
    deferred.close()
    deferred.close()
