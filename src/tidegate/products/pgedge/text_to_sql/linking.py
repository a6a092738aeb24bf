"""Finds the tables that a question is about, and what else a statement on them needs. Pure.

Tables are ranked by BM25 (k1 1.2, b 0.75; Robertson and Zaragoza, 2009) over names, columns,
comments, synonyms and typical values, and by the prefixes and substrings of `search.words`; ranks
are fused by their reciprocals (Cormack, Clarke and Büttcher, 2009). Tables that differ in digits
alone (`events_2024_01`, `events_2024_02`) are one family, and are ranked as one.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt
from operator import mul

import msgspec

from tidegate.model.profiles import Join, Place, TableProfile
from tidegate.model.schema import Catalog, Table
from tidegate.products.pgedge.text_to_sql.knowledge import Knowledge
from tidegate.search.joins import Joins
from tidegate.search.words import Index, split

_K1, _B = 1.2, 0.75
_FUSION = 60
"""The constant of reciprocal rank fusion, as its authors set it."""
_NAME_WEIGHT, _SYNONYM_WEIGHT = 3, 3
_FAMILY = 3
"""Tables from which on those that differ in digits alone are a family."""
_DIGITS = re.compile(r"\d+")
_RANKED = 200
_SMALL_SCHEMA = 60
"""Families of a schema that is shown whole where there is room."""
MAX_WORDS = 300


class Family(msgspec.Struct, frozen=True):
    """Tables of the same columns whose names differ in digits alone, in the order of their names.
    `newest` represents all of them; a single table is its own family."""

    newest: Table
    members: tuple[str, ...]

    @property
    def place(self) -> Place:
        return (self.newest.schema, self.newest.name)


class Linker:
    """The words of one catalog, for any number of questions. Building costs a few µs per column."""

    def __init__(self, catalog: Catalog, knowledge: Knowledge) -> None:
        self.catalog = catalog
        self.vectors: list[tuple[float, ...]] | None = None
        """Vectors of the families of length 1, where they were computed."""
        self.families = group(catalog.tables)
        each_counts = [_words_of(family, knowledge) for family in self.families]
        self._lengths = [sum(counts.values()) for counts in each_counts]
        self._mean = sum(self._lengths) / max(1, len(self._lengths)) or 1.0
        self._found: dict[str, list[tuple[int, int]]] = {}
        for at, counts in enumerate(each_counts):
            for word, count in counts.items():
                self._found.setdefault(word, []).append((at, count))
        newest = msgspec.structs.replace(
            catalog, tables=tuple([family.newest for family in self.families])
        )
        self._index = Index(newest)
        self._places = {family.place: at for at, family in enumerate(self.families)}
        self.joins = Joins(newest.tables)
        self._near = self._neighbors(knowledge)

    def rank(
        self,
        question: str,
        vectors: Sequence[int] = (),
        profiles: Mapping[Place, TableProfile] | None = None,
    ) -> list[int]:
        """The places of the families in `families`, best first; families without any sign of the
        question are left out. `vectors` is a ranking by embeddings to fuse in; `profiles` say which
        values columns have."""
        words = list(dict.fromkeys(split(question)[:MAX_WORDS]))
        scores: dict[int, float] = {}
        rankings = [self._by_words(words), self._by_parts(" ".join(words)), list(vectors)]
        if profiles:
            rankings.append(self._by_values(question, profiles))
        for ranking in rankings:
            for rank, at in enumerate(ranking[:_RANKED]):
                scores[at] = scores.get(at, 0.0) + 1.0 / (_FUSION + rank + 1)
        return sorted(scores, key=lambda at: (-scores[at], self.families[at].place))

    def nearest(self, vector: Sequence[float]) -> list[int]:
        """The places of the families by the cosine of their vectors with this one, best first."""
        scored = [
            (-sum(map(mul, own, vector)), at)
            for at, own in enumerate(self.vectors or ())
            if len(own) == len(vector)
        ]
        return [at for _, at in sorted(scored)]

    def describe(self) -> list[str]:
        """The text of each family that is embedded."""
        return [_description(family.newest) for family in self.families]

    def with_joining(self, best: Sequence[int]) -> list[int]:
        """The families, and those on the shortest way between them by keys."""
        return [*best, *self._between(best)]

    def with_schemas(self, places: Sequence[int], best: Sequence[int]) -> list[int]:
        """The families, and after them the others of the schemas of the best ones, where these
        are small: a question rarely leaves its schema, whose tables words alone may not find."""
        counts = Counter([family.newest.schema for family in self.families])
        schemas = dict.fromkeys([self.families[at].newest.schema for at in best])
        known = set(places)
        return [
            *places,
            *(
                at
                for schema in schemas
                if counts[schema] <= _SMALL_SCHEMA
                for at, family in enumerate(self.families)
                if family.newest.schema == schema and at not in known
            ),
        ]

    def _by_values(self, question: str, profiles: Mapping[Place, TableProfile]) -> list[int]:
        """Families of which a column has a value that the question names."""
        asked = f" {' '.join(split(question))} "
        found: dict[int, int] = {}
        for at, family in enumerate(self.families):
            for column in profiles.get(family.place, {}).values():
                for value in column.values:
                    words = " ".join(split(str(value)))
                    if words and not words.isdigit() and f" {words} " in asked:
                        found[at] = found.get(at, 0) + 1
        return sorted(found, key=lambda at: (-found[at], self.families[at].place))

    def _by_words(self, words: Iterable[str]) -> list[int]:
        scores: dict[int, float] = {}
        total = len(self.families)
        for word in words:
            found = self._found.get(word, ())
            rarity = log((total - len(found) + 0.5) / (len(found) + 0.5) + 1)
            for at, count in found:
                length = 1 - _B + _B * self._lengths[at] / self._mean
                scores[at] = scores.get(at, 0.0) + rarity * count * (_K1 + 1) / (
                    count + _K1 * length
                )
        return sorted(scores, key=lambda at: (-scores[at], self.families[at].place))

    def _by_parts(self, words: str) -> list[int]:
        matches, _ = self._index.search(words, _RANKED)
        return [self._places[match.table.schema, match.table.name] for match in matches]

    def _neighbors(self, knowledge: Knowledge) -> list[set[int]]:
        """For each family those that a key joins it to: declared, written down or likely."""
        near: list[set[int]] = [set() for _ in self.families]
        by_name = {family.newest.name.casefold(): at for at, family in enumerate(self.families)}

        def connect(one: int, other: int | None) -> None:
            if other is not None and other != one:
                near[one].add(other)
                near[other].add(one)

        for at, family in enumerate(self.families):
            table = family.newest
            for key in table.foreign_keys:
                connect(at, self._places.get((key.schema or table.schema, key.table)))
            for join in self.joins.of(table).values():
                connect(at, self._places.get((join.schema, join.table)))
        for known in knowledge.joins:
            ends = [by_name.get(table_of(end)) for end in (known.left, known.to)]
            if ends[0] is not None:
                connect(ends[0], ends[1])
        return near

    def _between(self, best: Sequence[int]) -> list[int]:
        """Families that join two of the best ones through at most two others."""
        chosen = set(best)
        added: dict[int, None] = {}
        for start in best:
            came: dict[int, int] = {start: start}
            waiting = deque([(start, 0)])
            while waiting:
                at, steps = waiting.popleft()
                if at in chosen and at != start:
                    while at != start:
                        if at not in chosen:
                            added[at] = None
                        at = came[at]
                    continue
                if steps < 3:
                    for other in sorted(self._near[at]):
                        if other not in came:
                            came[other] = at
                            waiting.append((other, steps + 1))
        return list(added)

    def joins_of(self, table: Table) -> dict[str, Join]:
        """The likely joins of a table's columns that no key declares."""
        return self.joins.of(table)


def group(tables: Sequence[Table]) -> list[Family]:
    """Families, in the order of their first tables. Partitions count as members of their parent."""
    parents = {(table.schema, table.name): table for table in tables}
    alike: dict[tuple[str, str, tuple[str, ...]], list[Table]] = {}
    for table in tables:
        if any(place in parents for place in table.reads) and "view" not in table.kind:
            continue  # its parent has its rows
        pattern = _DIGITS.sub("#", table.name)
        if pattern == table.name:
            key = (table.schema, table.name, ())
        else:
            key = (table.schema, pattern, tuple([column.name for column in table.columns]))
        alike.setdefault(key, []).append(table)
    families: list[Family] = []
    for found in alike.values():
        if len(found) < _FAMILY:
            families += [Family(table, (table.name,)) for table in found]
        else:
            ordered = sorted(found, key=_by_number)
            families.append(Family(ordered[-1], tuple([table.name for table in ordered])))
    return families


def unit(vector: Sequence[float]) -> tuple[float, ...]:
    """The vector with length 1."""
    length = sqrt(sum(map(mul, vector, vector))) or 1.0
    return tuple([value / length for value in vector])


def _description(table: Table) -> str:
    columns = ", ".join([" ".join(split(column.name)) for column in table.columns[:40]])
    comment = f". {table.comment}" if table.comment else ""
    return f"{' '.join(split(table.name))}: {columns}{comment}"[:1_000]


def table_of(path: str) -> str:
    """The table of a path `table.column` or `schema.table.column`, folded."""
    return path.rpartition(".")[0].rpartition(".")[2].casefold()


def _by_number(table: Table) -> tuple[list[int], str]:
    return [int(digits) for digits in _DIGITS.findall(table.name)], table.name


def _words_of(family: Family, knowledge: Knowledge) -> Counter[str]:
    """How often each word names a family, by the weight of its place."""
    table = family.newest
    known = knowledge.table(table.schema, table.name)
    words: Counter[str] = Counter()
    own = [word for word in split(table.name) if not word.isdigit() or len(family.members) == 1]
    for word in own:
        words[word] += _NAME_WEIGHT
    words.update(split(table.comment or ""))
    if known is not None:
        for synonym in known.synonyms:
            for word in split(synonym):
                words[word] += _SYNONYM_WEIGHT
    for column in table.columns:
        words.update(split(column.name))
        words.update(split(column.comment or ""))
        described = known.column(column.name) if known is not None else None
        if described is not None:
            for synonym in described.synonyms:
                words.update(split(synonym))
    return words
