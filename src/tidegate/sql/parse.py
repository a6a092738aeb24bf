"""Parses one plain statement with sqlglot, bounded, and raises nothing but our own refusals.

sqlglot is imported when the first statement is judged, and only the dialect that is needed.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any

from tidegate.errors import Code
from tidegate.sql.opinion import Refusal

if TYPE_CHECKING:
    from sqlglot.expressions.core import Expression


def parse(text: str, dialect: str) -> Expression:
    """The tree of the one statement in `text`, which `plain` wrote.

    Raises: Refusal SQL_UNREADABLE, SQL_TOO_DEEP, SQL_MULTIPLE, SQL_EMPTY.
    """
    try:
        trees = _parser(dialect).parse(text)
    except RecursionError:
        raise Refusal(
            Code.SQL_TOO_DEEP, "parser.depth", "The statement nests too deep to be read"
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


@cache
def _parser(dialect: str) -> Any:
    from sqlglot.dialects.dialect import Dialect

    # It warns of what it cannot parse with the text itself, which belongs in no log.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    return Dialect.get_or_raise(dialect or None)


def _unreadable(error: Exception) -> Refusal:
    """A refusal that names the word at which the parser gave up, where it told."""
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
