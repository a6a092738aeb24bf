"""Runs the script of `account.py` with an administrator's login.

MySQL and MariaDB commit each statement on an account by itself, so a failure leaves what came
before it. The script is ours and no caller's: it needs no permit. It runs on a connection of its
own, which no source has, and which is closed afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tidegate.engines.common.account import SETUP_S, AccountExists, statements_of
from tidegate.products.mysql.engine.connection import READ_WRITE, MysqlSession
from tidegate.products.mysql.engine.errors import ServerError
from tidegate.products.mysql.engine.url import parse_conninfo

_CREATES = "CREATE USER IF NOT EXISTS "
_CANNOT_CREATE = 1396


async def run_script(url: str, script: Sequence[str], account: str, *, is_new: bool) -> list[str]:
    """Run it; what the server notes meanwhile, which is nothing. `is_new` refuses an account that
    is there.

    Raises: TidegateError with the number of statements that ran in `details["done"]`,
    AccountExists, TimeoutError.
    """
    async with asyncio.timeout(SETUP_S):
        session = await MysqlSession.open(parse_conninfo(url))
        try:
            await session.query_internal(READ_WRITE)
            for done, statement in enumerate(statements_of(script)):
                creates = is_new and statement.startswith(_CREATES)
                text = statement.replace(" IF NOT EXISTS", "", 1) if creates else statement
                try:
                    await session.query_internal(text.rstrip(";").encode())
                except ServerError as error:
                    if creates and error.number == _CANNOT_CREATE:
                        raise AccountExists from error
                    error.details["done"] = done
                    raise
            return []
        finally:
            session.close()
