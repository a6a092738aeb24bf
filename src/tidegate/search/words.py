"""Finds tables by words: a small index over one catalog, and the ranking of what it finds.

Pure. Knows identifiers (snake, camel, digits, plurals), prefixes, substrings, abbreviations and
foreign keys, and no meaning beyond that. A table's name weighs more than its columns, and those
more than comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import log
from typing import Generic, TypeVar

import msgspec

from tidegate.model.schema import Catalog, Table

DerivedT = TypeVar("DerivedT")

_NAME, _COLUMN, _COMMENT = 10.0, 4.0, 1.5
_EXACT, _PREFIX, _INSIDE = 1.0, 0.6, 0.35
_NEIGHBOR = 0.2
_ABBREVIATED = 0.4
_SHORTEST_INSIDE = 3
_LONGEST_ABBREVIATION = 5
_VOWELS = frozenset("aeiou")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_NOISE = frozenset(
    _WORD.findall(
        "a all an and are by column each every find for from get give has have how in is list many"
        " me of on or per show table that the their to what where which who with"
    )
)
_HUMP = re.compile(r"(?<=[a-zß-ÿ])(?=[A-ZÀ-Þ])|(?<=[A-ZÀ-Þ])(?=[A-ZÀ-Þ][a-zß-ÿ])")


class Match(msgspec.Struct, frozen=True):
    """A table that was found: `columns` are the names of those that matched, best first. `leads`:
    no table fits one of the words better."""

    table: Table
    score: float
    columns: tuple[str, ...] = ()
    leads: bool = False


def split(name: str) -> list[str]:
    """The words of an identifier, folded and without plurals: `OrderItems2` is order, item, 2."""
    return [stem(word) for word in parts(name)]


def parts(name: str) -> list[str]:
    """The words of an identifier as they are written, folded: `OrderItems2` is order, items, 2."""
    if not name.islower():
        name = _HUMP.sub(" ", name)
    return _WORD.findall(name.casefold())


def stem(word: str) -> str:
    """Takes a plural ending off a lower-case word, and nothing else."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    return word[:-1]


class Index:
    """The words of one catalog. Building costs about 1 µs per column; searching is read-only."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._weights: dict[str, dict[int, float]] = {}
        self._words_of: dict[str, list[str]] = {}
        for place, table in enumerate(catalog.tables):
            for word, weight in self._weigh(table).items():
                self._weights.setdefault(word, {})[place] = weight
        self._vocabulary = sorted(self._weights)
        self._abbreviations: dict[str, list[str]] = {}
        for word in self._vocabulary:
            if _SHORTEST_INSIDE <= len(word) <= _LONGEST_ABBREVIATION and word.isalpha():
                self._abbreviations.setdefault(word[0], []).append(word)
        self._text = "\n".join(("", *self._vocabulary, ""))
        self._neighbors = _neighbors(catalog.tables)
        self._has_neighbors = any(self._neighbors)
        names = sorted(enumerate(catalog.tables), key=lambda at: (len(at[1].name), at[1].name))
        self._order = {place: order for order, (place, _) in enumerate(names)}

    def search(
        self, words: str, limit: int = 10, most_with_columns: int | None = None
    ) -> tuple[list[Match], int]:
        """The best `limit` tables for `words`, best first, and how many there are in all. Of the
        first `most_with_columns` (all unless given) the columns that matched are named.

        Each word's best table comes before the others, so that two words find two tables.
        No words at all find nothing.
        """
        asked = list(dict.fromkeys(split(words)))
        wanted = [word for word in asked if word not in _NOISE] or asked
        alike = [self._alike(word) for word in wanted]
        hits = [self._score(meanings) for meanings in alike]
        scores: dict[int, float] = {}
        for hit in hits:
            for table, score in hit.items():
                scores[table] = scores.get(table, 0.0) + score
        scores = self._with_neighbors(scores)
        order = self._order
        ranked = sorted(scores, key=lambda table: (-scores[table], order[table]))
        leaders = _leaders(ranked, hits)
        best = leaders + [table for table in ranked[: limit + len(leaders)] if table not in leaders]
        meant = {word: score for meanings in reversed(alike) for word, score in meanings.items()}
        tables = self.catalog.tables
        found = [
            Match(
                tables[place],
                scores[place],
                self._columns(tables[place], meant)
                if most_with_columns is None or number < most_with_columns
                else (),
                place in leaders,
            )
            for number, place in enumerate(best[:limit])
        ]
        return found, len(ranked)

    def _weigh(self, table: Table) -> dict[str, float]:
        """What each word of a table weighs: the most of the places where it occurs."""
        weights: dict[str, float] = {}
        if table.schema != self.catalog.default_schema:
            weights.update((word, _COMMENT) for word in self._words(table.schema))
        for comment in (table.comment, *(column.comment for column in table.columns)):
            if comment:
                weights.update((word, _COMMENT) for word in split(comment) if word not in _NOISE)
        for column in table.columns:
            words = self._words(column.name)
            weight = _COLUMN * (0.5 + 0.5 / (len(words) or 1))
            for word in words:
                if weight > weights.get(word, 0.0):
                    weights[word] = weight
        own = self._words(table.name)
        weights.update((word, _NAME * (0.5 + 0.5 / len(own))) for word in own)
        if own:
            weights["".join(own)] = _NAME
        return weights

    def _words(self, name: str) -> list[str]:
        words = self._words_of.get(name)
        if words is None:
            words = self._words_of[name] = split(name)
        return words

    def _score(self, meanings: dict[str, float]) -> dict[int, float]:
        """What each table scores for one word: its best place, rarer words counting more."""
        best: dict[int, float] = {}
        for word, closeness in meanings.items():
            for table, weight in self._weights[word].items():
                score = closeness * weight
                if score > best.get(table, 0.0):
                    best[table] = score
        rarity = 1.0 + log(1 + len(self.catalog.tables) / (1 + len(best)))
        return {table: score * rarity for table, score in best.items()}

    def _alike(self, word: str) -> dict[str, float]:
        """The words of the vocabulary that `word` may mean, with how close they are."""
        close: dict[str, float] = {}
        text = self._text
        at = text.find(word)
        while at >= 0:
            start = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at)
            if start == at:
                close[text[start:end]] = _PREFIX
            elif len(word) >= _SHORTEST_INSIDE:
                close[text[start:end]] = _INSIDE
            at = text.find(word, end)
        for short in self._abbreviations.get(word[:1], ()):
            if short not in close and _abbreviates(short, word):
                close[short] = _ABBREVIATED
        if word in self._weights:
            close[word] = _EXACT
        return close

    def _with_neighbors(self, scores: dict[int, float]) -> dict[int, float]:
        """Scores raised by the best table one foreign key away."""
        if not self._has_neighbors:
            return scores
        raised = dict(scores)
        for table, score in scores.items():
            near = self._neighbors[table]
            if near:
                best = max([scores.get(other, 0.0) for other in near])
                raised[table] = score + _NEIGHBOR * best
        return raised

    def _columns(self, table: Table, meant: dict[str, float]) -> tuple[str, ...]:
        scored: list[tuple[float, int, str]] = []
        for place, column in enumerate(table.columns):
            score = max((meant.get(word, 0.0) for word in self._words(column.name)), default=0.0)
            if score:
                scored.append((-score, place, column.name))
        return tuple(name for _, _, name in sorted(scored))


def _abbreviates(short: str, word: str) -> bool:
    """Whether `short` is `word` cut off, or its consonants: `curr` and `ccy` are `currency`."""
    if len(short) >= len(word):
        return False
    if word.startswith(short):
        return True
    if short[-1] != word[-1] or sum(char in _VOWELS for char in short[1:]) > len(short) // 4:
        return False
    rest = iter(word)
    return all(char in rest for char in short)


def _leaders(ranked: list[int], hits: list[dict[int, float]]) -> list[int]:
    """For each word its best table, in the order of the words, each table once."""
    leaders: dict[int, None] = {}
    for hit in hits:
        if hit:
            top = max(hit.values())
            leaders[next(table for table in ranked if hit.get(table) == top)] = None
    return list(leaders)


def _neighbors(tables: tuple[Table, ...]) -> list[set[int]]:
    """For each table, the places of those it refers to and those that refer to it."""
    places = {(table.schema, table.name): place for place, table in enumerate(tables)}
    near: list[set[int]] = [set() for _ in tables]
    for place, table in enumerate(tables):
        for key in table.foreign_keys:
            other = places.get((key.schema or table.schema, key.table))
            if other is not None and other != place:
                near[place].add(other)
                near[other].add(place)
    return near


class PerCatalog(Generic[DerivedT]):
    """What is derived from catalogs, such as their indexes: made once for each catalog, for all
    callers who see the same. Not shared between threads."""

    def __init__(self, derive: Callable[[Catalog], DerivedT], most: int = 64) -> None:
        self._derive = derive
        self._most = most
        self._kept: dict[int, tuple[Catalog, DerivedT]] = {}

    def of(self, catalog: Catalog) -> DerivedT:
        """What is derived of exactly this catalog, again for another stamp or other contents."""
        kept = self._kept.pop(id(catalog), None) or self._take_equal(catalog)
        if kept is None:
            kept = catalog, self._derive(catalog)
        self._kept[id(catalog)] = kept
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return kept[1]

    def _take_equal(self, catalog: Catalog) -> tuple[Catalog, DerivedT] | None:
        """What is kept of a catalog with the same contents, now to be found by this one."""
        for place, (other, derived) in self._kept.items():
            if other.version == catalog.version and other == catalog:
                del self._kept[place]
                return catalog, derived
        return None
