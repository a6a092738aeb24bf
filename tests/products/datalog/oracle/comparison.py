"""Asks Datalevin, through our worker, what the evaluator answers too, and keeps what differs."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from products.datalog.oracle import pulls
from products.datalog.oracle.cases import SCHEMA, Cases, Query, facts_of, random_entities, smaller
from products.datalog.oracle.evaluator import Fact
from support.datalog import Datalog, Opened
from tidegate.errors import TidegateError
from tidegate.products.datalog.language.query import judge_query
from tidegate.products.datalog.language.reader import read

PER_DATABASE = 200
ENTITIES = 9
REFUSAL = "Datalevin answers rules like these wrongly"
"""What an error says of a query that neither Datalevin nor we answer."""


@dataclass
class Summary:
    asked: int = 0
    answered: int = 0
    refused: int = 0
    finds: list[dict[str, Any]] = field(default_factory=list)


def compare(datalog: Datalog, root: Path, count: int, seed: int) -> Summary:
    """Ask `count` random queries."""
    summary = Summary()
    for part, first in enumerate(range(0, count, PER_DATABASE)):
        chance = random.Random(f"{seed}-{part}")
        entities = random_entities(chance, ENTITIES)
        with tempfile.TemporaryDirectory(dir=root) as folder:
            source = datalog.open(Path(folder) / "graph", "write")
            source.ask("open_database", create=True, schema=SCHEMA)
            source.ask("transact", txData=entities)
            facts = facts_of(entities)
            cases = Cases(chance, ENTITIES)
            for _ in range(min(PER_DATABASE, count - first)):
                _one(source, cases.query(), facts, summary)
            source.close()
    return summary


def compare_pulls(datalog: Datalog, root: Path, count: int, seed: int) -> Summary:
    """Ask `count` random pulls."""
    summary = Summary()
    for part, first in enumerate(range(0, count, PER_DATABASE)):
        chance = random.Random(f"{seed}-{part}")
        facts = pulls.random_facts(chance, ENTITIES)
        with tempfile.TemporaryDirectory(dir=root) as folder:
            source = datalog.open(Path(folder) / "graph", "write")
            source.ask("open_database", create=True, schema=pulls.SCHEMA)
            source.ask("transact", txData=pulls.entities_of(facts))
            known = pulls.Pulls(facts)
            for _ in range(min(PER_DATABASE, count - first)):
                pattern, entity = pulls.random_pattern(chance), chance.randint(1, ENTITIES)
                expected = known.pull(entity, pattern)
                found = source.ask("pull", selector=pattern.text, eid=entity)
                summary.asked += 1
                summary.answered += bool(expected)
                if found != expected:
                    problem = f"found {found}, expected {expected}"
                    summary.finds.append(
                        {"pull": pattern.text, "eid": entity, "problem": problem, "facts": facts}
                    )
            source.close()
    return summary


def _one(
    source: Opened,
    query: Query,
    facts: list[Fact],
    summary: Summary,
) -> None:
    summary.asked += 1
    expected = query.answer(facts)
    problem = _problem(source, query, expected)
    if problem == "refused":
        summary.refused += 1
        return
    summary.answered += bool(expected)
    if problem is None:
        return
    query, problem = _shrunk(source, query, facts, problem)
    summary.finds.append(
        {
            "query": query.text,
            "inputs": query.inputs,
            "problem": problem,
            "facts": facts,
        }
    )


def _problem(source: Opened, query: Query, expected: Any) -> str | None:
    judge_query(read(query.text), query.inputs)
    try:
        found = source.query(query.text, *query.inputs, items=100_000)
    except TidegateError as error:
        return "refused" if REFUSAL in error.message else f"error: {error.message}"
    if query.agrees(expected, found):
        return None
    return f"found {_sorted(found)}, expected {_sorted(expected)}"


def _sorted(found: Any) -> Any:
    if not isinstance(found, Iterable) or isinstance(found, str):
        return found
    return sorted((tuple(row) if isinstance(row, list) else row for row in found), key=repr)


def _shrunk(
    source: Opened,
    query: Query,
    facts: list[Fact],
    problem: str,
) -> tuple[Query, str]:
    """A query with fewer parts that still differs; of an error, with an error like it."""
    while True:
        for less in smaller(query):
            try:
                if not less.is_bound:
                    continue
                expected = less.answer(facts)
                now = _problem(source, less, expected)
            except (KeyError, AssertionError, TidegateError):
                continue
            if now is not None and now[:5] == problem[:5] and now != "refused":
                query, problem = less, now
                break
        else:
            return query, problem
