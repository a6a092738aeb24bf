"""Evaluates Datalog over a list of facts, naively: rules bottom up until nothing is new, clauses
one after another over whole sets of bindings. It shares nothing with Datalevin or our own code.

A clause is a frozen dataclass of this module. A term is a variable (`Var`), `BLANK`, or a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias


class Var(NamedTuple):
    name: str


BLANK = Var("_")

Term: TypeAlias = Any
Fact: TypeAlias = tuple[int, str, Any]
Bindings: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Pattern:
    e: Term
    a: str
    v: Term


@dataclass(frozen=True)
class Call:
    """A predicate, or a function of which the value is bound to `out`."""

    name: str
    args: tuple[Term, ...]
    out: Var | None = None


@dataclass(frozen=True)
class RuleCall:
    name: str
    args: tuple[Term, ...]


@dataclass(frozen=True)
class And:
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Not:
    clauses: tuple[Clause, ...]
    join: tuple[Var, ...] | None = None
    """The variables of a `not-join`; None for a plain `not`."""


@dataclass(frozen=True)
class Or:
    branches: tuple[tuple[Clause, ...], ...]
    join: tuple[Var, ...] | None = None
    required: tuple[Var, ...] = ()
    """The variables of an `or-join` that are bound before it, written in a vector of their own."""


Clause: TypeAlias = "Pattern | Call | RuleCall | And | Not | Or"


@dataclass(frozen=True)
class Rule:
    name: str
    head: tuple[Var, ...]
    body: tuple[Clause, ...]


@dataclass
class Program:
    """Facts and rules, and what the rules derive from them."""

    facts: Sequence[Fact]
    rules: Sequence[Rule] = ()
    derived: dict[str, set[tuple[Any, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_attribute: dict[str, list[tuple[int, Any]]] = {}
        for e, a, v in self.facts:
            self._by_attribute.setdefault(a, []).append((e, v))
        self.derived = {rule.name: set() for rule in self.rules}
        for names in self._strata():
            self._derive([rule for rule in self.rules if rule.name in names])

    def _strata(self) -> list[set[str]]:
        """The rules in layers: what a rule denies is in a layer before it."""
        level = {rule.name: 0 for rule in self.rules}
        for _ in range(len(level) ** 2 + 1):
            for rule in self.rules:
                for name, denied in _used(rule.body, denied=False):
                    level[rule.name] = max(level[rule.name], level[name] + denied)
        assert max(level.values(), default=0) <= len(level), "a rule denies itself"
        return [
            {name for name, its in level.items() if its == at} for at in sorted(set(level.values()))
        ]

    def _derive(self, rules: Sequence[Rule]) -> None:
        grown = True
        while grown:
            grown = False
            for rule in rules:
                found = {
                    tuple([bound[each.name] for each in rule.head])
                    for bound in self.solve(rule.body, [{}])
                }
                grown |= not found <= self.derived[rule.name]
                self.derived[rule.name] |= found

    def solve(self, clauses: Sequence[Clause], bindings: Iterable[Bindings]) -> list[Bindings]:
        """The bindings on from those given in which all clauses hold."""
        left, found = list(clauses), list(bindings)
        while left and found:
            known = set(found[0])
            outside = known.union(*[_positive(each) for each in left])
            clause = min(left, key=lambda each: _turn(each, known, outside))
            assert _turn(clause, known, outside) < _NEVER, f"unbound: {clause}"
            left.remove(clause)
            found = _distinct(self._step(clause, found))
        return found

    def _step(self, clause: Clause, found: list[Bindings]) -> Iterable[Bindings]:
        match clause:
            case Pattern(e, a, v):
                rows = self._by_attribute.get(a, [])
                return _joined(found, (e, v), rows)
            case RuleCall(name, args):
                return _joined(found, args, self.derived[name])
            case Call():
                return [after for each in found if (after := _called(clause, each)) is not None]
            case And(clauses):
                return self.solve(clauses, found)
            case Not(clauses, join):
                return [each for each in found if not self.solve(clauses, [_only(each, join)])]
            case Or(branches, join):
                return [
                    {**each, **_only(after, join)}
                    for each in found
                    for branch in branches
                    for after in self.solve(branch, [_only(each, join)])
                ]


_NEVER = 9


def _turn(clause: Clause, known: set[str], outside: set[str]) -> int:
    """When a clause comes: calls as soon as they can, `or` after patterns, `not` last."""
    match clause:
        case Pattern() | RuleCall():
            return 2
        case Call(_, args):
            return 0 if {x.name for x in args if _is_variable(x)} <= known else _NEVER
        case And():
            return 3
        case Or(required=required):
            return 4 if {x.name for x in required} <= known else _NEVER
        case Not(clauses, join):
            needed = _all(clauses) & outside if join is None else {x.name for x in join}
            return 5 if needed <= known else _NEVER


def _is_variable(x: Term) -> bool:
    return isinstance(x, Var) and x != BLANK


def _names(terms: Iterable[Term]) -> set[str]:
    return {x.name for x in terms if _is_variable(x)}


def _positive(clause: Clause) -> set[str]:
    """The variables that a clause binds, or needs outside of a `not`."""
    match clause:
        case Pattern(e, _, v):
            return _names((e, v))
        case RuleCall(_, args):
            return _names(args)
        case Call(_, args, out):
            return _names((*args, out))
        case And(clauses):
            return set().union(*map(_positive, clauses))
        case Not(_, join):
            return _names(join or ())
        case Or(branches, join):
            if join is not None:
                return _names(join)
            return set().union(*[_positive(each) for branch in branches for each in branch])


def _all(clauses: Iterable[Clause]) -> set[str]:
    found: set[str] = set()
    for clause in clauses:
        if isinstance(clause, Not) and clause.join is None:
            found |= _all(clause.clauses)
        else:
            found |= _positive(clause)
    return found


def _used(clauses: Iterable[Clause], *, denied: bool) -> Iterable[tuple[str, bool]]:
    """The rules that clauses call, and whether they deny them."""
    for clause in clauses:
        match clause:
            case RuleCall(name):
                yield name, denied
            case And(inner):
                yield from _used(inner, denied=denied)
            case Not(inner):
                yield from _used(inner, denied=True)
            case Or(branches):
                for branch in branches:
                    yield from _used(branch, denied=denied)
            case _:
                pass


def _only(known: Bindings, join: tuple[Var, ...] | None) -> Bindings:
    if join is None:
        return known
    names = {each.name for each in join}
    return {name: value for name, value in known.items() if name in names}


def _joined(
    found: Iterable[Bindings], terms: Sequence[Term], rows: Iterable[Sequence[Any]]
) -> Iterable[Bindings]:
    rows = list(rows)
    for known in found:
        for row in rows:
            after: Bindings | None = known
            for term, value in zip(terms, row, strict=True):
                after = _unified(after, term, value)
                if after is None:
                    break
            else:
                yield after  # type: ignore[misc]


def _unified(known: Bindings | None, term: Term, value: Any) -> Bindings | None:
    if known is None or term == BLANK:
        return known
    if not isinstance(term, Var):
        return known if _same(term, value) else None
    if term.name in known:
        return known if _same(known[term.name], value) else None
    return {**known, term.name: value}


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


_FUNCTIONS: Mapping[str, Any] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "not=": lambda a, b: a != b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "inc": lambda a: a + 1,
    "even?": lambda a: a % 2 == 0,
}


def _called(call: Call, known: Bindings) -> Bindings | None:
    said = _FUNCTIONS[call.name](*[known[x.name] if _is_variable(x) else x for x in call.args])
    if call.out is not None:
        return _unified(known, call.out, said)
    return known if said else None


def _distinct(found: Iterable[Bindings]) -> list[Bindings]:
    kept: dict[tuple[tuple[str, Any], ...], Bindings] = {}
    for each in found:
        kept.setdefault(tuple(sorted(each.items(), key=lambda pair: pair[0])), each)
    return list(kept.values())
