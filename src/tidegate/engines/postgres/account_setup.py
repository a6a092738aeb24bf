"""Runs the script of `account.py` with an administrator's login, in one transaction.

The script is ours and no caller's: it needs no permit. It runs on a connection of its own, which no
source has, and which is closed afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tidegate.engines.common.account import SETUP_S, AccountExists, statements_of
from tidegate.engines.postgres.connection import PostgresSession
from tidegate.engines.postgres.url import parse_conninfo

_FRAME = ("BEGIN;", "COMMIT;")
_EXISTS = b"SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = $1"


async def run_script(url: str, script: Sequence[str], account: str, *, is_new: bool) -> list[str]:
    """Run all of it or nothing; what the server notes meanwhile. `is_new` refuses an account that
    is there. Raises: TidegateError, AccountExists, TimeoutError."""
    async with asyncio.timeout(SETUP_S):
        session = await PostgresSession.open(parse_conninfo(url))
        try:
            if is_new and await session.query_internal(_EXISTS, [account.encode()]):
                raise AccountExists
            with session.line.messages() as notices:
                texts = [text.encode() for text in statements_of(script) if text not in _FRAME]
                await session.change(b"SET LOCAL lock_timeout = '30s'", *texts)
            return notices
        finally:
            session.close()  # with it goes a transaction that was not committed
