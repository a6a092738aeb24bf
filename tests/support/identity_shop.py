"""A shop whose callers have identities of their own in the database."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

import pytest
from msgspec import structs

from support.engine_cases import Case
from tidegate.engines.api import Engine
from tidegate.errors import TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.decisions import Permit
from tidegate.model.requests import Browse, Explain, Query
from tidegate.model.results import Limits
from tidegate.model.source_settings import RunAs
from tidegate.model.sources import Identity
from tidegate.model.statements import Effect, Statement

_numbers = count(1)


class IdentityShop:
    """A case of which each caller is a role; `roles` are their names in this database alone."""

    def __init__(self, case: Case, names: Iterable[str]) -> None:
        self.case = case
        self.database = case.url.partition("?")[0].rpartition("/")[2]
        number = next(_numbers)
        self.roles = {name: f"{name}_{number}" for name in names}

    def lead(self, url: str) -> None:
        """Open the source by that URL, and let each caller be the role of its name."""
        source = structs.replace(self.case.source, url=url, run_as=RunAs("{actor.name}"))
        self.case.source = source

    def permit(
        self,
        who: str | None,
        request: Query | Explain | Browse,
        effect: Effect = Effect.READ,
        **variables: str,
    ) -> Permit:
        """A permit as that role, with variables set; `_` in their names stands for a dot."""
        role = None if who is None else self.roles.get(who, who)
        named = tuple([(name.replace("_", "."), value) for name, value in variables.items()])
        permit = self.case.permit(request, effect)
        return structs.replace(permit, identity=Identity(role, named))

    async def run(
        self,
        engine: Engine,
        who: str | None,
        text: str,
        params: tuple[Any, ...] | None = None,
        effect: Effect = Effect.READ,
        **variables: str,
    ) -> list[tuple[Any, ...]]:
        """All rows of a statement that runs as that role."""
        request = Query(Statement(text, params), limits=Limits(max_rows=1000))
        cursor = await engine.run(self.permit(who, request, effect, **variables), NEVER)
        try:
            rows: list[tuple[Any, ...]] = []
            while batch := await cursor.fetch(100):
                rows += [tuple(row) for row in batch]
            return rows
        finally:
            await cursor.close()

    async def refused(self, work: Any) -> TidegateError:
        """What refuses the work."""
        with pytest.raises(TidegateError) as caught:
            await work
        return caught.value
