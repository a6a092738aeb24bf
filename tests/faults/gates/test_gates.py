"""Small versions of `./dev soak` and `./dev faults`, one after the other on the same gates."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from faults.gates.fleet import fleet
from faults.gates.ledger import Ledger
from faults.gates.rounds import Rounds, cause
from faults.gates.soak import endure
from support.proxies import program


@pytest.mark.skipif(
    program("haproxy") is None, reason="haproxy is not installed (tests/external/debian.sh)"
)
def test_nothing_is_unrecorded_run_twice_or_revived_whatever_ends(tmp_path: Path) -> None:
    kinds = ["stopped", "worker killed", "source killed", "gate killed", "standby promoted"]
    with fleet(tmp_path, gates=2, workers=2) as made:
        rounds = Rounds(made, Ledger(), random.Random(31))
        # While their workers are renewed one by one, callers see no error.
        found = endure(rounds, clients=40, busy=6, seconds=5.0)
        assert not found["wrong"], found
        found = cause(rounds, kinds)
        assert not found["wrong"], found
