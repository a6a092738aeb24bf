"""Finds out whether a WHERE selects rows at all: `WHERE true`, `WHERE id = id` and
`WHERE a IS NULL OR a IS NOT NULL` are about every row, as if there were none.

Says only what holds whatever the rows are, NULL in a compared column aside. What it cannot decide
depends on the rows, if it names a column or reads a table; else it is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from types import NoneType
from typing import Any, cast

from tidegate.sql.dialects.model import Dialect, words
from tidegate.sql.normalization import TEXT


class Truth(Enum):
    """What is known of a condition. `SAME`: one answer for all rows, but not which."""

    ALWAYS = "always"
    NEVER = "never"
    SAME = "same"
    DEPENDS = "depends"


_OPPOSITE = {Truth.ALWAYS: Truth.NEVER, Truth.NEVER: Truth.ALWAYS}
_LESS, _EQUAL, _MORE = frozenset({-1}), frozenset({0}), frozenset({1})
_COMPARED = {
    "EQ": _EQUAL,
    "NullSafeEQ": _EQUAL,
    "NEQ": _LESS | _MORE,
    "NullSafeNEQ": _LESS | _MORE,
    "LT": _LESS,
    "LTE": _LESS | _EQUAL,
    "GT": _MORE,
    "GTE": _MORE | _EQUAL,
}
"""The outcomes of a comparison of two values with which each operator is true."""
_EVERY = _LESS | _EQUAL | _MORE
_ALIKE = frozenset({"Like", "ILike", "Glob", "Is", "RegexpLike", "SimilarTo"})
"""Operators that hold for a value and itself."""
_PURE = words(
    "Column Identifier Literal Add Sub Mul Neg Paren Cast TryCast DataType DataTypeParam DPipe"
    " Concat Lower Upper Coalesce Trim Abs Length Boolean Null Dot Mod Div"
)
"""What a value may be made of that is the same wherever it is written in one condition."""
_ROWS = frozenset({"Column", "Star", "Table", "From"})
_AGGREGATES = frozenset({"Count", "Sum", "Min", "Max", "Avg"})
_ARITHMETIC: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "Add": lambda one, other: one + other,
    "Sub": lambda one, other: one - other,
    "Mul": lambda one, other: one * other,
}
_KEYS = frozenset({"id", "rowid", "_rowid_", "oid", "ctid"})
_BARE = ("where", "from_", "group", "having", "limit", "offset", "joins", "qualify", "with_")


def selects_rows(change: Any, dialect: Dialect, *, exact_numbers: bool) -> bool:
    """Whether the condition of an UPDATE or DELETE tells one row from another, or admits none.

    `exact_numbers`: each number is in the tree as it was written.
    """
    where = change.args.get("where")
    return where is not None and _Conditions(change, dialect, exact_numbers).holds(
        where.this
    ) not in (Truth.ALWAYS, Truth.SAME)


def truth_of(change: Any, condition: Any, dialect: Dialect, exact_numbers: bool) -> Truth:
    """What is known of a condition of a change, as of that of a MERGE or a join."""
    return _Conditions(change, dialect, exact_numbers).holds(condition)


class _Conditions:
    def __init__(self, change: Any, dialect: Dialect, exact_numbers: bool) -> None:
        self._folds = dialect.lexical_rules.names_fold
        self._exact = exact_numbers
        table = change.this
        named = type(table).__name__ == "Table"
        place = [self._name(part) for part in table.parts] if named else []
        self._targets = {*place[-1:], str(table.alias).lower()} if named else set[str]()
        # A query of the statement may be called like the table.
        self._place = [] if change.args.get("with_") else place

    def holds(self, node: Any) -> Truth:
        """What is known of a condition."""
        kind = type(node).__name__
        if kind == "Paren":
            return self.holds(node.this)
        if kind == "Not":
            found = self.holds(node.this)
            return _OPPOSITE.get(found, found)
        if kind in ("And", "Or"):
            return self._joined(node, kind)
        found = self._simple(node, kind)
        if found is not None:
            return found
        return Truth.DEPENDS if _reads_rows(node) else Truth.SAME

    def _joined(self, node: Any, kind: str) -> Truth:
        parts = list(_flat(node, kind))
        found = [self.holds(part) for part in parts]
        decisive = Truth.NEVER if kind == "And" else Truth.ALWAYS
        if decisive in found or (kind == "Or" and self._covers(parts)):
            return decisive
        left = [each for each in found if each is not _OPPOSITE[decisive]]
        if not left:
            return _OPPOSITE[decisive]
        return Truth.DEPENDS if Truth.DEPENDS in left else Truth.SAME

    def _covers(self, parts: list[Any]) -> bool:
        """Whether one of the alternatives holds in any case: `a < b OR a >= b`, `x OR NOT x`."""
        outcomes: dict[tuple[str, str], frozenset[int]] = {}
        texts: dict[str, set[bool]] = {}
        for part in parts:
            holds = True
            while type(part).__name__ in ("Paren", "Not"):
                holds = holds is (type(part).__name__ == "Paren")
                part = part.this
            operator = _COMPARED.get(type(part).__name__)
            one, other = self._text(part.args.get("this")), self._text(part.args.get("expression"))
            if operator is not None and one is not None and other is not None:
                operator = operator if holds else _EVERY - operator
                if other < one:
                    one, other, operator = other, one, frozenset({-each for each in operator})
                outcomes[one, other] = outcomes.get((one, other), frozenset()) | operator
            elif type(part).__name__ == "Is" and one is not None:
                holds = holds is not bool(part.args.get("negate"))
                texts.setdefault(f"{one} IS {part.expression.sql()}", set()).add(holds)
            else:
                whole = self._text(part)
                if whole is not None:
                    texts.setdefault(whole, set()).add(holds)
        return _EVERY in outcomes.values() or any(len(each) == 2 for each in texts.values())

    def _simple(self, node: Any, kind: str) -> Truth | None:
        """What is known of a condition that joins no others; None if nothing is."""
        value = self._value(node)
        if value is not None:
            return Truth.ALWAYS if value else Truth.NEVER
        if kind == "Null":
            return Truth.NEVER
        if kind in _COMPARED or kind in _ALIKE:
            return self._compared(node, kind)
        if kind == "In":
            return self._in(node)
        if kind == "Between":
            bounds = [node.args.get("low"), node.args.get("high")]
            if all(self._is_same(node.this, bound) for bound in bounds):
                return Truth.ALWAYS
        if kind == "Exists":
            if _gives_a_row(node.this):
                return Truth.ALWAYS
            # It names no column, so no column of the row.
            named = any(type(each).__name__ in ("Column", "Star") for each in node.this.walk())
            return None if named else Truth.SAME
        if kind in ("Subquery", "Select"):
            query = node
            while type(query).__name__ == "Subquery":
                query = query.this
            if _is_bare(query) and len(query.expressions) == 1:
                return self.holds(query.expressions[0])
        if kind == "Case":
            return self._case(node)
        return None

    def _compared(self, node: Any, kind: str) -> Truth | None:
        if kind == "Is" and node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", None)
            found = self._compared(plain, kind)
            return None if found is None else _OPPOSITE.get(found)
        one, other = node.this, node.expression
        if kind == "Is" and type(other).__name__ in ("Boolean", "Null"):
            if type(other).__name__ == "Null" and self._is_key(one):
                return Truth.NEVER
            if type(other).__name__ == "Null":
                return None if self._value(one) is None else Truth.NEVER
            found = self.holds(one)
            if found not in _OPPOSITE:
                return None
            return found if other.this else _OPPOSITE[found]
        if self._is_same(one, other):
            holds = kind in _ALIKE or 0 in _COMPARED[kind]
            return Truth.ALWAYS if holds else Truth.NEVER
        left, right = self._number(one), self._number(other)
        if right is not None and (self._is_key(one) or type(one).__name__ == "Length"):
            least = 1 if self._is_key(one) else 0  # keys are counted from one, lengths from none
            if (kind == "GTE" and right <= least) or (kind == "GT" and right < least):
                return Truth.ALWAYS
        if kind in _COMPARED and left is not None and right is not None:
            outcome = (left > right) - (left < right)
            return Truth.ALWAYS if outcome in _COMPARED[kind] else Truth.NEVER
        return None

    def _is_key(self, node: Any) -> bool:
        """Whether a column is called as the key of its table is. It is taken for one, so that who
        deletes `WHERE id > 0` or `WHERE id IS NOT NULL` is asked."""
        if type(node).__name__ != "Column":
            return False
        name = self._name(node.parts[-1]).lower()
        own = {f"{table.rstrip('s')}{end}" for table in self._targets for end in ("_id", "id")}
        return name in _KEYS or name in own

    def _in(self, node: Any) -> Truth | None:
        if any(self._is_same(node.this, each) for each in node.expressions):
            return Truth.ALWAYS
        query = node.args.get("query")
        if query is not None and self._is_own_column(query.this, node.this):
            return Truth.ALWAYS  # each row is in its own table
        number = self._number(node.this)
        listed = [self._number(each) for each in node.expressions]
        if query is None and number is not None and None not in listed:
            return Truth.ALWAYS if number in listed else Truth.NEVER
        return None

    def _is_own_column(self, query: Any, column: Any) -> bool:
        """Whether a query gives this column of each row of the table that is changed."""
        source = query.args.get("from_")
        others = [name for name in _BARE if name != "from_" and query.args.get(name)]
        if source is None or others or len(query.expressions) != 1 or not self._place:
            return False
        table, given = source.this, query.expressions[0]
        if type(table).__name__ != "Table" or type(given).__name__ != "Column":
            return False
        own = {self._place[-1], str(table.alias).lower()}
        parts = [self._name(part) for part in given.parts]
        return (
            [self._name(part) for part in table.parts] == self._place
            and (len(parts) == 1 or parts[-2] in own)
            and self._text(column) == f"column {parts[-1]}"
        )

    def _case(self, node: Any) -> Truth | None:
        default = node.args.get("default")
        results = [each.args.get("true") for each in node.args.get("ifs") or ()]
        if default is None or not results or node.this is not None:
            return None
        found = {self.holds(each) for each in (*results, default)}
        return found.pop() if len(found) == 1 and found <= set(_OPPOSITE) else None

    def _value(self, node: Any) -> bool | None:
        """The truth of a constant; None for anything else."""
        kind = type(node).__name__
        if kind == "Boolean":
            return bool(node.this)
        if kind == "Literal" and node.args.get("is_string") and str(node.this).isdigit():
            return int(node.this) != 0
        number = self._number(node)
        return None if number is None else number != 0

    def _number(self, node: Any) -> Fraction | None:
        """The value of what is made of numbers alone; None for anything else."""
        kind = type(node).__name__
        if kind == "Paren":
            return self._number(node.this)
        if kind == "Literal" and not node.args.get("is_string") and self._exact:
            try:
                return Fraction(str(node.this))
            except ValueError:
                return None
        if kind == "Neg":
            value = self._number(node.this)
            return None if value is None else -value
        compute = _ARITHMETIC.get(kind)
        if compute is None:
            return None
        one, other = self._number(node.this), self._number(node.expression)
        return None if one is None or other is None else compute(one, other)

    def _is_same(self, one: Any, other: Any) -> bool:
        if one is None or other is None:
            return False
        first = self._text(one)
        return first is not None and first == self._text(other)

    def _text(self, node: Any) -> str | None:
        """A value as text that is the same for the same value; None for what may differ each time,
        or is not known as it was written."""
        if isinstance(node, (str, bool, NoneType)):
            return None
        for each in node.walk():
            kind = type(each).__name__
            if kind not in _PURE:
                return None
            if kind == "Literal" and each.this == TEXT:
                return None
            if kind == "Literal" and not each.args.get("is_string") and not self._exact:
                return None
        return self._written(node)

    def _written(self, node: Any) -> str:
        kind = type(node).__name__
        if kind == "Paren":
            return self._written(node.this)
        if kind == "Column":
            parts = [self._name(part) for part in node.parts]
            if len(parts) > 1 and parts[-2] in self._targets:
                parts = parts[-1:]
            return "column " + ".".join(parts)
        if kind == "Literal":
            return f"{'text' if node.args.get('is_string') else 'number'} {node.this}"
        inner: list[str] = []
        for name, value in sorted(node.args.items()):
            listed = cast("list[Any]", value if isinstance(value, list) else [value])
            given = [each for each in listed if each is not None]
            inner += [
                f"{name}={self._written(each) if hasattr(each, 'args') else each}" for each in given
            ]
        return f"{kind}({', '.join(inner)})"

    def _name(self, identifier: Any) -> str:
        """What a name is compared as."""
        name = str(getattr(identifier, "name", identifier) or "")
        quoted = getattr(identifier, "args", {}).get("quoted")
        return name if quoted and not self._folds else name.lower()


def _flat(node: Any, kind: str) -> list[Any]:
    """The parts of a chain of one operator, without recursion along it."""
    parts: list[Any] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        while type(each).__name__ == "Paren":
            each = each.this
        if type(each).__name__ == kind:
            waiting += [each.expression, each.this]
        else:
            parts.append(each)
    return parts


def _reads_rows(node: Any) -> bool:
    return any(type(each).__name__ in _ROWS for each in node.walk())


def _is_bare(query: Any) -> bool:
    """Whether a query only computes: it gives one row."""
    return type(query).__name__ == "Select" and not any(query.args.get(name) for name in _BARE)


def _gives_a_row(query: Any) -> bool:
    """Whether a query gives a row whatever the tables hold."""
    if type(query).__name__ == "Subquery":
        query = query.this
    if _is_bare(query):
        return True
    if type(query).__name__ != "Select":
        return False
    ends = [query.args.get(name) for name in ("group", "having", "limit", "offset", "qualify")]
    shown = [type(getattr(each, "this", each)).__name__ for each in query.expressions]
    plain = [type(each).__name__ for each in query.expressions]
    return not any(ends) and any(kind in _AGGREGATES for kind in (*plain, *shown))
