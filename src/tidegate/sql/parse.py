"""Parses one plain statement with sqlglot, bounded, and raises nothing but our own refusals.

sqlglot is imported when the first statement is judged, and only the dialect that is needed.
"""

from __future__ import annotations

import logging
import sys
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tidegate.errors import Code
from tidegate.sql.finding import Refusal

if TYPE_CHECKING:
    from sqlglot.expressions.core import Expression


FUEL = 6_000
FUEL_PER_TOKEN = 4
"""How often the parser may ask its dialect something. It asks about once a token (at most 1.5 times
over 1,300 real queries), but tries some texts again and again: twice as often for every level of
nesting. It holds the interpreter's lock all the while, so this bounds how long others wait."""


class _Exhausted(Exception):
    """The parser has used up its fuel."""


def parse(text: str, dialect: str, tokens: int) -> Expression:
    """The tree of the one statement in `text`, which `normalize` wrote from so many tokens.

    Raises: Refusal SQL_UNREADABLE, SQL_TOO_DEEP, SQL_MULTIPLE, SQL_EMPTY.
    """
    parser = _parser(dialect)
    parser.fuel[0] = FUEL + FUEL_PER_TOKEN * tokens
    try:
        trees = parser.parse(text)
    except (RecursionError, _Exhausted):
        raise Refusal(
            Code.SQL_TOO_DEEP, "parser.depth", "The statement is too intricate to be read"
        ) from None
    except Exception as error:  # noqa: BLE001 - whatever ails the parser, the text was not read
        raise _unreadable(error) from None
    if len(trees) > 1:
        raise Refusal(
            Code.SQL_MULTIPLE,
            "parser.statements",
            "Multi-statement queries are not supported. Send one statement at a time.",
        )
    if not trees or trees[0] is None:
        raise Refusal(Code.SQL_EMPTY, "parser.empty", "The text holds no statement")
    return trees[0]


class _Parser:
    """One of sqlglot's dialects, with a bound on its work."""

    def __init__(self, name: str) -> None:
        self.fuel = fuel = [FUEL]
        dialect: object = _dialects().get_or_raise(name or None)
        plain: Any = dialect.__class__

        # The parser is compiled and cannot be interrupted, but it asks this object all the time.
        class Bounded(plain):
            def __getattribute__(self, name: str) -> Any:
                fuel[0] -= 1
                if fuel[0] < 0:
                    raise _Exhausted
                return object.__getattribute__(self, name)

        self.parse = Bounded().parse


def _dialects() -> Any:
    """sqlglot's registry of dialects.

    It imports importlib.metadata to look for plugins, a fifth of the whole import. No plugin may
    take a dialect's place here, so it gets a stand-in that knows none.
    """
    plugins = "importlib.metadata"
    if plugins not in sys.modules:
        stand_in = ModuleType(plugins)
        stand_in.__dict__["entry_points"] = tuple
        sys.modules[plugins] = stand_in
    try:
        from sqlglot.dialects.dialect import Dialect
    finally:
        if not hasattr(sys.modules[plugins], "version"):
            del sys.modules[plugins]
    return Dialect


@cache
def _parser(dialect: str) -> _Parser:
    # It warns of what it cannot parse with the text itself, which belongs in no log.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    return _Parser(dialect)


def _unreadable(error: Exception) -> Refusal:
    """A refusal that names the word at which the parser stopped, if the parser reports it."""
    near = ""
    details: list[dict[str, Any]] = getattr(error, "errors", None) or []
    if details:
        near = str(details[0].get("highlight") or "")
    at = f" near {near!r}" if near else ""
    return Refusal(
        Code.SQL_UNREADABLE,
        "parser.syntax",
        f"The statement cannot be read{at}",
        "Correct the syntax, or say it with plainer SQL.",
    )
