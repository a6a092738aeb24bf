"""Memory that large answers free is used again, and not given back to the system each time."""

from __future__ import annotations

import subprocess
import sys

import pytest

FAULTS = """
import resource
from tidegate.serve.lifecycle import keep_freed_memory
if {kept} and not keep_freed_memory():
    raise SystemExit("no mallopt")
def answer():
    parts = [bytearray(1_000_000) for _ in range(8)]
for _ in range(3):
    answer()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    answer()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def count_faults(*, kept: bool) -> int:
    """Pages that the system hands out while ten answers of 8 MB are made."""
    words = [sys.executable, "-c", FAULTS.format(kept=kept)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    if "no mallopt" in ended.stderr:
        pytest.skip("only glibc can be told")
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout)


def test_large_answers_after_the_first_take_no_new_memory_of_the_system() -> None:
    assert count_faults(kept=True) < 100 < 5_000 < count_faults(kept=False)
