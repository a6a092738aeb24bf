"""A trial plants its mutant in the living function: a test kills it, and no fault of the trial."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from mutation.core import ROOT

TRIALS = """
import json
import sys
from mutation import trial
from mutation.core import SOURCE
from mutation.mutants import mutants_of
path = SOURCE / "tidegate" / "policy" / "verdict.py"
mutants = [
    each for each in mutants_of(path)
    if (each.function, each.before, each.after) == ("evaluate", "verdict", "None")
]
works = [trial.Work(mutant, (sys.argv[1],), 5.0) for mutant in mutants]
results = []
trial.exchange_all(works, lambda _, result: results.append((result.status, result.by)))
print(json.dumps(results))
"""
TEST = "tests/unit/policy/test_rules.py::test_every_rule_refuses_in_the_decision_too"


def test_a_mutant_is_killed_by_a_test_and_not_by_a_fault_of_the_trial() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", TRIALS, TEST], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")}, timeout=180, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == [["killed", TEST]]
