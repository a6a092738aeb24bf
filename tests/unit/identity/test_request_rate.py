"""The rate of requests: by address, in bursts, and refilled over time."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from support.set_clock import SetClock
from tidegate.errors import Code, TidegateError
from tidegate.identity.request_rate import ADDRESSES, RequestRate


class Harness:
    def __init__(self, per_minute: int = 60, burst: int = 3) -> None:
        self.clock = SetClock()
        self.told: list[Mapping[str, str]] = []
        self.rate = RequestRate(per_minute, burst, self.tell, self.clock)

    def tell(self, name: str, details: Mapping[str, str]) -> None:
        assert name == "request.limited"
        self.told.append(details)

    def send(self, address: str = "10.0.0.1", times: int = 1) -> int:
        """How many of the requests were let in."""
        admitted = 0
        for _ in range(times):
            try:
                self.rate.check(address)
            except TidegateError as error:
                assert error.code is Code.LIMIT_RATE
            else:
                admitted += 1
        return admitted


def test_a_burst_is_let_in_and_then_as_many_as_the_time_allows() -> None:
    harness = Harness()
    assert harness.send(times=10) == 3
    harness.clock.now = 2.0
    assert harness.send(times=10) == 2
    harness.clock.now = 3_600.0
    assert harness.send(times=10) == 3


def test_the_refusal_says_when_the_address_may_go_on() -> None:
    harness = Harness(per_minute=6, burst=1)
    harness.rate.check("10.0.0.1")
    harness.clock.now = 4.0
    with pytest.raises(TidegateError) as refused:
        harness.rate.check("10.0.0.1")
    assert refused.value.retry_after_s == pytest.approx(6.0)
    harness.clock.now = 10.0
    assert harness.send() == 1


def test_addresses_do_not_count_for_each_other_but_those_of_one_network_do() -> None:
    harness = Harness()
    assert harness.send("10.0.0.1", 5) == 3
    assert harness.send("10.0.0.2", 5) == 3
    assert harness.send("2001:db8::1", 2) + harness.send("2001:db8::2", 5) == 3


def test_a_limit_is_on_record_once_until_a_request_is_let_in() -> None:
    harness = Harness()
    harness.send(times=50)
    assert harness.told == [{"address": "10.0.0.1"}]
    harness.clock.now = 1.0
    harness.send(times=50)
    assert len(harness.told) == 2


def test_the_longest_quiet_addresses_are_forgotten() -> None:
    harness = Harness(burst=1)
    for number in range(ADDRESSES + 10):
        assert harness.send(f"host-{number}") == 1
    assert harness.send("host-0") == 1
    assert harness.send(f"host-{ADDRESSES + 9}") == 0
