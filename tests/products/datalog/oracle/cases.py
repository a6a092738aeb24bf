"""Random databases and random queries over them, and how a query is written for Datalevin."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from products.datalog.oracle.evaluator import (
    BLANK,
    And,
    Call,
    Clause,
    Fact,
    Not,
    Or,
    Pattern,
    Program,
    Rule,
    RuleCall,
    Term,
    Var,
)

SCHEMA: dict[str, Any] = {
    ":edge": {":db/valueType": ":db.type/ref", ":db/cardinality": ":db.cardinality/many"},
    ":next": {":db/valueType": ":db.type/ref"},
    ":to": {":db/valueType": ":db.type/long", ":db/cardinality": ":db.cardinality/many"},
    ":size": {":db/valueType": ":db.type/long"},
    ":color": {":db/valueType": ":db.type/string"},
    ":tag": {":db/valueType": ":db.type/string", ":db/cardinality": ":db.cardinality/many"},
}
LINKS = (":edge", ":next", ":to")
ENTITIES = tuple(Var(f"?{letter}") for letter in "abcd")
NUMBERS = (Var("?x"), Var("?y"))
TEXTS = (Var("?s"), Var("?t"))
COLORS = ("red", "green", "blue")

A, B, C, D = ENTITIES


def random_entities(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """A graph of `count` entities with circles, as transaction data."""
    found: list[dict[str, Any]] = []
    density = chance.choice((0.6, 1.2, 2.0))
    for number in range(1, count + 1):
        entity: dict[str, Any] = {":db/id": number}
        others = [chance.randint(1, count) for _ in range(6)]
        for name in (":edge", ":to"):
            chosen = sorted({each for each in others if chance.random() < density / 6})
            if chosen:
                entity[name] = chosen
        if chance.random() < 0.6:
            entity[":next"] = chance.randint(1, count)
        if chance.random() < 0.7:
            entity[":size"] = chance.randrange(6)
        if chance.random() < 0.7:
            entity[":color"] = chance.choice(COLORS)
        tags = sorted({f"t{chance.randrange(4)}" for _ in range(chance.randrange(3))})
        if tags:
            entity[":tag"] = tags
        found.append(entity if len(entity) > 1 else {**entity, ":size": 0})
    return found


def facts_of(entities: Iterable[dict[str, Any]]) -> list[Fact]:
    return [
        (entity[":db/id"], name, each)
        for entity in entities
        for name, value in entity.items()
        if name != ":db/id"
        for each in (value if isinstance(value, list) else [value])
    ]


@dataclass(frozen=True)
class Query:
    """`given` are inputs by the way they are bound: one value, several, or rows of two."""

    find: tuple[Any, ...]
    where: tuple[Clause, ...]
    rules: tuple[Rule, ...] = ()
    given: tuple[tuple[Any, Any], ...] = ()
    form: str = "relation"
    with_: tuple[Var, ...] = ()

    @property
    def text(self) -> str:
        found = " ".join(map(_find, self.find))
        found = {"collection": f"[{found} ...]", "tuple": f"[{found}]", "scalar": f"{found} ."}.get(
            self.form, found
        )
        bound = "".join(f" {_binding(binding)}" for binding, _ in self.given)
        rules = " %" if self.rules else ""
        more = f" :with {' '.join(x.name for x in self.with_)}" if self.with_ else ""
        return f"[:find {found}{more} :in ${rules}{bound} :where {written(self.where)}]"

    @property
    def inputs(self) -> list[Any]:
        rules = f"[{' '.join(map(_rule, self.rules))}]"
        return [*([rules] if self.rules else []), *[value for _, value in self.given]]

    @property
    def is_bound(self) -> bool:
        """Whether all that it finds has a value."""
        shown = {each.of if isinstance(each, Aggregate) else each for each in self.find}
        given = {x for binding, _ in self.given for x in _variables_of(binding)}
        return {x.name for x in (shown | set(self.with_)) - given} <= _bound_by(self.where)

    def answer(self, facts: Sequence[Fact]) -> Any:
        """A relation as a set of rows, a collection as a set of values; of one row or one value,
        all that could be given."""
        program = Program(facts, self.rules)
        bindings: list[dict[str, Any]] = [{}]
        for binding, value in self.given:
            bindings = [{**known, **more} for known in bindings for more in _bound(binding, value)]
        solutions = program.solve(self.where, bindings)
        rows = _aggregated(self.find, self.with_, solutions)
        return {row[0] for row in rows} if self.form in ("collection", "scalar") else rows

    def agrees(self, answer: Any, found: Any) -> bool:
        match self.form:
            case "relation":
                return _rows(found) == _rows(answer)
            case "collection":
                return len(found) == len(answer) and set(found) == answer
            case "tuple":
                return (found is None and not answer) or (
                    found is not None and tuple(found) in answer
                )
            case _:
                return (found is None and not answer) or found in answer


def _rows(found: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows in order; a mean depends on the order of its addition by the last digits."""
    return sorted(
        (tuple([round(x, 9) if isinstance(x, float) else x for x in row]) for row in found),
        key=repr,
    )


@dataclass(frozen=True)
class Aggregate:
    name: str
    of: Var


def _aggregated(
    find: Sequence[Any], more: Sequence[Var], solutions: Sequence[dict[str, Any]]
) -> set[tuple[Any, ...]]:
    names = [each.of.name if isinstance(each, Aggregate) else each.name for each in find]
    rows = {
        tuple([known[name] for name in [*names, *(x.name for x in more)]]) for known in solutions
    }
    if not any(isinstance(each, Aggregate) for each in find):
        return {row[: len(find)] for row in rows}
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        key = tuple([row[at] for at, each in enumerate(find) if not isinstance(each, Aggregate)])
        groups.setdefault(key, []).append(row)
    return {
        tuple(
            [
                _aggregate(each.name, [row[at] for row in group])
                if isinstance(each, Aggregate)
                else group[0][at]
                for at, each in enumerate(find)
            ]
        )
        for group in groups.values()
    }


def _aggregate(name: str, values: list[Any]) -> Any:
    match name:
        case "count":
            return len(values)
        case "count-distinct":
            return len(set(values))
        case "sum":
            return sum(values)
        case "avg":
            return sum(values) / len(values)
        case "min":
            return min(values)
        case _:
            return max(values)


def _bound(binding: Any, value: Any) -> list[dict[str, Any]]:
    if isinstance(binding, Var):
        return [{binding.name: value}]
    kind, *variables = binding
    rows = [value] if kind == "tuple" else value
    rows = [[row] for row in rows] if kind == "several" else rows
    return [{x.name: each for x, each in zip(variables, row, strict=True)} for row in rows]


# How it is written.


def written(clauses: Iterable[Clause]) -> str:
    return " ".join(map(_clause, clauses))


def _term(x: Term) -> str:
    if isinstance(x, Var):
        return x.name
    return f'"{x}"' if isinstance(x, str) else str(x)


def _terms(terms: Iterable[Term]) -> str:
    return " ".join(map(_term, terms))


def _clause(clause: Clause) -> str:
    match clause:
        case Pattern(e, a, None):
            return f"[{_term(e)} {a}]"
        case Pattern(e, a, v):
            return f"[{_term(e)} {a} {_term(v)}]"
        case Call(name, args, out):
            return f"[({name} {_terms(args)}){'' if out is None else f' {out.name}'}]"
        case RuleCall(name, args):
            return f"({name} {_terms(args)})"
        case And(clauses):
            return f"(and {written(clauses)})"
        case Not(clauses, None):
            return f"(not {written(clauses)})"
        case Not(clauses, join):
            return f"(not-join [{_terms(join)}] {written(clauses)})"
        case Or(branches, join, required):
            inner = " ".join(_clause(each[0] if len(each) == 1 else And(each)) for each in branches)
            if join is None:
                return f"(or {inner})"
            free = [x for x in join if x not in required]
            first = f"[{_terms(required)}] " if required else ""
            return f"(or-join [{first}{_terms(free)}] {inner})"


def _rule(rule: Rule) -> str:
    return f"[({rule.name} {_terms(rule.head)}) {written(rule.body)}]"


def _find(element: Any) -> str:
    return f"({element.name} {element.of.name})" if isinstance(element, Aggregate) else element.name


def _binding(binding: Any) -> str:
    if isinstance(binding, Var):
        return binding.name
    kind, *variables = binding
    inner = " ".join(x.name for x in variables)
    return {"several": f"[{inner} ...]", "tuple": f"[{inner}]", "rows": f"[[{inner}]]"}[kind]


# Rules.


def _linear(name: str, link: str) -> list[Rule]:
    return [
        Rule(name, (A, B), (Pattern(A, link, B),)),
        Rule(name, (A, B), (Pattern(A, link, C), RuleCall(name, (C, B)))),
    ]


def _left_linear(name: str, link: str) -> list[Rule]:
    return [
        Rule(name, (A, B), (Pattern(A, link, B),)),
        Rule(name, (A, B), (RuleCall(name, (A, C)), Pattern(C, link, B))),
    ]


def _twice(name: str, link: str) -> list[Rule]:
    return [
        Rule(name, (A, B), (Pattern(A, link, B),)),
        Rule(name, (A, B), (RuleCall(name, (A, C)), RuleCall(name, (C, B)))),
    ]


def _mutual(name: str, link: str) -> list[Rule]:
    other = f"{name}-even"
    return [
        Rule(name, (A, B), (Pattern(A, link, B),)),
        Rule(name, (A, B), (Pattern(A, link, C), RuleCall(other, (C, B)))),
        Rule(other, (A, B), (Pattern(A, link, C), RuleCall(name, (C, B)))),
    ]


def _mutual_twice(name: str, link: str) -> list[Rule]:
    other = f"{name}-even"
    return [
        Rule(name, (A, B), (Pattern(A, link, B),)),
        Rule(name, (A, B), (RuleCall(other, (A, C)), RuleCall(name, (C, B)))),
        Rule(other, (A, B), (RuleCall(name, (A, C)), RuleCall(name, (C, B)))),
    ]


def _helper(name: str, link: str) -> list[Rule]:
    other = f"{name}-step"
    return [
        Rule(other, (A, B), (Pattern(A, link, B),)),
        Rule(name, (A, B), (RuleCall(other, (A, B)),)),
        Rule(name, (A, B), (RuleCall(other, (A, C)), RuleCall(name, (C, B)))),
    ]


def _same_generation(name: str, link: str) -> list[Rule]:
    return [
        Rule(name, (A, B), (Pattern(C, link, A), Pattern(C, link, B))),
        Rule(name, (A, B), (Pattern(C, link, A), RuleCall(name, (C, D)), Pattern(D, link, B))),
    ]


def _counted(name: str, link: str) -> list[Rule]:
    """Distances, as far as they are bounded."""
    x, y = NUMBERS
    return [
        Rule(name, (A, x), (Pattern(A, ":size", x),)),
        Rule(
            name,
            (A, y),
            (RuleCall(name, (B, x)), Pattern(B, link, A), Call("<", (x, 6)), Call("inc", (x,), y)),
        ),
    ]


def _unreached(name: str, link: str) -> list[Rule]:
    inner = f"{name}-path"
    return [
        *_linear(inner, link),
        Rule(
            name,
            (A, B),
            (
                Pattern(A, ":color", BLANK),
                Pattern(B, ":color", BLANK),
                Not((RuleCall(inner, (A, B)),)),
            ),
        ),
    ]


_FAMILIES: Sequence[Callable[[str, str], list[Rule]]] = (
    _linear, _left_linear, _twice, _mutual, _mutual_twice, _helper, _same_generation, _counted,
    _unreached,
)  # fmt: skip


class Cases:
    """A stream of random queries."""

    def __init__(self, chance: random.Random, entities: int) -> None:
        self._chance = chance
        self._entities = entities
        self._rules: list[Rule] = []

    def query(self) -> Query:
        chance = self._chance
        self._rules = self._program() if chance.random() < 0.6 else []
        given = self._inputs() if chance.random() < 0.4 else ()
        known = [x for binding, _ in given for x in _variables_of(binding)]
        where = self._body(chance.randint(1, 3), known, calls_rules=True)
        bound = sorted({*map(Var, _bound_by(where)), *known})
        if not bound:
            return self.query()
        where = [*where, *self._more(bound)]
        find, form, with_ = self._shown(bound)
        order = list(where)
        if chance.random() < 0.3:
            chance.shuffle(order)
        return Query(
            find, tuple(order), tuple(self._rules), given=tuple(given), form=form, with_=with_
        )

    # Rules

    def _program(self) -> list[Rule]:
        chance = self._chance
        if chance.random() < 0.6:
            return chance.choice(_FAMILIES)("r", chance.choice(LINKS))
        return self._random_rules()

    def _random_rules(self) -> list[Rule]:
        """Layers of rules; a branch calls those of its layer and of those before, and denies those
        before."""
        chance = self._chance
        self._rules = []
        for layer in range(chance.randint(1, 2)):
            before = list(self._rules)
            heads = {
                f"r{layer}{letter}": chance.choice(((A, B), (A, B), (A,)))
                for letter in "pq"[: chance.randint(1, 2)]
            }
            self._rules += [Rule(name, head, ()) for name, head in heads.items()]
            made: list[Rule] = []
            for name, head in heads.items():
                for branch in range(chance.randint(1, 3)):
                    made.append(self._branch(name, head, recursive=branch > 0))
            self._rules = [*before, *made]
        return self._rules

    def _branch(self, name: str, head: tuple[Var, ...], *, recursive: bool) -> Rule:
        chance = self._chance
        layers, self._rules = (
            self._rules,
            self._rules if recursive else [rule for rule in self._rules if rule.body],
        )
        body = self._body(chance.randint(1, 3), [], calls_rules=True)
        self._rules = [rule for rule in layers if rule.body]
        missing = [x for x in head if x.name not in _bound_by(body)]
        body += [Pattern(x, chance.choice(LINKS), chance.choice((C, D, BLANK))) for x in missing]
        if chance.random() < 0.25:
            body += self._denied([Var(name) for name in sorted(_bound_by(body))])
        self._rules = layers
        return Rule(name, head, tuple(body))

    # Clauses

    def _body(self, count: int, known: Sequence[Var], *, calls_rules: bool) -> list[Clause]:
        return [self._positive(calls_rules) for _ in range(count)]

    def _positive(self, calls_rules: bool) -> Clause:
        chance = self._chance
        if calls_rules and self._rules and chance.random() < 0.6:
            return self._rule_call()
        return self._pattern()

    def _rule_call(self) -> RuleCall:
        chance = self._chance
        rule = chance.choice(self._rules)
        args = tuple([self._argument(x) for x in rule.head])
        return RuleCall(rule.name, args)

    def _argument(self, head: Var) -> Term:
        chance = self._chance
        if head in NUMBERS:
            return chance.choice((*NUMBERS, chance.randrange(6), BLANK))
        return chance.choice((*ENTITIES, *ENTITIES, chance.randint(1, self._entities), BLANK))

    def _pattern(self) -> Pattern:
        chance = self._chance
        entity = chance.choice((*ENTITIES, *ENTITIES, chance.randint(1, self._entities)))
        attribute = chance.choice((*LINKS, *SCHEMA))
        plain = attribute in LINKS
        value: Term = chance.choice(
            ENTITIES if plain else NUMBERS if attribute == ":size" else TEXTS
        )
        match chance.randrange(8):
            case 0:
                value = BLANK
            case 1:
                value = self._constant(attribute)
        return Pattern(entity, attribute, value)

    def _constant(self, attribute: str) -> Any:
        chance = self._chance
        if attribute in LINKS:
            return chance.randint(1, self._entities)
        if attribute == ":size":
            return chance.randrange(6)
        return chance.choice(COLORS) if attribute == ":color" else f"t{chance.randrange(4)}"

    def _more(self, bound: Sequence[Var]) -> list[Clause]:
        """Clauses on what others bind: comparisons, `not`, `or` and their joins."""
        chance = self._chance
        found: list[Clause] = []
        numbers = [x for x in bound if x in NUMBERS]
        if numbers and chance.random() < 0.4:
            other = chance.choice((*numbers, chance.randrange(6)))
            found.append(
                Call(chance.choice(("<", ">=", "not=", "=")), (chance.choice(numbers), other))
            )
        if numbers and chance.random() < 0.15:
            found.append(Call(chance.choice(("+", "-", "*")), (numbers[0], 1), Var("?z")))
        if chance.random() < 0.35:
            found += self._denied(bound)
        if chance.random() < 0.35:
            found.append(self._or(bound))
        return found

    def _inner(self, shared: Var) -> list[Clause]:
        """Clauses that have a variable."""
        chance = self._chance
        clauses = self._body(chance.randint(1, 2), [], calls_rules=True)
        if shared.name in _bound_by(clauses):
            return clauses
        return [*clauses[1:], self._about(shared)]

    def _about(self, x: Var) -> Clause:
        chance = self._chance
        if x in NUMBERS:
            return Pattern(chance.choice(ENTITIES), ":size", x)
        if x in TEXTS:
            return Pattern(chance.choice(ENTITIES), chance.choice((":color", ":tag")), x)
        link = chance.choice(LINKS)
        other = chance.choice((*ENTITIES, BLANK, chance.randint(1, self._entities)))
        return (
            Pattern(x, link, other)
            if chance.random() < 0.6 or other == BLANK
            else Pattern(other, link, x)
        )

    def _denied(self, bound: Sequence[Var]) -> list[Clause]:
        chance = self._chance
        shared = [x for x in bound if x.name != "?z"]
        if not shared:
            return []
        x = chance.choice(shared)
        inner = tuple(self._inner(x))
        if chance.random() < 0.5:
            return [Not(inner)]
        join = {
            x,
            *[each for each in shared if each.name in _bound_by(inner) and chance.random() < 0.4],
        }
        return [Not(inner, tuple(sorted(join)))]

    def _or(self, bound: Sequence[Var]) -> Clause:
        chance = self._chance
        x = chance.choice([each for each in bound if each.name != "?z"] or list(bound))
        if chance.random() < 0.4:
            branches = tuple([(self._about_only(x),) for _ in range(chance.randint(1, 3))])
            return Or(branches)
        join = [x]
        if chance.random() < 0.5:
            join.append(chance.choice([each for each in ENTITIES if each != x]))
        branches = tuple([tuple(self._binding_all(join)) for _ in range(chance.randint(1, 3))])
        required = (x,) if len(join) > 1 and chance.random() < 0.3 else ()
        return Or(branches, tuple(join), required)

    def _about_only(self, x: Var) -> Clause:
        """A clause with one variable, so that branches have the same."""
        chance = self._chance
        if x in NUMBERS or x in TEXTS:
            attribute = ":size" if x in NUMBERS else chance.choice((":color", ":tag"))
            return Pattern(chance.randint(1, self._entities), attribute, x)
        attribute = chance.choice(tuple(SCHEMA))
        return Pattern(x, attribute, chance.choice((BLANK, self._constant(attribute))))

    def _binding_all(self, join: Sequence[Var]) -> list[Clause]:
        clauses = self._inner(join[0])
        missing = [x for x in join if x.name not in _bound_by(clauses)]
        return [*clauses, *[self._about(x) for x in missing]]

    # The rest

    def _inputs(self) -> list[tuple[Any, Any]]:
        chance = self._chance

        def entity() -> int:
            return chance.randint(1, self._entities)

        match chance.randrange(6):
            case 0 | 1:
                return [(chance.choice(ENTITIES), entity())]
            case 2:
                return [
                    (("several", chance.choice(ENTITIES)), sorted({entity() for _ in range(3)}))
                ]
            case 3:
                return [(("tuple", A, B), [entity(), entity()])]
            case 4:
                rows = sorted({(entity(), entity()) for _ in range(3)})
                return [(("rows", A, B), [list(row) for row in rows])]
            case _:
                return [(chance.choice(NUMBERS), chance.randrange(6)), (D, entity())]

    def _shown(self, bound: Sequence[Var]) -> tuple[tuple[Any, ...], str, tuple[Var, ...]]:
        chance = self._chance
        shown = chance.sample(list(bound), min(len(bound), chance.randint(1, 2)))
        match chance.randrange(10):
            case 0:
                return (shown[0],), "collection", ()
            case 1:
                return (shown[0],), "scalar", ()
            case 2:
                return tuple(shown), "tuple", ()
            case 3 | 4:
                of = chance.choice(list(bound))
                names = ["count", "count-distinct"]
                if of in NUMBERS:
                    names += ["sum", "min", "max", "avg"]
                keys = [x for x in shown if x != of][:1] if chance.random() < 0.6 else []
                rest = [x for x in bound if x != of and x not in keys]
                more = tuple(rest[:1]) if chance.random() < 0.5 else ()
                return (*keys, Aggregate(chance.choice(names), of)), "relation", more
            case _:
                return tuple(shown), "relation", ()


def _variables_of(binding: Any) -> list[Var]:
    return [binding] if isinstance(binding, Var) else list(binding[1:])


def _bound_by(clauses: Iterable[Clause]) -> set[str]:
    """The variables that patterns and rule calls bind."""
    found: set[str] = set()
    for clause in clauses:
        match clause:
            case Pattern(e, _, v):
                terms: Sequence[Any] = (e, v)
            case RuleCall(_, args):
                terms = args
            case _:
                terms = ()
        found |= {x.name for x in terms if isinstance(x, Var) and x != BLANK}
    return found


def smaller(query: Query) -> Iterable[Query]:
    """The query with one part less, for each part that it can lack."""
    for at in range(len(query.where)):
        yield replace(query, where=query.where[:at] + query.where[at + 1 :])
    for at in range(len(query.rules)):
        yield replace(query, rules=query.rules[:at] + query.rules[at + 1 :])
    for at, rule in enumerate(query.rules):
        for place in range(len(rule.body)):
            less = replace(rule, body=rule.body[:place] + rule.body[place + 1 :])
            if less.body and {x.name for x in less.head} <= _bound_by(less.body):
                yield replace(query, rules=(*query.rules[:at], less, *query.rules[at + 1 :]))
    if query.with_:
        yield replace(query, with_=())
    for at, clause in enumerate(query.where):
        for less in _smaller(clause):
            yield replace(query, where=(*query.where[:at], less, *query.where[at + 1 :]))


def _smaller(clause: Clause) -> Iterable[Clause]:
    match clause:
        case Not(clauses, join) if len(clauses) > 1:
            for at in range(len(clauses)):
                yield Not(clauses[:at] + clauses[at + 1 :], join)
        case Or(branches, join, required):
            for at in range(len(branches)):
                if len(branches) > 1:
                    yield Or(branches[:at] + branches[at + 1 :], join, required)
        case _:
            return
