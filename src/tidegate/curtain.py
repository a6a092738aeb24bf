"""Draws the shield over what a caller asks for: has a statement rewritten by the catalog it needs,
shows of metadata what the caller may know, and keeps what a database quotes of the rewritten text
out of errors. Decides nothing: the shield says what is hidden.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import structs

from tidegate.calls import Browse, Call, Explain, Query
from tidegate.connections import Connection
from tidegate.engines.api import Engine
from tidegate.errors import Code, GateError
from tidegate.metadata import Catalog, Ddl, Description
from tidegate.permits import Permit
from tidegate.policy.shields import concealed
from tidegate.runs import Runs
from tidegate.sql import rewrite
from tidegate.sql.shield.allowance import RULE, barred
from tidegate.sql.shield.ddl import ddl
from tidegate.sql.shield.model import Shield
from tidegate.statements import Statement


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

        Raises: GateError POLICY_MASKED, POLICY_TABLE, and what reading the catalog raises.
        """
        _check_home(shield, request.database, engine)
        catalog = await self._catalog(call, names, engine, connection)
        write = rewrite.rewrite_explained if isinstance(request, Explain) else rewrite.rewrite
        statement = request.statement
        text = write(
            statement.text,
            connection.source.dialect,
            shield,
            catalog,
            self._key(),
            request.schema,
        )
        return structs.replace(request, statement=Statement(text, statement.params))

    async def described(
        self,
        call: Call,
        permit: Permit,
        shield: Shield | None,
        names: Permit,
        engine: Engine,
        connection: Connection,
    ) -> Description:
        """Metadata as the caller may see it; `names` permits to read the catalog.

        Raises: GateError POLICY_TABLE, and what the engine raises.
        """
        schema = connection.place(call.actor).schema
        request = permit.request
        if shield is None or shield.only is None or not isinstance(request, Browse):
            told = await self._runs.describe(call, permit, engine, connection)
            return concealed(told, shield, schema)
        _check_home(shield, request.database, engine)
        catalog = await self._catalog(call, names, engine, connection)
        if request.table is not None or request.aspect == "ddl":
            seen = concealed(catalog, shield, schema)
            assert isinstance(seen, Catalog)  # noqa: S101 - of a catalog comes a catalog
            home = request.schema or catalog.default_schema
            table = next(
                (each for each in seen.tables if (each.schema, each.name) == (home, request.table)),
                None,
            )
            if table is None:
                raise barred(request.table or "")
            if request.aspect == "ddl":
                return Ddl(ddl(table, connection.source.dialect))
        told = await self._runs.describe(call, permit, engine, connection)
        return concealed(told, shield, schema, catalog)

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

    async def _catalog(
        self, call: Call, names: Permit, engine: Engine, connection: Connection
    ) -> Catalog:
        catalog = await self._runs.describe(call, names, engine, connection)
        if not isinstance(catalog, Catalog):
            raise GateError(Code.INTERNAL, "The engine described no catalog")
        return catalog

    def _key(self) -> str:
        if self._kept is None:
            self._kept = self._given() if self._given is not None else os.urandom(32).hex()
        return self._kept


def _check_home(shield: Shield, database: str | None, engine: Engine) -> None:
    """Raises: GateError POLICY_TABLE if a list of tables is of another database."""
    if shield.only is not None and database not in (None, engine.status.database):
        raise GateError(
            Code.POLICY_TABLE,
            "This token may use listed tables of the source's own database alone",
            hint="Leave out the name of the database.",
            details={"rule": RULE},
        )
