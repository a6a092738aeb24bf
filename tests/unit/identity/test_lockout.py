"""Lockout: by address, for five minutes, and a success forgives nothing."""

import sqlite3
from contextlib import closing

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.identity.lockout import ADDRESSES, FAILURES, Lockout
from tidegate.store.sqlite.state import SqliteState


def locked_for(lockout, address, now):
    with pytest.raises(TidegateError) as caught:
        lockout.check(address, now)
    assert caught.value.code is Code.AUTH_LOCKED_OUT
    return caught.value.retry_after_s


def fail(lockout, address, *times):
    for now in times:
        lockout.check(address, now)
        lockout.failed(address, now)


def test_the_fifth_failure_within_a_minute_locks_for_five_minutes():
    lockout = Lockout()
    fail(lockout, "10.0.0.1", 0, 10, 20, 30)
    lockout.check("10.0.0.1", 40)
    fail(lockout, "10.0.0.1", 59)
    assert locked_for(lockout, "10.0.0.1", 60) == 299
    assert locked_for(lockout, "10.0.0.1", 358) == 1
    lockout.check("10.0.0.1", 359)


def test_failures_that_are_a_minute_old_no_longer_count():
    lockout = Lockout()
    fail(lockout, "10.0.0.1", 0, 10, 20, 30, 60, 70)
    lockout.check("10.0.0.1", 71)


def test_addresses_do_not_count_for_each_other():
    lockout = Lockout()
    fail(lockout, "10.0.0.1", 0, 1, 2, 3, 4)
    lockout.check("10.0.0.2", 5)
    locked_for(lockout, "10.0.0.1", 5)


def test_after_the_lock_counting_starts_again():
    lockout = Lockout()
    fail(lockout, "10.0.0.1", 0, 1, 2, 3, 4)
    fail(lockout, "10.0.0.1", 304, 305, 306, 307)
    lockout.check("10.0.0.1", 308)
    fail(lockout, "10.0.0.1", 308)
    locked_for(lockout, "10.0.0.1", 309)


def test_all_addresses_of_one_ipv6_network_count_as_one():
    lockout = Lockout()
    for last in range(5):
        lockout.failed(f"2001:db8::{last:x}", 0)
    locked_for(lockout, "2001:db8::ffff", 1)
    lockout.check("2001:db8:0:1::1", 1)
    lockout.check("not:an:address", 1)


def test_an_ipv4_address_in_ipv6_clothes_is_the_same_address():
    lockout = Lockout()
    for _ in range(5):
        lockout.failed("::ffff:10.0.0.1", 0)
    locked_for(lockout, "10.0.0.1", 1)


def test_memory_is_bounded_and_the_longest_quiet_is_forgotten_first():
    lockout = Lockout()
    fail(lockout, "first", 0, 0, 0, 0)
    for number in range(ADDRESSES):
        lockout.failed(f"10.{number}", 1)
    lockout.failed("first", 2)
    lockout.check("first", 2)
    for _ in range(4):
        lockout.failed(f"10.{ADDRESSES - 1}", 2)
    locked_for(lockout, f"10.{ADDRESSES - 1}", 2)


def test_while_the_state_fails_a_server_counts_by_itself(tmp_path):
    state = SqliteState(tmp_path / "state.db")
    lockout = Lockout(shared=state.shared)
    assert not any(lockout.failed("203.0.113.7", 100.0 + n) for n in range(FAILURES - 1))
    (tmp_path / "state.db").rename(tmp_path / "gone.db")
    state.close()
    (tmp_path / "state.db").mkdir()
    assert lockout.failed("203.0.113.7", 105.0)
    with pytest.raises(TidegateError) as caught:
        lockout.check("203.0.113.7", 106.0)
    assert caught.value.code is Code.AUTH_LOCKED_OUT
    lockout.check("203.0.113.8", 106.0)


def test_two_kinds_of_failures_are_counted_apart(tmp_path):
    state = SqliteState(tmp_path / "state.db")
    logins, pairings = Lockout(shared=state.shared), Lockout(shared=state.shared, kind="pairing")
    assert not any(logins.failed("203.0.113.7", 100.0) for _ in range(FAILURES - 1))
    assert not any(pairings.failed("203.0.113.7", 100.0) for _ in range(FAILURES - 1))
    assert Lockout(shared=state.shared).failed("203.0.113.7", 101.0)
    Lockout(shared=state.shared, kind="pairing").check("203.0.113.7", 102.0)
    with pytest.raises(TidegateError):
        Lockout(shared=state.shared).check("203.0.113.7", 102.0)
    state.close()


def test_old_failures_do_not_fill_the_state(tmp_path):
    state = SqliteState(tmp_path / "state.db")
    lockout = Lockout(shared=state.shared)
    for number in range(300):
        lockout.failed(f"198.51.100.{number % 250}", 100_000.0 * number)
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        (kept,) = connection.execute("SELECT count(*) FROM failures").fetchone()
    assert kept <= 100
    state.close()
