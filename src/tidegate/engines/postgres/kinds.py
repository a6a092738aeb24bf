"""Decides which types a source's columns have. Types that no server is born with are asked for
once, when a column of theirs first appears."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from psycopg.pq.abc import PGresult

from tidegate.engines.postgres.session import Session
from tidegate.engines.postgres.types import BUILT_IN, Kind, Type, name_of
from tidegate.engines.postgres.values import Reader
from tidegate.pages import Column

_UNKNOWN = Type("")

_LOOKUP = b"""
SELECT x.oid, x.modifier, pg_catalog.format_type(x.oid, x.modifier), t.typcategory,
  e.oid, e.typdelim
FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]),
  pg_catalog.unnest($2::pg_catalog.int4[])) AS x(oid, modifier)
JOIN pg_catalog.pg_type AS t ON t.oid = x.oid
LEFT JOIN pg_catalog.pg_type AS e ON e.typarray = x.oid"""

LOOKUP_MS = 5_000
MAX_SHAPES = 512

Shape = tuple[tuple[bytes | None, int, int], ...]
"""Name, type and modifier of each column of a result."""


class Kinds:
    """The types of one source, by oid and modifier."""

    def __init__(self, open_session: Callable[[], Awaitable[Session]]) -> None:
        self._open = open_session
        self._known: dict[tuple[int, int], Type] = {}
        self._shapes: dict[Shape, tuple[tuple[Column, ...], Reader]] = {}

    async def columns(self, result: PGresult) -> tuple[tuple[Column, ...], Reader]:
        """The columns of a result and the reader of its rows. Raises: GateError."""
        shape = tuple(
            [(result.fname(at), result.ftype(at), result.fmod(at)) for at in range(result.nfields)]
        )
        found = self._shapes.get(shape)
        if found is None:
            if len(self._shapes) >= MAX_SHAPES:
                self._shapes.clear()
            self._shapes[shape] = found = await self._found(shape)
        return found

    def forget(self) -> None:
        """Types may have changed."""
        self._known.clear()
        self._shapes.clear()

    async def _found(self, shape: Shape) -> tuple[tuple[Column, ...], Reader]:
        known = self._known
        keys = [(oid, modifier) for _, oid, modifier in shape]
        missing = {key for key in keys if key not in known and not self._is_built_in(key)}
        if missing:
            await self._learn(missing)
        types = [known.get(key, _UNKNOWN) for key in keys]
        names = [(name or b"").decode(errors="replace") for name, _, _ in shape]
        columns = [Column(name, type_.name) for name, type_ in zip(names, types, strict=True)]
        return tuple(columns), Reader(types)

    def _is_built_in(self, key: tuple[int, int]) -> bool:
        name = name_of(*key)
        if name is None:
            return False
        known = BUILT_IN[key[0]]
        self._known[key] = Type(name, known.kind, known.array)
        return True

    async def _learn(self, missing: set[tuple[int, int]]) -> None:
        """Ask, on a connection of its own: the caller's is in the middle of its rows."""
        oids, modifiers = zip(*missing, strict=True)
        session = await self._open()
        try:
            params = [_array(oids), _array(modifiers)]
            (rows,) = await session.ask((_LOOKUP, params), timeout_ms=LOOKUP_MS)
        finally:
            session.line.close()
        for oid, modifier, name, category, element, delimiter in rows:
            key = oid, modifier
            base = BUILT_IN.get(element or oid, _UNKNOWN)
            is_array = category == "A" and element is not None
            kind = base.kind if is_array or oid in BUILT_IN else Kind.TEXT
            self._known[key] = Type(name, kind, is_array, delimiter or ",")


def _array(numbers: tuple[int, ...]) -> bytes:
    return ("{" + ",".join(map(str, numbers)) + "}").encode()
