"""Recognizes ordinary SELECT statements from their tokens, without the general parser.

Importing the general parser costs 0.15 s of CPU and 36 MB. Most statements of agents are plain
queries, for which a small grammar is enough. It only ever accepts: a statement that it does not
recognize completely goes to the general parser, which decides. `tests/properties/sql` compares both
on the whole corpus.

The grammar follows what the dialects of SQLite, PostgreSQL, MySQL and DuckDB have in common:
SELECT with joins, subqueries, common table expressions, set operations, CASE, CAST, calls and
window functions. Tables must be named by plain or quoted names.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.sql.dialects.common import SYNTAX, TYPES, VERBS
from tidegate.sql.dialects.model import Dialect, words
from tidegate.sql.lex import NAME, NUMBER, OP, PARAM, STRING, WORD, Token

_RESERVED = (
    SYNTAX
    | VERBS
    | words("""
    ALTER ANALYZE ANTI ASC ASOF ATTACH BEGIN BY CALL COLLATE COMMIT CONNECT COPY CREATE CUBE CURRENT
    DESC DESCRIBE DETACH DISTINCTROW DIV DO DROP ESCAPE EXEC EXECUTE EXPLAIN FETCH FILTER FORCE FULL
    GLOB GRANT GROUP GROUPING GROUPS HIGH_PRIORITY IGNORE ILIKE INDEXED INNER ISNULL LATERAL LEFT
    MATCH MINUS MOD NATURAL NOTHING NOTNULL ONLY ORDER OUTER OVER OVERLAPS PARTITION PIVOT
    POSITIONAL PRAGMA PRIOR PROCEDURE RANGE RECURSIVE REGEXP REPLACE REVOKE RIGHT RLIKE ROLLUP ROWS
    SAMPLE SEMI SEPARATOR SHOW SIMILAR SQL_CACHE SQL_CALC_FOUND_ROWS SQL_NO_CACHE START
    STRAIGHT_JOIN SUMMARIZE TABLE TABLESAMPLE TO TOP TRUNCATE UNNEST UNPIVOT USE VACUUM WINDOW
    WITHIN XOR
    """)
)
"""Words that are no names here. A statement that uses one as a name goes to the general parser."""

_NAMED_FUNCTIONS = frozenset({"LEFT", "RIGHT", "REPLACE", "MOD", "GLOB", "IF"})
"""Reserved words that are functions when a bracket follows."""

_INFIX = words("AND OR LIKE ILIKE BETWEEN ESCAPE GLOB REGEXP RLIKE DIV MOD XOR")
_NEGATABLE = words("LIKE ILIKE BETWEEN IN GLOB REGEXP RLIKE")
_CONSTANTS = words("NULL TRUE FALSE")
_MARKS = words("( ) [ ] { } . , ; : :: := =>")
_PREFIXES = words("+ - ~")
_QUANTIFIERS = words("ANY ALL SOME")
_TYPED_LITERALS = words("DATE TIME TIMESTAMP TIMESTAMPTZ")
_UNITS = words("""
    DAY DAYS HOUR HOURS MICROSECOND MICROSECONDS MILLISECOND MILLISECONDS MINUTE MINUTES MONTH
    MONTHS QUARTER QUARTERS SECOND SECONDS WEEK WEEKS YEAR YEARS
    """)
_FRAME = words("ROWS RANGE GROUPS BETWEEN AND UNBOUNDED PRECEDING FOLLOWING CURRENT ROW")
_BEFORE_JOIN = words("NATURAL INNER LEFT RIGHT FULL CROSS OUTER")
_SET_OPERATIONS = words("UNION INTERSECT EXCEPT")
_MODIFIED_TYPES = {"DOUBLE": "PRECISION", "CHARACTER": "VARYING"}

_END = Token("end", "", "", 0)


class _Unrecognized(Exception):
    """The statement is outside the grammar."""


Scope = tuple[set[str], ...]
"""The names of common table expressions that a query can refer to, from the inside out."""


def tables_of_select(tokens: list[Token], dialect: Dialect) -> list[tuple[str, ...]] | None:
    """The tables that a plain query names, each as the parts of its name, without common table
    expressions; None if the statement is not completely within this grammar."""
    if not dialect.plain_selects or tokens[0].key not in ("SELECT", "WITH"):
        return None
    recognizer = _Recognizer(tokens, dialect)
    try:
        recognizer.query(())
        recognizer.expect_end()
    except _Unrecognized:
        return None
    return list(recognizer.resolved())


class _Recognizer:
    """One pass over the tokens, without backtracking. Raises `_Unrecognized` at the first token
    that does not fit."""

    __slots__ = ("_at", "_dialect", "_references", "_tokens")

    def __init__(self, tokens: list[Token], dialect: Dialect) -> None:
        self._tokens = [*tokens, _END, _END]
        self._at = 0
        self._dialect = dialect
        self._references: list[tuple[tuple[str, ...], str, Scope]] = []

    def resolved(self) -> Iterable[tuple[str, ...]]:
        """The tables, once each, in the order of the text."""
        found: dict[tuple[str, ...], None] = {}
        for parts, known_as, scope in self._references:
            if len(parts) > 1 or not any(known_as in names for names in scope):
                found[parts] = None
        return found

    def expect_end(self) -> None:
        if self._tokens[self._at] is not _END:
            raise _Unrecognized

    # Queries

    def query(self, scope: Scope) -> None:
        if self._take("WITH"):
            scope = self._common_tables(scope)
        self._select(scope)
        while self._key in _SET_OPERATIONS:
            self._at += 1
            if not self._take("ALL"):
                self._take("DISTINCT")
            self._select(scope)
        self._ordering(scope)
        if self._take("LIMIT"):
            self._expression(scope)
            if self._take(",") or self._take("OFFSET"):
                self._expression(scope)

    def _common_tables(self, scope: Scope) -> Scope:
        # SQLite alone lets a query refer to itself, and to later ones, without RECURSIVE.
        everywhere = self._take("RECURSIVE") or self._dialect.ctes_see_all
        names: set[str] = set()
        while True:
            name = self._known_as(self._name())
            if everywhere:
                names.add(name)
            self._expect("AS")
            if self._take("NOT"):
                self._expect("MATERIALIZED")
            else:
                self._take("MATERIALIZED")
            self._expect("(")
            self.query((names if everywhere else set(names), *scope))
            self._expect(")")
            names.add(name)
            if not self._take(","):
                return (names, *scope)

    def _select(self, scope: Scope) -> None:
        self._expect("SELECT")
        if not self._take("DISTINCT"):
            self._take("ALL")
        while True:
            self._item(scope)
            if not self._take(","):
                break
        if self._take("FROM"):
            self._sources(scope)
        if self._take("WHERE"):
            self._expression(scope)
        if self._take("GROUP"):
            self._expect("BY")
            self._expressions(scope)
        if self._take("HAVING"):
            self._expression(scope)

    def _item(self, scope: Scope) -> None:
        if self._take("*"):
            return
        self._expression(scope)
        self._alias()

    def _alias(self) -> None:
        if self._take("AS"):
            self._name()
            return
        token = self._tokens[self._at]
        if token.kind == NAME or (token.kind == WORD and token.key not in _RESERVED):
            self._at += 1

    def _sources(self, scope: Scope) -> None:
        self._source(scope)
        while True:
            if self._take(","):
                self._source(scope)
                continue
            joins = False
            while self._key in _BEFORE_JOIN:
                self._at += 1
                joins = True
            if not self._take("JOIN"):
                if joins:
                    raise _Unrecognized
                return
            self._source(scope)
            if self._take("ON"):
                self._expression(scope)
            elif self._take("USING"):
                self._expect("(")
                self._name()
                while self._take(","):
                    self._name()
                self._expect(")")

    def _source(self, scope: Scope) -> None:
        if self._take("("):
            self.query(scope)
            self._expect(")")
        else:
            first = self._name()
            parts = [first]
            while self._take("."):
                parts.append(self._name())
            if self._key == "(" or len(parts) > 3:
                raise _Unrecognized
            names = tuple(part.text for part in parts)
            self._references.append((names, self._known_as(first), scope))
        self._alias()

    def _ordering(self, scope: Scope) -> None:
        if not self._take("ORDER"):
            return
        self._expect("BY")
        while True:
            self._expression(scope)
            if not self._take("ASC"):
                self._take("DESC")
            if self._take("NULLS") and not (self._take("FIRST") or self._take("LAST")):
                raise _Unrecognized
            if not self._take(","):
                return

    # Expressions: precedence does not matter here, operands and operators alternate.

    def _expressions(self, scope: Scope) -> None:
        self._expression(scope)
        while self._take(","):
            self._expression(scope)

    def _expression(self, scope: Scope) -> None:
        self._operand(scope)
        while True:
            token = self._tokens[self._at]
            key = token.key
            if token.kind == OP:
                if key == "::":
                    self._at += 1
                    self._type()
                    continue
                if key in _MARKS:
                    return
                self._at += 1
            elif token.kind != WORD:
                return
            elif key == "IS":
                self._at += 1
                self._take("NOT")
                if self._key not in _CONSTANTS:
                    raise _Unrecognized
            elif key == "IN" or (key == "NOT" and self._next_key == "IN"):
                self._at += 1 if key == "IN" else 2
                self._enclosed(scope)
                continue
            elif key == "NOT" and self._next_key in _NEGATABLE:
                self._at += 2
            elif key == "COLLATE":
                self._at += 1
                self._name()
                continue
            elif key in _INFIX:
                self._at += 1
            else:
                return
            if self._key in _QUANTIFIERS:
                self._at += 1
                self._enclosed(scope)
            else:
                self._operand(scope)

    def _operand(self, scope: Scope) -> None:
        token = self._tokens[self._at]
        while token.key == "NOT" or (token.kind == OP and token.key in _PREFIXES):
            self._at += 1
            token = self._tokens[self._at]
        kind, key = token.kind, token.key
        if kind in (STRING, NUMBER) or key in _CONSTANTS:
            self._at += 1
        elif kind == PARAM:
            if token.text.startswith("@"):
                raise _Unrecognized  # a variable, or a table of another database
            self._at += 1
        elif key == "(":
            self._enclosed(scope)
        elif key == "CASE":
            self._case(scope)
        elif key == "EXISTS":
            self._at += 1
            self._expect("(")
            self.query(scope)
            self._expect(")")
        elif key == "CAST" and self._next_key == "(":
            self._at += 2
            self._expression(scope)
            self._expect("AS")
            self._type()
            self._expect(")")
        elif key == "EXTRACT" and self._next_key == "(":
            self._at += 2
            if self._key not in _UNITS:
                raise _Unrecognized
            self._at += 1
            self._expect("FROM")
            self._expression(scope)
            self._expect(")")
        elif key == "INTERVAL":
            self._at += 1
            self._literal()
            if self._key in _UNITS:
                self._at += 1
        elif key in _TYPED_LITERALS and self._tokens[self._at + 1].kind == STRING:
            self._at += 2
        else:
            self._reference(scope)

    def _literal(self) -> None:
        if self._tokens[self._at].kind not in (STRING, NUMBER):
            raise _Unrecognized
        self._at += 1

    def _enclosed(self, scope: Scope) -> None:
        """A query or expressions in brackets."""
        self._expect("(")
        if self._key in ("SELECT", "WITH"):
            self.query(scope)
        else:
            self._expressions(scope)
        self._expect(")")

    def _case(self, scope: Scope) -> None:
        self._expect("CASE")
        if self._key != "WHEN":
            self._expression(scope)
        while True:
            self._expect("WHEN")
            self._expression(scope)
            self._expect("THEN")
            self._expression(scope)
            if self._key != "WHEN":
                break
        if self._take("ELSE"):
            self._expression(scope)
        self._expect("END")

    def _reference(self, scope: Scope) -> None:
        """A column, all columns of a table, or a call. The calls' names were checked before."""
        if self._key in _NAMED_FUNCTIONS and self._next_key == "(":
            self._at += 1
        else:
            self._name()
            while self._take("."):
                if self._take("*"):
                    return
                self._name()
        if self._take("("):
            self._arguments(scope)

    def _arguments(self, scope: Scope) -> None:
        if not self._take("*") and self._key != ")":
            self._take("DISTINCT")
            self._expressions(scope)
            self._ordering(scope)
        self._expect(")")
        if self._key == "FILTER" and self._next_key == "(":
            self._at += 2
            self._expect("WHERE")
            self._expression(scope)
            self._expect(")")
        if self._take("OVER"):
            self._expect("(")
            if self._take("PARTITION"):
                self._expect("BY")
                self._expressions(scope)
            self._ordering(scope)
            while self._key in _FRAME or self._tokens[self._at].kind == NUMBER:
                self._at += 1
            self._expect(")")

    def _type(self) -> None:
        token = self._tokens[self._at]
        if token.kind != WORD or token.key.lower() not in TYPES:
            raise _Unrecognized
        self._at += 1
        following = _MODIFIED_TYPES.get(token.key)
        if following is not None:
            self._take(following)
        if self._take("("):
            self._literal()
            if self._take(","):
                self._literal()
            self._expect(")")
        if self._key in ("[", "UNSIGNED", "ZONE", "WITH", "WITHOUT", "VARYING"):
            raise _Unrecognized

    # Tokens

    @property
    def _key(self) -> str:
        return self._tokens[self._at].key

    @property
    def _next_key(self) -> str:
        return self._tokens[self._at + 1].key

    def _take(self, key: str) -> bool:
        """Pass over the token if it is this keyword or mark."""
        if self._tokens[self._at].key != key:
            return False
        self._at += 1
        return True

    def _expect(self, key: str) -> None:
        if self._tokens[self._at].key != key:
            raise _Unrecognized
        self._at += 1

    def _name(self) -> Token:
        """Pass over a plain or quoted name."""
        token = self._tokens[self._at]
        if token.kind != NAME and (token.kind != WORD or token.key in _RESERVED):
            raise _Unrecognized
        self._at += 1
        return token

    def _known_as(self, name: Token) -> str:
        """What a name is compared as."""
        quoted = name.kind == NAME and not self._dialect.lexical_rules.names_fold
        return name.text if quoted else name.text.lower()
