"""Random pull patterns, and what an entity looks like by them, found in a list of facts."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from products.datalog.oracle.evaluator import Fact

SCHEMA: dict[str, Any] = {
    ":edge": {":db/valueType": ":db.type/ref", ":db/cardinality": ":db.cardinality/many"},
    ":next": {":db/valueType": ":db.type/ref"},
    ":part": {
        ":db/valueType": ":db.type/ref",
        ":db/cardinality": ":db.cardinality/many",
        ":db/isComponent": True,
    },
    ":size": {":db/valueType": ":db.type/long"},
    ":tag": {":db/valueType": ":db.type/string", ":db/cardinality": ":db.cardinality/many"},
}
MANY = frozenset(name for name, its in SCHEMA.items() if ":db/cardinality" in its)
REFS = (":edge", ":next", ":part")
PART = ":part"


@dataclass(frozen=True)
class Attribute:
    """`back`: the way back along a reference. `deep`: a pattern for what is referred to, a number
    of repetitions, or `...`."""

    name: str
    back: bool = False
    limit: int | None = None
    default: Any = None
    called: str | None = None
    deep: Pattern | int | str | None = None

    @property
    def key(self) -> str:
        return self.called or self.shown

    @property
    def shown(self) -> str:
        return f":_{self.name[1:]}" if self.back else self.name


@dataclass(frozen=True)
class Pattern:
    attributes: tuple[Attribute, ...]
    all: bool = False

    @property
    def text(self) -> str:
        return f"[{' '.join([*(['*'] if self.all else []), *map(_written, self.attributes)])}]"


def _written(attribute: Attribute) -> str:
    options = [
        *([f":limit {attribute.limit}"] if attribute.limit is not None else []),
        *([f":default {attribute.default}"] if attribute.default is not None else []),
        *([f":as {attribute.called}"] if attribute.called is not None else []),
    ]
    name = f"[{attribute.shown} {' '.join(options)}]" if options else attribute.shown
    match attribute.deep:
        case None:
            return name
        case Pattern() as inner:
            return f"{{{name} {inner.text}}}"
        case depth:
            return f"{{{name} {depth}}}"


class Pulls:
    """Entities by patterns. A repeated pattern shows each entity that it leads to once, the first
    one again, and then its number; an attribute that is named is no more among `*`."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._of: dict[int, dict[str, list[Any]]] = {}
        self._to: dict[tuple[int, str], list[int]] = {}
        for e, a, v in facts:
            self._of.setdefault(e, {}).setdefault(a, []).append(v)
            if a in REFS:
                self._to.setdefault((v, a), []).append(e)
        for its in self._of.values():
            for values in its.values():
                values.sort()

    def pull(self, entity: int, pattern: Pattern) -> dict[str, Any] | None:
        return self._pulled(entity, pattern, {}, frozenset()) or None

    def _pulled(
        self, entity: int, pattern: Pattern, left: Mapping[str, int], above: frozenset[int]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        its = self._of.get(entity, {})
        if pattern.all and its:
            named = {each.name for each in pattern.attributes if not each.back}
            whole = self._whole(entity, frozenset())
            found = {name: value for name, value in whole.items() if name not in named}
        for each in pattern.attributes:
            value = self._value(entity, each, pattern, left, above)
            if value is None:
                value = each.default
            if value is not None:
                found[each.key] = value
        return found

    def _whole(self, entity: int, above: frozenset[int]) -> dict[str, Any]:
        """All of an entity, with its parts."""
        found: dict[str, Any] = {":db/id": entity}
        for name, values in self._of.get(entity, {}).items():
            shown = [self._referred(name, each, above | {entity}) for each in values]
            found[name] = shown if name in MANY else shown[0]
        return found

    def _referred(self, name: str, value: Any, above: frozenset[int]) -> Any:
        if name == PART and value not in above:
            return self._whole(value, above)
        return {":db/id": value} if name in REFS else value

    def _value(
        self,
        entity: int,
        each: Attribute,
        pattern: Pattern,
        left: Mapping[str, int],
        above: frozenset[int],
    ) -> Any:
        values: list[Any] = (
            sorted(self._to.get((entity, each.name), []))
            if each.back
            else self._of.get(entity, {}).get(each.name, [])
        )
        if not values:
            return None
        one = each.name == PART if each.back else each.name not in MANY
        values = values[: each.limit] if each.limit is not None and not one else values
        match each.deep:
            case None:
                shown = [
                    {":db/id": value}
                    if each.back
                    else self._referred(each.name, value, frozenset({entity}))
                    for value in values
                ]
            case Pattern() as inner:
                shown = [
                    it for value in values if (it := self._pulled(value, inner, {}, frozenset()))
                ]
            case depth:
                rest = left.get(each.shown, depth if isinstance(depth, int) else 1_000)
                below = {**left, each.shown: rest - 1}
                shown = [
                    {":db/id": value}
                    if value in above
                    else self._pulled(value, pattern, below, above | {value})
                    for value in values
                    if value in above or rest > 0
                ]
                shown = [it for it in shown if it]
        if not shown:
            return None
        return shown[0] if one else shown


def random_facts(chance: random.Random, count: int) -> list[Fact]:
    """A graph; parts are a tree, and the way along `:next` may be a circle."""
    found: list[Fact] = []
    for e in range(1, count + 1):
        found.append((e, ":size", chance.randrange(9)))
        if chance.random() < 0.7:
            found.append((e, ":next", chance.randint(1, count)))
        for name, most, values in (
            (":edge", 3, range(1, count + 1)),
            (":tag", 2, [f"t{n}" for n in range(5)]),
        ):
            found += [
                (e, name, v) for v in sorted(chance.sample(list(values), chance.randint(0, most)))
            ]
        if e > 1 and chance.random() < 0.5:
            found.append((chance.randint(1, e - 1), PART, e))
    return found


def random_pattern(chance: random.Random, depth: int = 2) -> Pattern:
    names = chance.sample(list(SCHEMA), chance.randint(1, 3))
    attributes = [_random_attribute(chance, name, depth) for name in names]
    if not any(isinstance(each.deep, Pattern | None) and not each.back for each in attributes):
        attributes.append(Attribute(":size"))
    everything = chance.random() < 0.15
    repeated = any(isinstance(each.deep, int | str) for each in attributes)
    if everything or repeated:
        # Where a repeated pattern, `*` and parts are within each other, no document says what of
        # it has been shown already.
        attributes = [
            replace(each, deep=None) if isinstance(each.deep, Pattern) or everything else each
            for each in attributes
            if not repeated or everything or each.name != PART
        ]
    unique = {each.key: each for each in attributes}
    return Pattern(tuple(unique.values()), all=everything)


def _random_attribute(chance: random.Random, name: str, depth: int) -> Attribute:
    if name not in REFS:
        limit = chance.randint(1, 2) if name in MANY and chance.random() < 0.3 else None
        default = chance.choice((None, None, 7)) if name == ":size" else None
        called = ":renamed" if chance.random() < 0.1 else None
        return Attribute(name, limit=limit, default=default, called=called)
    back = chance.random() < 0.25
    deep: Pattern | int | str | None = None
    if depth and chance.random() < 0.5:
        deep = random_pattern(chance, depth - 1)
    elif name == ":next" and not back and depth == 2 and chance.random() < 0.5:
        deep = chance.choice((1, 2, 3, "..."))
    limit = (
        chance.randint(1, 2) if name == ":edge" and deep is None and chance.random() < 0.3 else None
    )
    return Attribute(name, back=back, limit=limit, deep=deep)


def entities_of(facts: Iterable[Fact]) -> list[dict[str, Any]]:
    """Facts as transaction data."""
    found: dict[int, dict[str, Any]] = {}
    for e, a, v in facts:
        entity = found.setdefault(e, {":db/id": e})
        if a in MANY:
            entity.setdefault(a, []).append(v)
        else:
            entity[a] = v
    return list(found.values())
