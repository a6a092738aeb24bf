"""Draws the shield over a statement: reads the catalog it needs, has the text rewritten, and keeps
what a database quotes of that text out of errors. Decides nothing: the shield says what is hidden.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from msgspec import structs

from tidegate.connections import Connection
from tidegate.engines.api import Engine
from tidegate.errors import Code, GateError
from tidegate.runs import Runs
from tidegate.sql import rewrite
from tidegate.sql.shield.model import Shield
from tidegate.types import (
    Call,
    Catalog,
    Explain,
    Permit,
    Query,
    Statement,
)


class Curtain:
    """Rewrites for one gateway. `key` gives the key of masks that hash; where none is given it
    lives as long as the process, and so do the hashes."""

    def __init__(self, runs: Runs, key: Callable[[], str] | None = None) -> None:
        self._runs = runs
        self._given = key
        self._kept: str | None = None

    async def drawn(
        self,
        call: Call,
        request: Query | Explain,
        shield: Shield,
        names: Permit,
        engine: Engine,
        connection: Connection,
    ) -> Query | Explain:
        """The request as it may run under the shield; `names` permits to read the catalog.

        Raises: GateError POLICY_MASKED, and what
        reading the catalog raises.
        """
        source = connection.source
        catalog = await self._runs.describe(call, names, engine, connection)
        if not isinstance(catalog, Catalog):
            raise GateError(Code.INTERNAL, "The engine described no catalog")
        lead = "EXPLAIN " if isinstance(request, Explain) else ""
        text = rewrite.rewrite(
            lead + request.statement.text,
            source.dialect,
            shield,
            catalog,
            self._key(),
            request.schema,
        )
        statement = Statement(text.removeprefix(lead), request.statement.params)
        return structs.replace(request, statement=statement)

    def veiled(self, error: GateError) -> GateError:
        """The error without what a database quoted of the key in the text that was rewritten."""
        key = self._key()
        details = {
            name: rewrite.veiled(value, key) if isinstance(value, str) else value
            for name, value in error.details.items()
        }
        return GateError(
            error.code,
            rewrite.veiled(error.message, key),
            hint=rewrite.veiled(error.hint, key),
            retry_after_s=error.retry_after_s,
            details=details,
        )

    def _key(self) -> str:
        if self._kept is None:
            self._kept = self._given() if self._given is not None else secrets.token_hex(32)
        return self._kept
