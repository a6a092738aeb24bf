"""What the account of this process could do with a file of DuckDB if the gate were not there."""

from __future__ import annotations

from tidegate.engines.common.account import AccountFacts, ReadingRequest, Risk
from tidegate.engines.common.file_account import file_risks, file_script

RISKS_QUERY = None
ADMINISTRATOR = ""

_NOTE = "DuckDB lets several processes read a file that none writes: stop writers first."


def risks(facts: AccountFacts) -> list[Risk]:
    """What the rights on the file, and on all others of this account, allow."""
    return [
        *file_risks(facts),
        Risk(
            "DuckDB without the gate reads and writes every file that this account may, and loads"
            " extensions from the network (enable_external_access)"
        ),
    ]


def reading_script(request: ReadingRequest) -> list[str]:
    """Lines for a shell."""
    return file_script(request, _NOTE)
