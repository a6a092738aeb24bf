"""What engines say of the account of a source: what it could do if the gate were not there, and how
to make one that can only read.

Each engine with accounts, or with files, has a module `account` with the members of `AccountGuide`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class Risk(NamedTuple):
    """One thing that the account could do, and what to do about it; "" stands for
    `tidegate source harden`."""

    could: str
    remedy: str = ""


class AccountFacts(NamedTuple):
    """What is known of the account: the source's URL, the one row of the engine's `RISKS_QUERY`,
    and the warnings of its open connection."""

    url: str
    row: Mapping[str, Any]
    warnings: Sequence[str]


class ReadingRequest(NamedTuple):
    """Which account is wanted. `password` is None if the account has one that stays. `user` is the
    account that the source has now."""

    source: str
    url: str
    name: str
    password: str | None
    database: str
    schemas: Sequence[str]
    user: str
    server_version: str


class AccountGuide(Protocol):
    """An engine's module `account`. `HAS_USERS`: its accounts have names and passwords."""

    RISKS_QUERY: str | None
    HAS_USERS: bool

    def risks(self, facts: AccountFacts) -> list[Risk]:
        """What the account could do, the worst first."""
        ...

    def reading_script(self, request: ReadingRequest) -> list[str]:
        """The lines that make the account, or make it again what it should be: for the database's
        own client, or for a shell where accounts are those of the operating system."""
        ...


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
