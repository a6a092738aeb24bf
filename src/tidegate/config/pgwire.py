"""Settings of the PostgreSQL wire protocol: the section `pg`."""

from __future__ import annotations

from typing import Annotated

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class PgWireSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where clients of PostgreSQL's wire protocol connect.

    `listen` is HOST:PORT; none: they cannot. With `client_ca`, a PEM file, every client must have a
    certificate of that authority, and one whose common name is its user needs no password. A
    result is cut at `max_rows`. At most `max_connections` clients are logged in at a time, and at
    most `max_logins` others are connected: one more ends the oldest of them, of the address that
    has most.

    A transaction block is rolled back and its session ended after `idle_in_transaction_s` seconds
    without a statement, or in which its client reads no more of a result, and `transaction_s`
    seconds in all. One caller has `max_transactions` of
    them open at one source at most.
    """

    listen: str | None = None
    client_ca: str | None = None
    max_rows: _Count = 1_000_000
    max_connections: _Count = 2_000
    max_logins: _Count = 256
    idle_in_transaction_s: _Seconds = 60.0
    transaction_s: _Seconds = 1_800.0
    max_transactions: _Count = 3
