"""Settings of a caller's session: what a statement may run with, what the account's sessions begin
with, and what the server says of a value. They hold for the caller's own statements alone.

Every connection is set to `PINNED`, whatever the server, the database or the account is set to, so
that a text is read and a value is written alike for all callers.
"""

from __future__ import annotations

import re

from tidegate.engines.postgres.command_protocol import Params
from tidegate.engines.postgres.connection import PINNED, PostgresSession
from tidegate.engines.postgres.search_path import pinned_path
from tidegate.engines.postgres.transaction import Tuning, milliseconds_of
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse, EngineRequest
from tidegate.model.schema import DatabaseSettings

SEARCH_PATH = "search_path"
_STYLE = re.compile(r"ISO, (?:MDY|DMY|YMD)")
"""In another style the texts of dates would not be read as what they are."""
_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)
_NOT_ASKED = frozenset(
    {"role", "session_authorization", "transaction_isolation", "transaction_read_only", "seed"}
)


def applied(request: EngineRequest, arrived: Tuning) -> Tuning:
    """The settings of a request, except its search path. A wait for locks that is longer than the
    account's own, by what it `arrived` with, is none. Raises: TidegateError UNSUPPORTED."""
    if not request.settings:
        return ()
    found: list[tuple[str, str]] = []
    for name, value in request.settings:
        if not _may_apply(name, value):
            raise TidegateError(
                Code.UNSUPPORTED, f"A statement cannot set {name[:80]!r} to {value[:80]!r} here."
            )
        if name == "lock_timeout":
            own, asked = (milliseconds_of(each) for each in (dict(arrived)[name], value))
            value = str(round(min(own, asked) if own and asked else own or asked))
        if name != SEARCH_PATH:
            found.append((name, value))
    return tuple(found)


def _may_apply(name: str, value: str) -> bool:
    if name == "DateStyle":
        return _STYLE.fullmatch(value) is not None
    if name == "row_security":
        return value in ("on", "off")
    return name in ("TimeZone", "lock_timeout", SEARCH_PATH)


def path_of(request: EngineRequest, user: str) -> bytes | None:
    """The search path of a request's session, as it is pinned; None if it has none of its own."""
    for name, value in request.settings:
        if name == SEARCH_PATH:
            return pinned_path(value, user).encode()
    return None


def completed(settings: Tuning, seen: set[str], arrived: Tuning) -> Tuning:
    """The settings of a statement in a transaction over several: those that an earlier one had and
    this one has not are set back. `seen` are the names of all so far."""
    if not settings and not seen:
        return ()
    named = {name for name, _ in settings}
    own = dict(arrived) | PINNED
    back = [(name, own[name]) for name in sorted(seen - named) if name in own]
    seen |= named
    return (*back, *settings)


async def settled(session: PostgresSession, request: Browse, timeout_ms: int) -> DatabaseSettings:
    """What the settings called `request.names` are, once those of the request are set, in a
    transaction that ends with that; nothing is kept. Without names all are listed.

    Raises: TidegateError, in the server's words, for a name or a value that it does not take.
    """
    given, names = request.settings, request.names
    for name in (*names, *[name for name, _ in given]):
        if _NAME.fullmatch(name) is None or name.lower() in _NOT_ASKED:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f'The parameter "{name[:80]}" cannot be changed here.',
                details={"sqlstate": "22023"},
            )
    if not given and not names:
        (rows,) = await session.ask(_ALL, timeout_ms=timeout_ms)
        return DatabaseSettings(
            tuple([(name, value or "") for name, value, _ in rows]),
            tuple([meaning or "" for _, _, meaning in rows]),
        )
    queries: list[tuple[bytes, Params]] = []
    if given:
        values = [part.encode() for each in given for part in each]
        queries.append((_calls(b"set_config($%d, $%d, true)", len(given), 2), values))
    if names:
        asked = [name.encode() for name in names]
        queries.append((_calls(b"current_setting($%d)", len(names), 1), asked))
    answers = await session.ask(*queries, timeout_ms=timeout_ms)
    found = [str(value or "") for value in answers[-1][0]] if names else []
    return DatabaseSettings(tuple(zip(names, found, strict=True)))


def _calls(call: bytes, count: int, width: int) -> bytes:
    calls = [
        b"pg_catalog." + call % tuple(range(place * width + 1, place * width + width + 1))
        for place in range(count)
    ]
    return b"SELECT " + b", ".join(calls)


_ALL = (
    b"SELECT name, pg_catalog.current_setting(name, true), short_desc FROM pg_catalog.pg_settings"
    b" ORDER BY 1"
)
