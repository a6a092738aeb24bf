"""Random queries have the answers that their facts have, found by a plain search over lists."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.datalog import Datalog, Opened

ENTITIES = 40
QUERIES = 400

SCHEMA: dict[str, Any] = {
    ":name": {":db/valueType": ":db.type/string"},
    ":age": {":db/valueType": ":db.type/long"},
    ":tag": {":db/valueType": ":db.type/string", ":db/cardinality": ":db.cardinality/many"},
    ":boss": {":db/valueType": ":db.type/ref"},
    ":friend": {":db/valueType": ":db.type/ref", ":db/cardinality": ":db.cardinality/many"},
}
VARIABLES = {
    ":name": ["?n", "?t"],
    ":age": ["?x", "?y"],
    ":tag": ["?t", "?n"],
    ":boss": ["?e", "?f", "?g"],
    ":friend": ["?e", "?f", "?g"],
}
COMPARISONS = {
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "not=": lambda a, b: a != b,
}

Pattern = tuple[Any, str, Any]
Fact = tuple[int, str, Any]


class Case:
    """A query of patterns, comparisons and `not`, as text and as parts."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.patterns = [self._pattern() for _ in range(chance.randint(1, 4))]
        bound = sorted({x for e, _, v in self.patterns for x in (e, v) if _is_variable(x)})
        numbers = [x for x in bound if x in ("?x", "?y")]
        self.calls: list[tuple[str, str, Any]] = []
        if numbers and chance.random() < 0.5:
            other = chance.choice([*numbers, chance.randrange(8)])
            if other != numbers[0]:
                self.calls.append((chance.choice(sorted(COMPARISONS)), numbers[0], other))
        refused = self._pattern()
        shared = set(bound) & {refused[0], refused[2]}
        self.refused = refused if shared and chance.random() < 0.4 else None
        self.find = bound[: chance.randint(1, 2)]

    def _pattern(self) -> Pattern:
        chance = self._chance
        attribute = chance.choice(sorted(SCHEMA))
        value = {
            0: None,
            1: "_",
            2: _constant(attribute, chance),
        }.get(chance.randrange(5), chance.choice(VARIABLES[attribute]))
        return chance.choice(["?e", "?f", "?g"]), attribute, value

    @property
    def text(self) -> str:
        clauses = [_written(pattern) for pattern in self.patterns]
        clauses += [f"[({name} {a} {b})]" for name, a, b in self.calls]
        if self.refused is not None:
            clauses.append(f"(not {_written(self.refused)})")
        return f"[:find {' '.join(self.find)} :where {' '.join(clauses)}]"

    def answer(self, facts: list[Fact]) -> set[tuple[Any, ...]]:
        found: set[tuple[Any, ...]] = set()
        for known in _solutions(self.patterns, {}, facts):
            if all(
                COMPARISONS[name](known[a], known.get(b, b)) for name, a, b in self.calls
            ) and not (self.refused and any(_solutions([self.refused], known, facts))):
                found.add(tuple([known[name] for name in self.find]))
        return found


def _is_variable(x: Any) -> bool:
    return isinstance(x, str) and x.startswith("?")


def _constant(attribute: str, chance: random.Random) -> Any:
    match attribute:
        case ":name":
            return f"n{chance.randrange(6)}"
        case ":tag":
            return f"t{chance.randrange(5)}"
        case ":age":
            return chance.randrange(8)
        case _:
            return chance.randint(1, ENTITIES)


def _written(pattern: Pattern) -> str:
    entity, attribute, value = pattern
    if value is None:
        return f"[{entity} {attribute}]"
    plain = isinstance(value, int) or value == "_" or _is_variable(value)
    return f"[{entity} {attribute} {value}]" if plain else f'[{entity} {attribute} "{value}"]'


def _solutions(
    patterns: list[Pattern], known: dict[str, Any], facts: list[Fact]
) -> Iterator[dict[str, Any]]:
    if not patterns:
        yield known
        return
    (entity, attribute, value), *rest = patterns
    for fact in facts:
        if fact[1] != attribute:
            continue
        after: dict[str, Any] | None = known
        for term, found in ((entity, fact[0]), (value, fact[2])):
            if after is None or term is None or term == "_":
                continue
            if not _is_variable(term):
                after = after if term == found else None
            elif term in after:
                after = after if after[term] == found else None
            else:
                after = {**after, term: found}
        if after is not None:
            yield from _solutions(rest, after, facts)


@pytest.fixture
def facts(datalog: Datalog, tmp_path: Path) -> tuple[Opened, list[Fact]]:
    chance = random.Random(20)
    source = datalog.open(tmp_path / "facts", "write")
    source.ask("open_database", create=True, schema=SCHEMA)
    entities: list[dict[str, Any]] = []
    for number in range(1, ENTITIES + 1):
        entity: dict[str, Any] = {":db/id": number}
        for attribute, share in (
            *((":name", 0.8), (":age", 0.6), (":tag", 0.5)),
            *((":boss", 0.5), (":friend", 0.4)),
        ):
            if chance.random() < share:
                many = attribute in (":tag", ":friend")
                values = {_constant(attribute, chance) for _ in range(chance.randint(1, 3))}
                entity[attribute] = sorted(values) if many else min(values)
        entities.append(entity)
    source.ask("transact", txData=entities)
    found = source.ask("datoms", index="eav", items=10_000)
    return source, [(each["e"], each["a"], each["v"]) for each in found]


def test_random_queries_have_the_answers_of_their_facts(facts: tuple[Opened, list[Fact]]) -> None:
    source, known = facts
    chance = random.Random(4)
    answered = 0
    for _ in range(QUERIES):
        case = Case(chance)
        expected = case.answer(known)
        found = source.query(case.text, items=100_000)
        assert {tuple(row) for row in found} == expected, case.text
        answered += bool(expected)
    assert answered > QUERIES / 3
