"""Reads the conditions of a query: what is compared, how, and with which parameters.

A condition is taken apart at AND, OR and NOT. What is left is one comparison: of two sides, the one
without a parameter is the field.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from tidegate.products.jdbc.extraction.model import Condition, Parameter
from tidegate.products.jdbc.extraction.token_groups import TokenGroups
from tidegate.sql.dialects.model import words
from tidegate.sql.lex import OP

_WORD_OPERATORS = words("""
    BETWEEN GLOB ILIKE IN IS LIKE MATCH MEMBER OVERLAPS REGEXP RLIKE SIMILAR SOUNDS
    """)
_CONTINUED = {"SIMILAR": "TO", "SOUNDS": "LIKE", "MEMBER": "OF"}
_COMPARISONS = words("= == < > <= >= <> != ^= <=>")
_OTHERS = words("@> <@ && @@ @@@ ~ ~* !~ !~* ~~ ~~* !~~ !~~* ? ?| ?& @? ^@ << >> <<= >>= &< &> -|-")
"""Operators of PostgreSQL that decide; they count where none of the above is there."""
_SPELLED = {"<>": "!=", "^=": "!=", "==": "="}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "@>": "<@", "<@": "@>"}
_CONSTANTS = words("NULL TRUE FALSE UNKNOWN")


class _Operator(NamedTuple):
    """An operator as it is shown, and the tokens that it takes."""

    shown: str
    start: int
    end: int


class ConditionReader:
    """Collects the conditions of one query, its nested ones included."""

    def __init__(self, groups: TokenGroups, *, signs_join: bool) -> None:
        """`signs_join`: `&&` and `||` mean AND and OR, as in MySQL."""
        self._groups = groups
        self._joining = words("AND OR XOR && ||") if signs_join else words("AND OR XOR")
        self._found: list[tuple[int, Condition]] = []
        self.parameters: dict[int, Parameter] = {}

    @property
    def found(self) -> list[Condition]:
        """The conditions in their order in the text."""
        return [condition for _, condition in sorted(self._found, key=itemgetter(0))]

    def read(self, low: int, high: int, clause: str, negated: bool = False) -> None:
        """Read the condition from `low` to `high`. Nested queries are left to the caller."""
        for start, end in self._split(low, high):
            self._read_part(start, end, clause, negated)

    def _split(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        groups, start, between = self._groups, low, False
        for at in groups.level(low, high):
            key = groups.key(at)
            if key == "BETWEEN":
                between = True
            elif key in self._joining:
                if between and key == "AND":
                    between = False
                    continue
                yield start, at
                start, between = at + 1, False
        yield start, high

    def _read_part(self, low: int, high: int, clause: str, negated: bool) -> None:
        groups = self._groups
        while low < high and groups.key(low) == "NOT" and groups.is_word(low):
            low, negated = low + 1, not negated
        if low >= high:
            return
        inner = groups.unwrap(low, high)
        if inner != (low, high) and not groups.is_query(low):
            self.read(*inner, clause, negated)
            return
        self._read_comparison(low, high, clause, negated)

    def _read_comparison(self, low: int, high: int, clause: str, negated: bool) -> None:
        groups = self._groups
        own = groups.own_marks(low, high)
        operator = self._find_operator(low, high)
        if operator is None:
            nested = next(groups.queries(low, high), None)
            if nested is not None and not own:
                return  # EXISTS: what the query inside compares is read with it
            field, shown, value = groups.text(low, high), "", ""
        else:
            left, right = (low, operator.start), (operator.end, high)
            shown = operator.shown
            if self._is_value(left) and not self._is_value(right):
                left, right = right, left
                shown = _MIRRORED.get(shown, shown)
            field, value = groups.text(*left), groups.text(*right)
        condition = Condition(field, shown, value, clause, len(own), negated)
        self._found.append((low, condition))
        for mark in own:
            self.parameters[mark] = Parameter(clause, field, shown)

    def _is_value(self, side: tuple[int, int]) -> bool:
        """Whether a side holds a parameter, or is a constant."""
        if self._groups.own_marks(*side):
            return True
        return side[1] - side[0] == 1 and self._groups.key(side[0]) in _CONSTANTS

    def _find_operator(self, low: int, high: int) -> _Operator | None:
        groups, other = self._groups, None
        for at in groups.level(low, high):
            if at == low or at == high - 1:
                continue
            key = groups.key(at)
            if key in _WORD_OPERATORS and groups.is_word(at):
                return self._word_operator(at, high)
            if groups.tokens[at].kind != OP:
                continue
            if key in _COMPARISONS:
                return _Operator(_SPELLED.get(key, key), at, at + 1)
            if other is None and key in _OTHERS:
                other = _Operator(key, at, at + 1)
        return other

    def _word_operator(self, at: int, high: int) -> _Operator:
        groups = self._groups
        key, end = groups.key(at), at + 1
        shown = [key]
        if key == "IS":
            for word in ("NOT", "DISTINCT", "FROM"):
                if end < high and groups.key(end) == word:
                    shown.append(word)
                    end += 1
        elif groups.key(end) == _CONTINUED.get(key):
            shown.append(groups.key(end))
            end += 1
        if groups.key(at - 1) == "NOT":
            shown.insert(0, "NOT")
            at -= 1
        return _Operator(" ".join(shown), at, end)
