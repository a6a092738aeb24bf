"""Killed at random moments, the gate never has run a statement that is not on record."""

import json
import os
import subprocess
import sys
from pathlib import Path

from support.eventually import HANG_S

KILLS = int(os.environ.get("TIDEGATE_KILLS", "500"))
SCRIPT = Path(__file__).with_name("kills.py")


def test_whatever_the_database_ran_before_a_kill_is_in_a_record_that_verifies():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--count", str(KILLS)],
        capture_output=True,
        text=True,
        timeout=HANG_S + 2 * KILLS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    totals = json.loads(done.stdout)
    assert totals["kills"] == KILLS
    # The kills came at every stage, or the comparison says nothing.
    assert totals["executed"] > KILLS
    assert totals["answered"] > KILLS
    assert totals["intents_of_what_did_not_run"] > 0
    assert totals["checkpoints"] > KILLS // 10
