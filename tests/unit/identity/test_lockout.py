"""Lockout: by address, for five minutes, and a success forgives nothing."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.identity.lockout import ADDRESSES, Lockout


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


def test_after_the_lock_counting_starts_anew():
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
