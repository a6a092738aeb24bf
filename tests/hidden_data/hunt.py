"""Asks both worlds the same and compares every reply.

A database that answers a statement in another order each time answers it so in one world, too. So
what differs counts if each world gives its own reply again and again, from databases of their own.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import NamedTuple

from hidden_data import worlds
from hidden_data.reads import Read, Reads
from hidden_data.roads import World, settled, world

AGAIN = 3
"""Further databases of each world in which what differs must differ again."""


WITH_PARAMETERS = ("core", "wire prepared")
"""The roads that take values of placeholders."""


class Find(NamedTuple):
    """A reply that tells of what is hidden."""

    engine: str
    road: str
    read: str
    first: str
    second: str


class Tally(NamedTuple):
    """What was asked. `answered` came with rows and `refused` with an error; `unsteady` differs
    from one database to the next without any difference in what is hidden."""

    engine: str
    asked: int
    answered: int
    refused: int
    unsteady: int
    finds: tuple[Find, ...]

    def as_dict(self) -> dict[str, object]:
        return {**self._asdict(), "finds": [find._asdict() for find in self.finds]}


def around(first: str, second: str) -> tuple[str, str]:
    """The parts of two replies where they begin to differ."""
    at = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    return first[max(0, at - 80) : at + 160], second[max(0, at - 80) : at + 160]


class Hunt:
    """Two worlds of some engines, and further copies of both."""

    def __init__(
        self, engines: Sequence[str], seed: int, directory: Path, program: Sequence[str] | None
    ) -> None:
        self._engines = engines
        self._seed = seed
        self._stack = ExitStack()
        self._directory = directory
        self._program = program
        self.first = self._world("a", 0)
        self.second = self._world("b", 0)
        self._others: list[tuple[World, World]] = []

    def close(self) -> None:
        self._stack.close()

    def _world(self, name: str, number: int) -> World:
        place = self._directory / str(number) / f"world_{name}"
        place.mkdir(parents=True)
        urls = {each: worlds.make(each, place, name, self._seed) for each in self._engines}
        return self._stack.enter_context(world(place, urls, self._program))

    def _copies(self) -> Iterator[tuple[World, World]]:
        for number in range(1, AGAIN + 1):
            if len(self._others) < number:
                self._others.append((self._world("a", number), self._world("b", number)))
            yield self._others[number - 1]

    def ask(self, engine: str, count: int, most_finds: int) -> Tally:
        """Compare `count` generated reads, each by one road, and then what the product says of
        tables by itself. Ends with `most_finds`."""
        random = Random(f"{self._seed}{engine}")
        reads = Reads(random, engine)
        roads = [each for each in self.first.statements if each != "postgres" or engine == each]
        answered = refused = unsteady = 0
        finds: list[Find] = []
        for number in range(count):
            read, road = reads.read(), roads[number % len(roads)]
            if read.params and road not in WITH_PARAMETERS:
                road = WITH_PARAMETERS[number % 2]
            first, second = (
                settled(each.statements[road](engine, read)) for each in (self.first, self.second)
            )
            if is_refused(first):
                refused += 1
            else:
                answered += 1
            if first == second:
                continue
            if self._is_steady(engine, road, read, first, second):
                finds.append(Find(engine, road, repr(read), *around(first, second)))
                if len(finds) == most_finds:
                    return Tally(engine, number + 1, answered, refused, unsteady, tuple(finds))
            else:
                unsteady += 1
        said = dict(self.second.metadata(engine))
        for name, first in self.first.metadata(engine):
            if settled(first) != settled(said[name]):
                finds.append(Find(engine, name, "", *around(settled(first), settled(said[name]))))
        return Tally(engine, count, answered, refused, unsteady, tuple(finds))

    def _is_steady(self, engine: str, road: str, read: Read, first: str, second: str) -> bool:
        for one, other in self._copies():
            if settled(one.statements[road](engine, read)) != first:
                return False
            if settled(other.statements[road](engine, read)) != second:
                return False
        return True


def is_refused(reply: str) -> bool:
    """Whether a reply is an error, of any road."""
    return any(
        mark in reply[:400]
        for mark in ('"isError": true', '"code": -', '"state": "failed"', '"state": "refused"')
    ) or (reply.startswith(("('", "4", "5")) and not reply.startswith("('SELECT"))


def hunt(
    engines: Sequence[str],
    count: int,
    seed: int,
    program: Sequence[str] | None = None,
    most_finds: int = sys.maxsize,
) -> Iterator[Tally]:
    """Hunt on some engines, one after the other; `program` is what Python runs as the server. On
    each engine it ends with `most_finds`."""
    with tempfile.TemporaryDirectory(prefix="hidden-") as directory:
        chase = Hunt(engines, seed, Path(directory), program)
        try:
            for engine in engines:
                yield chase.ask(engine, count, most_finds)
        finally:
            chase.close()
