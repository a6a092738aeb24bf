"""What engines say of the account of a source: what it could do if the gate were not there, and how
to make one that can only read.

Each engine with accounts, or with files, has a module `account` with the members of `AccountGuide`.
One with accounts that have names also has a module `account_setup` with a function `run_script`
(`registry.set_up_account` says what it does).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

SETUP_S = 120.0
"""How long the script of a new account may take."""


class AccountExists(Exception):
    """An account of that name is there, and nothing was changed."""


class Risk(NamedTuple):
    """One thing that the account could do, and what to do about it; "" means
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
    """An engine's module `account`. `ADMINISTRATOR`: the account that a fresh server has for its
    administrator; empty if accounts have no names and passwords."""

    RISKS_QUERY: str | None
    ADMINISTRATOR: str

    def risks(self, facts: AccountFacts) -> list[Risk]:
        """What the account could do, the worst first."""
        ...

    def reading_script(self, request: ReadingRequest) -> list[str]:
        """The lines that make the account, or make it again what it should be: for the database's
        own client, or for a shell where accounts are those of the operating system."""
        ...


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def statements_of(script: Sequence[str]) -> Iterator[str]:
    """The lines of a script that are no comments: a statement each."""
    return (line for line in script if not line.startswith("--"))
