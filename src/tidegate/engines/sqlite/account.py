"""What the account of this process could do with a file of SQLite if the gate were not there."""

from __future__ import annotations

from tidegate.engines.common.account import AccountFacts, ReadingRequest, Risk
from tidegate.engines.common.file_account import file_risks, file_script

RISKS_QUERY = None
ADMINISTRATOR = ""

_NOTE = (
    "A file in WAL mode needs its -shm file: readers who may not write need PRAGMA"
    " journal_mode = DELETE, once."
)


def risks(facts: AccountFacts) -> list[Risk]:
    """What the rights on the file allow."""
    return file_risks(facts)


def reading_script(request: ReadingRequest) -> list[str]:
    """Lines for a shell."""
    return file_script(request, _NOTE)
