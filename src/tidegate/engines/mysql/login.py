"""Decides how a connection is made: TLS as the target wants it, one statement at a time."""

from __future__ import annotations

import struct
from typing import Any, cast

from asyncmy.connection import Connection
from asyncmy.constants.CLIENT import MULTI_STATEMENTS, SSL
from asyncmy.errors import MySQLError

from tidegate.engines.mysql.faults import unreachable
from tidegate.engines.mysql.target import Target


class _Connection(Connection):
    """A connection that takes one statement at a time, and TLS as the target wants it."""

    def __init__(self, target: Target) -> None:
        cast("Any", super()).__init__(**target.options())
        inside = cast("Any", self)
        inside._client_flag &= ~MULTI_STATEMENTS
        self._host_named = target.host
        self._must_hide = target.tls in ("require", "verify")

    async def _request_authentication(self) -> None:
        inside = cast("Any", self)
        if inside._ssl_context is not None and not inside.server_capabilities & SSL:
            if self._must_hide:
                raise unreachable("The server does not offer TLS.")
            inside._ssl_context = None
            inside._client_flag &= ~SSL
        inside._host = self._host_named  # which TLS verifies, whatever was dialled
        await cast("Any", super())._request_authentication()


async def log_in(target: Target) -> Any:
    """The driver's connection, logged in. Raises: GateError, TimeoutError."""
    connection = cast("Any", _Connection(target))
    try:
        await connection.connect()
    except MySQLError as error:
        raise unreachable(*_told(error)) from error
    except TimeoutError:
        raise
    except (OSError, ValueError, IndexError, RuntimeError, struct.error) as error:
        raise unreachable("The server does not answer as MySQL does.") from error
    finally:
        if not connection.connected:
            connection.close()
    return connection


def _told(error: MySQLError) -> tuple[str, int]:
    """What the server said and its error number; 0 if it did not come to that."""
    number, *rest = (*error.args, 0)
    if isinstance(number, int) and (1000 <= number < 2000 or number >= 3000):
        return str(rest[0]), number
    return "The server cannot be reached.", 0
