"""Plausible mistakes of a model in accepted statements: how many go unnoticed.

A mistake counts if its statement runs and gives other rows. It is noticed if the answer refuses it,
or says of it what it does not say of the accepted statement. `silent_before` is how many would go
unnoticed without the checks in `NEW`, for comparison.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from bench import defog
from tidegate.sql.parse import parse

KINDS = ("no condition", "wrong case", "misspelt", "LIKE in wrong case", "wrong join column")
NEW = frozenset({"unconnected", "doubtful_join", "missing_value"})
"""Checks that were not there when the mistakes were first tried."""
_MOST_OF_KIND = 2
_TOKENS = 10_000


def mistakes(
    sql: str, database: defog.Database, dialect: str, chance: random.Random
) -> Iterator[tuple[str, str]]:
    """Statements with one mistake each, and its kind."""
    made: Counter[str] = Counter()
    tree: Any = parse(sql, dialect, _TOKENS)
    for kind, number in _places(tree):
        if made[kind] >= _MOST_OF_KIND:
            continue
        copy = tree.copy()
        node = _nodes(copy, kind)[number]
        if _spoil(node, kind, copy, database, chance):
            text = copy.sql(dialect)
            if text != tree.sql(dialect):
                made[kind] += 1
                yield kind, text


def _places(tree: Any) -> list[tuple[str, int]]:
    return [(kind, number) for kind in KINDS for number, _ in enumerate(_nodes(tree, kind))]


def _nodes(tree: Any, kind: str) -> list[Any]:
    """Where a mistake of a kind can be made."""
    from sqlglot import exp

    if kind in ("no condition", "wrong join column"):
        return [
            equal
            for equal in tree.find_all(exp.EQ)
            if isinstance(equal.left, exp.Column)
            and isinstance(equal.right, exp.Column)
            and equal.left.table != equal.right.table
        ]
    likes = kind == "LIKE in wrong case"
    found: list[Any] = []
    for literal in tree.find_all(exp.Literal):
        in_like = isinstance(literal.parent, exp.Like)
        compared = isinstance(literal.parent, exp.EQ | exp.NEQ | exp.In | exp.Like)
        others = list(literal.parent.find_all(exp.Column)) if compared else []
        if literal.is_string and others and in_like == likes and _letters(literal.name) >= 3:
            found.append(literal)
    return found


def _letters(text: str) -> int:
    return sum(each.isalpha() for each in text)


def _spoil(
    node: Any, kind: str, tree: Any, database: defog.Database, chance: random.Random
) -> bool:
    from sqlglot import exp

    if kind == "no condition":
        join = node.parent
        if isinstance(join, exp.Join) and not join.side and chance.random() < 0.5:
            join.set("on", None)
            join.set("kind", chance.choice(["CROSS", None]))
            return True
        node.replace(exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(1)))
    elif kind == "wrong join column":
        side = chance.choice([node.left, node.right])
        others = _other_columns(side, tree, database)
        if not others:
            return False
        side.this.replace(exp.to_identifier(chance.choice(others)))
    elif kind == "misspelt":
        node.replace(exp.Literal.string(_misspelt(node.name, chance)))
    else:
        text = node.name
        node.replace(exp.Literal.string(text.lower() if text != text.lower() else text.upper()))
    return True


def _misspelt(text: str, chance: random.Random) -> str:
    """The text with one letter left out, twice, another one or in another place."""
    at = chance.choice([i for i in range(1, len(text)) if text[i].isalpha()] or [len(text) // 2])
    return chance.choice(
        [
            text[:at] + text[at + 1 :],
            text[:at] + text[at] + text[at:],
            text[:at] + ("x" if text[at] != "x" else "y") + text[at + 1 :],
            text[: at - 1] + text[at] + text[at - 1] + text[at + 1 :],
        ]
    )


def _other_columns(side: Any, tree: Any, database: defog.Database) -> list[str]:
    """Other columns of the table of a column that may be mistaken for it: of a type alike."""
    from sqlglot import exp

    names = {
        each.alias_or_name.lower(): each.name.lower()
        for each in tree.find_all(exp.Table)
    }  # fmt: skip
    called = names.get(side.table.lower())
    for table in database.tables:
        if table.name.lower() == called:
            own = [each for each in table.columns if each.name.lower() == side.name.lower()]
            return [
                each.name
                for each in table.columns
                if own and each is not own[0] and _is_text(each.type) == _is_text(own[0].type)
            ]
    return []


def _is_text(type_name: str) -> bool:
    return "char" in type_name.lower() or "text" in type_name.lower()


class Tally:
    """Counts what became of the mistakes."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.silent: Counter[str] = Counter()
        self.before: Counter[str] = Counter()
        self.missed: list[str] = []

    def add(self, kind: str, sql: str, said: Sequence[str], usual: Sequence[str]) -> None:
        """Count a mistake that ran and gave other rows: `said` are the names of its checks,
        `usual` those of the accepted statement."""
        new = set(said) - set(usual)
        self.made[kind] += 1
        self.before[kind] += not new - NEW
        if not new:
            self.silent[kind] += 1
            self.missed.append(f"{kind}: {sql}")

    def found(self) -> dict[str, Any]:
        before = sum(self.before.values())
        return {
            "made": sum(self.made.values()),
            "silent_before": before,
            "silent": sum(self.silent.values()),
            "still_silent": sum(self.silent.values()) / max(1, before),
            "by_kind": {
                kind: f"{self.silent[kind]} of {self.made[kind]}, before {self.before[kind]}"
                for kind in KINDS
            },
            "missed": self.missed[:30],
        }
