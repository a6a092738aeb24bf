"""Gives SQLite the one function that masks need and it lacks. Decides nothing."""

from __future__ import annotations

import hashlib

import apsw

from tidegate.engines.sqlite.driver import Connection

NAME = "tidegate_hash"


def offer_hash(connection: Connection) -> None:
    """Let `tidegate_hash(key, text)` be called, in statements only and in no view or trigger. The
    judge has it on no list: only what the gate itself writes into a statement can call it."""
    connection.create_scalar_function(
        NAME, _hash, 2, deterministic=True, flags=apsw.SQLITE_DIRECTONLY
    )


def _hash(key: str, value: str | None) -> str | None:
    return None if value is None else hashlib.sha256(f"{key}{value}".encode()).hexdigest()
