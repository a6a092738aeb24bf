"""Says what a query selects, on which conditions, with which parameters, from which tables.

The lexer and the brackets decide about fields, conditions and parameters, so that every text is a
part of the original. The parser, which keeps no places, decides whether it is one query that
changes nothing, and about tables: a name of a common table expression is not one.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from tidegate.errors import ERRORS, Code, TidegateError
from tidegate.model.statements import Effect
from tidegate.products.jdbc.extraction.clauses import ClauseReader
from tidegate.products.jdbc.extraction.conditions import ConditionReader
from tidegate.products.jdbc.extraction.foreign_names import ForeignName, foreign_name
from tidegate.products.jdbc.extraction.model import Extraction, TableUse
from tidegate.products.jdbc.extraction.source_text import (
    BRACKETED,
    GENERIC,
    SourceText,
    dialect_of,
    to_source_text,
)
from tidegate.products.jdbc.extraction.token_groups import TokenGroups
from tidegate.sql import quoting
from tidegate.sql.dialect_shims import apply_shims, shorten
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect, words
from tidegate.sql.finding import Finding, Refusal
from tidegate.sql.function_syntax import simplify
from tidegate.sql.lex import PARAM, Token
from tidegate.sql.normalization import normalize
from tidegate.sql.parse import parse
from tidegate.sql.scan import scan

if TYPE_CHECKING:
    from sqlglot.expressions.core import Expression

MOST_PARAMETERS = 10_000
_ROOTS = words("SELECT WITH VALUES TABLE FROM (")
_QUERIES = words("Select Union Intersect Except Values Subquery Table")
_CHANGES = words("Insert Update Delete Merge Into Command Create Drop Alter Set Copy TruncateTable")
_PARSERS = ("postgres", "", "mysql", "tsql", "oracle")
"""Those that are tried for a text whose database is not known."""


def extract(text: str, dialect: str = GENERIC) -> Extraction:
    """The structure of one query. Pure; linear in the text except for the parser, which is bounded.

    Raises: TidegateError SQL_UNKNOWN for what is no query, SQL_UNREADABLE, SQL_TOO_LONG,
    SQL_TOO_DEEP, SQL_EMPTY, SQL_MULTIPLE.
    """
    foreign = foreign_name(text, dialect)
    bracketed = dialect == GENERIC and foreign is not None
    try:
        return _extract(text, BRACKETED if bracketed else dialect)
    except Refusal as refusal:
        finding = refusal.finding
        if foreign is not None and not bracketed:
            finding = _foreign(foreign, dialect)
        code = finding.code or Code.SQL_UNREADABLE
        raise TidegateError(
            code,
            f"{finding.reason.rstrip('.')}.",
            hint=finding.hint or ERRORS[code].hint,
            details={"rule": finding.rule},
        ) from None
    except RecursionError:
        raise TidegateError(Code.SQL_TOO_DEEP, "The query nests too deep to be read.") from None


def _extract(text: str, name: str) -> Extraction:
    dialect = dialect_of(name)
    source = to_source_text(text, name)
    tokens = scan(source.text, dialect)
    _check_root(tokens[0])
    _check_parameters(tokens, source)
    tables = _tables(tokens, dialect)
    groups = TokenGroups(source, tokens, dialect.lexical_rules)
    conditions = ConditionReader(groups, signs_join=dialect.signs_join)
    clauses = ClauseReader(groups, conditions)
    clauses.read()
    return Extraction(
        clauses.fields,
        tuple([found for found in conditions.found if found.parameter_count]),
        tuple([found for found in conditions.found if not found.parameter_count]),
        clauses.parameters,
        tables,
        source.text,
        GENERIC if name == BRACKETED else name,
    )


def _foreign(name: ForeignName, dialect: str) -> Finding:
    """The reason where a text has names in the quotes of another database."""
    title = find(dialect).title or dialect
    own = quoting.identifier(name.text, dialect)
    return Finding(
        Effect.UNKNOWN,
        "jdbc.quotes",
        f"{title} does not write names as {name.raw[:40]}, at character {name.at + 1}",
        Code.SQL_UNREADABLE,
        f"Write {own[:60]}, or name the connection whose database writes names so.",
    )


def _check_root(root: Token) -> None:
    if root.key in _ROOTS:
        return
    near = difflib.get_close_matches(root.key, _ROOTS, 1, 0.75)
    raise Refusal(
        Code.SQL_UNKNOWN,
        "jdbc.no_query",
        f"Only queries are taken, and this text begins with {root.text[:40]!r}",
        f"Did you mean {near[0]}?" if near else "Send a SELECT.",
    )


def _check_parameters(tokens: list[Token], source: SourceText) -> None:
    """Refuse markers that JDBC lacks, and more of its own than drivers take."""
    places = frozenset(source.markers)
    if len(places) > MOST_PARAMETERS:
        raise Refusal(
            Code.SQL_TOO_LONG,
            "jdbc.parameters",
            f"The query has more than {MOST_PARAMETERS:,} parameters",
            "Read the values from a table instead.",
        )
    found = 0
    for token in tokens:
        if token.kind != PARAM:
            continue
        if token.at in places:
            found += 1
        elif token.text[:1] != "@":  # which is a variable
            raise Refusal(
                Code.SQL_UNREADABLE,
                "jdbc.marker",
                f"The marker {token.text[:40]} is not one of JDBC",
                "Write ? for each parameter.",
            )
    if found != len(places):
        raise Refusal(
            Code.SQL_UNREADABLE,
            "jdbc.misread",
            "A ? is where the database would not take it for a parameter",
            "Put spaces around it.",
        )


def _tables(tokens: list[Token], dialect: Dialect) -> tuple[TableUse, ...]:
    """The tables that a query reads. Raises: Refusal for what is no query, or changes something."""
    shorter = apply_shims(simplify(shorten(tokens), dialect.worded), dialect)
    text, names = normalize(shorter, dialect)
    tree = _parse(text, dialect, len(tokens))
    if type(tree).__name__ not in _QUERIES:
        raise _changes(type(tree).__name__)
    own: set[str] = set()
    found: list[Any] = []
    for node in tree.walk():
        kind = type(node).__name__
        if kind in _CHANGES:
            raise _changes(kind)
        if kind == "CTE":
            own.add(str(node.alias).lower())
        elif kind == "Table":
            found.append(node)
    tables: dict[TableUse, None] = {}
    for node in found:
        parts = [str(part.name) for part in node.parts]
        if not parts[-1] or (len(parts) == 1 and parts[0].lower() in own):
            continue
        path = ".".join([names.get(part, part) for part in parts])
        alias = str(node.alias)
        tables[TableUse(path, names.get(alias, alias) or None)] = None
    return tuple(tables)


def _parse(text: str, dialect: Dialect, tokens: int) -> Expression:
    if dialect.name != GENERIC:
        return parse(text, dialect.parser, tokens)
    refusal: Refusal | None = None
    for parser in _PARSERS:
        try:
            return parse(text, parser, tokens)
        except Refusal as caught:
            if caught.finding.code is not Code.SQL_UNREADABLE:
                raise
            refusal = refusal or caught
    raise refusal or _changes("")


def _changes(kind: str) -> Refusal:
    return Refusal(
        Code.SQL_UNKNOWN,
        "jdbc.changes",
        f"Only queries are taken, and this one holds {kind.upper() or 'something else'}",
        "Send a SELECT that only reads.",
    )
