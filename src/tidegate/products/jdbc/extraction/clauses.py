"""Takes a query apart at its clauses: select list, joins, conditions, and nested queries."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tidegate.products.jdbc.extraction.conditions import ConditionReader
from tidegate.products.jdbc.extraction.model import Field, Parameter
from tidegate.products.jdbc.extraction.token_groups import TokenGroups
from tidegate.sql.dialects.model import words
from tidegate.sql.lex import NAME, WORD

_CONDITIONS = words("WHERE HAVING QUALIFY ON")
_TABLES = words("FROM ON")
_JOINS = words("JOIN INNER CROSS FULL NATURAL STRAIGHT_JOIN LEFT RIGHT LATERAL")
_SETS = words("UNION INTERSECT EXCEPT MINUS")
_PLAIN = words("SELECT WHERE HAVING QUALIFY LIMIT OFFSET FETCH WINDOW FOR VALUES") | _SETS
_LISTS = words("GROUP ORDER CONNECT")
_MODIFIERS = words("""
    ALL DISTINCT DISTINCTROW HIGH_PRIORITY SQL_BIG_RESULT SQL_BUFFER_RESULT SQL_CACHE
    SQL_CALC_FOUND_ROWS SQL_NO_CACHE SQL_SMALL_RESULT STRAIGHT_JOIN
    """)
_NOT_BEFORE_ALIAS = words("""
    ALL AND ANY AS BETWEEN CASE COLLATE DATE DISTINCT DIV ELSE ESCAPE FROM ILIKE IN INTERVAL IS LIKE
    MOD NOT OPERATOR OR OVER REGEXP THEN TIME TIMESTAMP WHEN XOR ZONE
    """)
_NO_ALIAS = words("""
    DAY DAYS END FALSE HOUR HOURS ISNULL MINUTE MINUTES MONTH MONTHS NOTNULL NULL PRECISION SECOND
    SECONDS TRUE VARYING YEAR YEARS
    """)
_CALLED_BEFORE = words("FROM JOIN LATERAL ONLY APPLY") | {","}


class ClauseReader:
    """Reads the tokens of one query; `conditions` collects what its clauses compare."""

    def __init__(self, groups: TokenGroups, conditions: ConditionReader) -> None:
        self._groups = groups
        self._conditions = conditions
        self._clauses = ["SELECT"] * len(groups.marks)
        self.fields: tuple[Field, ...] = ()

    def read(self) -> None:
        """Read the whole query."""
        self._read_query(0, len(self._groups.tokens), outermost=True)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, in order."""
        known = self._conditions.parameters
        return tuple(
            [known.get(mark) or Parameter(clause) for mark, clause in enumerate(self._clauses)]
        )

    def _read_query(self, low: int, high: int, *, outermost: bool = False) -> None:
        groups = self._groups
        low, high = groups.unwrap(low, high)
        for clause, start, end in self._regions(low, high):
            if outermost and not self.fields:
                self._read_fields(clause, start, end)
            self._read_region(clause, start, end)
        if outermost and not self.fields:
            self._read_first_query(low, high)

    def _read_first_query(self, low: int, high: int) -> None:
        """The fields of `(SELECT ...) UNION (SELECT ...)`, and `*` for VALUES and TABLE."""
        groups = self._groups
        while groups.key(low) == "(" and groups.is_query(low):
            low, high = groups.unwrap(low + 1, groups.partner[low])
            for clause, start, end in self._regions(low, high):
                self._read_fields(clause, start, end)
                if self.fields:
                    return
        self.fields = (Field("*"),)

    def _regions(self, low: int, high: int, within: str = "") -> Iterator[tuple[str, int, int]]:
        """(clause, where it begins after its keyword, where it ends). `within` is the clause that
        the tokens are in, as `FROM` for tables in brackets, `(a JOIN b ON ...)`."""
        groups, clause, start = self._groups, within, low
        for at in groups.level(low, high):
            found = self._clause_at(at, clause, first=at == low and not within)
            if found is None:
                continue
            if start < at:
                yield clause, start, at
            clause, start = found, at + 1
        if start < high:
            yield clause, start, high

    def _clause_at(self, at: int, clause: str, *, first: bool) -> str | None:
        """The clause that the token at a place begins; None if it begins none."""
        groups = self._groups
        key = groups.key(at)
        if key == "," and clause == "ON":
            return "FROM"
        if groups.tokens[at].kind != WORD or not groups.is_word(at):
            return None
        if key == "FROM":
            before = groups.key(at - 1), groups.key(at - 2)
            distinct = before[0] == "DISTINCT" and before[1] in ("IS", "NOT")
            return None if distinct else "FROM"
        if key == "ON":
            return "ON" if clause in _TABLES else None
        if key in _JOINS:
            called = key in ("LEFT", "RIGHT") and groups.key(at + 1) == "("
            return "FROM" if clause in _TABLES and not called else None
        if key == "WITH":
            return "WITH" if first else None
        if key in _LISTS:
            return key if groups.key(at + 1) in ("BY", "ALL") else None
        if key in _SETS:
            return "SET"
        if key == "FOR" and clause in ("SELECT", "FROM"):
            return None if groups.key(at + 1) in ("SYSTEM_TIME", "VERSION") else "FOR"
        return key if key in _PLAIN else None

    def _read_region(self, clause: str, low: int, high: int) -> None:
        groups = self._groups
        for mark in groups.marks_in(low, high):
            self._clauses[mark] = clause or "SELECT"
        if clause in _CONDITIONS:
            self._conditions.read(low, high, clause)
        self._read_brackets(clause, low, high)

    def _read_brackets(self, clause: str, low: int, high: int) -> None:
        """Look for queries and conditions in the brackets of a region."""
        groups = self._groups
        for at in groups.level(low, high):
            end = groups.partner.get(at)
            if end is None:
                continue
            if groups.is_query(at):
                self._read_query(at + 1, end)
            elif groups.key(at + 1) == "WHERE":
                self._read_region("FILTER", at + 2, end)
                self._conditions.read(at + 2, end, "FILTER")
            elif clause == "FROM" and (at == low or groups.key(at - 1) in _CALLED_BEFORE):
                for inner, start, stop in self._regions(at + 1, end, "FROM"):
                    self._read_region(inner, start, stop)
            else:
                self._read_brackets("", at + 1, end)

    def _read_fields(self, clause: str, low: int, high: int) -> None:
        if clause != "SELECT":
            return
        groups = self._groups
        low = self._behind_modifiers(low, high)
        commas = [at for at in groups.level(low, high) if groups.key(at) == ","]
        edges = [low - 1, *commas, high]
        fields = [self._field(start + 1, end) for start, end in pairwise(edges)]
        self.fields = tuple([field for field in fields if field.text])

    def _behind_modifiers(self, low: int, high: int) -> int:
        groups = self._groups
        while low < high and groups.key(low) in _MODIFIERS and groups.is_word(low):
            low += 1
            if groups.key(low) == "ON" and groups.key(low + 1) == "(":
                low = groups.partner[low + 1] + 1
        if groups.key(low) == "TOP" and groups.key(low + 1) not in (",", ".", ""):
            low = groups.partner.get(low + 1, low + 1) + 1
            low += groups.key(low) == "PERCENT"
            low += 2 * (groups.key(low) == "WITH")
        elif groups.key(low) == "TOP" and low + 1 < high and groups.key(low + 1) == "":
            low += 2
        return low

    def _field(self, low: int, high: int) -> Field:
        groups = self._groups
        last = high - 1
        if last > low and groups.tokens[last].kind in (WORD, NAME):
            before = groups.key(last - 1)
            if before == "AS" and groups.is_word(last - 1):
                return Field(groups.text(low, last - 1), groups.text(last, high))
            implicit = groups.key(last) not in _NO_ALIAS and (
                before in (")", "]", "END", "}")
                or (groups.tokens[last - 1].kind != "op" and before not in _NOT_BEFORE_ALIAS)
            )
            if implicit:
                return Field(groups.text(low, last), groups.text(last, high))
        elif last - 1 > low and groups.key(last - 1) == "AS":
            return Field(groups.text(low, last - 1), groups.text(last, high))
        return Field(groups.text(low, high))
