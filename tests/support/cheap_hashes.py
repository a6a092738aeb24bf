"""Passphrases of tests, whose hashes cost little: each of them would take 0.1 s of CPU.

The cost is kept with a hash, so a process that knows nothing of this accepts them.
"""

from __future__ import annotations

from tidegate.identity import operator_passphrase


def make_hashes_cheap() -> None:
    """Let this process, and those that it forks, make hashes of the least cost."""
    operator_passphrase.COST_BITS = 1
