"""Small versions of `./dev faults` and `./dev soak`."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.gates import rounds, soak
from support.proxies import program

pytestmark = pytest.mark.skipif(
    program("haproxy") is None, reason="haproxy is not installed (tests/external/debian.sh)"
)


def test_nothing_is_unrecorded_run_twice_or_revived_whatever_ends(tmp_path: Path) -> None:
    kinds = ["stopped", "worker killed", "source killed", "gate killed", "standby promoted"]
    found = rounds.run(tmp_path, kinds, gates=2, workers=2, seed=31, stop_s=0.0)
    assert not found["wrong"], found


def test_many_callers_of_gates_that_are_renewed_see_no_error(tmp_path: Path) -> None:
    found = soak.run(tmp_path, gates=2, workers=2, clients=40, busy=6, seconds=8.0)
    assert not found["wrong"], found
