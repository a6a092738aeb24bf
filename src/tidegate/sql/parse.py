"""Parses one plain statement with sqlglot, bounded, and raises nothing but our own refusals.

sqlglot is imported when the first statement is judged, and only the dialect that is needed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from threading import Lock, local
from typing import TYPE_CHECKING, Any

from tidegate.errors import Code
from tidegate.model.long_work import TakesLong, may_take_long
from tidegate.sql.finding import Refusal

if TYPE_CHECKING:
    from sqlglot.expressions.core import Expression


FUEL = 12_000
FUEL_PER_TOKEN = 12
"""How often the parser may look something up. It looks 3 to 4 times a token (at most 8 times over
1,300 real queries), but tries some texts again and again: twice as often for every level of
nesting, or for every JOIN without ON. Nothing else can stop it."""

COUNTED = ("JOIN_METHODS", "IDENTIFIER_TOKENS", "UNARY_PARSERS", "QUERY_MODIFIER_PARSERS")
"""The parser's own tables that count look-ups. It looks into one of them for each join, name, value
and query that it tries to read, also where it asks its dialect nothing. The look-up is interpreted
code, so it also lets other threads run."""


class _Exhausted(Exception):
    """The parser has used up its fuel."""


class _Fuel(local):
    """What the parser of one thread may still look up; without a bound outside of `parse`: sqlglot
    parses texts of its own, some of them while it imports a dialect."""

    left = sys.maxsize

    def use(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _Exhausted


_fuel = _Fuel()
_loading = Lock()


def parse(text: str, dialect: str, tokens: int) -> Expression:
    """The tree of the one statement in `text`, which `normalize` wrote from so many tokens.

    Raises: Refusal SQL_UNREADABLE, SQL_TOO_DEEP, SQL_MULTIPLE, SQL_EMPTY; TakesLong if the parser
    must be imported first and there is no time for it.
    """
    read = _parsers.get(dialect)
    if read is None:
        if not may_take_long.get():
            raise TakesLong
        read = _load(dialect)
    _fuel.left = FUEL + FUEL_PER_TOKEN * tokens
    try:
        trees = read(text)
    except (RecursionError, _Exhausted):
        raise Refusal(
            Code.SQL_TOO_DEEP, "parser.depth", "The statement is too intricate to be read"
        ) from None
    except Exception as error:  # noqa: BLE001 - whatever ails the parser, the text was not read
        raise _unreadable(error) from None
    finally:
        _fuel.left = sys.maxsize
    if len(trees) > 1:
        raise Refusal(
            Code.SQL_MULTIPLE,
            "parser.statements",
            "Multi-statement queries are not supported. Send one statement at a time.",
        )
    if not trees or trees[0] is None:
        raise Refusal(Code.SQL_EMPTY, "parser.empty", "The text holds no statement")
    return trees[0]


_Read = Callable[[str], "list[Expression | None]"]
_parsers: dict[str, _Read] = {}


def _load(name: str) -> _Read:
    """One of sqlglot's dialects, with a bound on its work."""
    with _loading:
        if name in _parsers:
            return _parsers[name]
        # It warns of what it cannot parse with the text itself, which belongs in no log.
        logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
        from sqlglot.dialects.dialect import Dialect

        dialect: object = Dialect.get_or_raise(name or None)
        plain: Any = dialect.__class__
        use = _fuel.use

        # The parser is compiled and cannot be interrupted, but it asks this object all the time.
        class Bounded(plain):
            def __getattribute__(self, name: str) -> Any:
                use()
                return object.__getattribute__(self, name)

        for table in COUNTED:
            _count_lookups(plain.parser_class, table)
        _parsers[name] = read = Bounded().parse
        return read


def _count_lookups(parser: Any, table: str) -> None:
    """Have a table of a parser class count how often it is looked into."""
    entries: object = getattr(parser, table)
    kind: Any = type(entries)
    if kind.__module__ != "builtins":
        return  # inherited from a parser whose tables count already
    use = _fuel.use

    class Counted(kind):
        def __contains__(self, key: object) -> bool:
            use()
            return kind.__contains__(self, key)

    setattr(parser, table, Counted(entries))


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
        "Correct the syntax, or use simpler SQL.",
    )
