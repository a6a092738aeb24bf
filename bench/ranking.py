"""The command `./dev bench ranking`: how well hybrid search ranks, by what people judged.

The passages are the short descriptions of Debian's packages, and the judgements the tags that its
developers gave to them: a package is right for a question if it has the tag. Questions of meaning
are the sentences that the vocabulary of tags says of one; names are packages asked for by their own
name, of which exactly one is right. The vectors are those of the model of the extra `embeddings`.
Each way in which words can count is measured on the same questions.

    apt-get indextargets --format '$(FILENAME)' 'Created-By: Packages'    says where the lists are
    /usr/lib/apt/apt-helper cat-file FILE > packages                      reads one
    apt-get download debtags; dpkg-deb -x debtags_*.deb debtags
    ./dev bench ranking --packages packages --vocabulary debtags/usr/share/debtags/vocabulary

`gain` is nDCG among the first ten. The exit status is 1 if `auto` is more than `MOST_LOST` below
the vectors alone on questions of meaning, or below words and vectors alike on names.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sqlite3
import struct
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from math import log2
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import msgspec

from support.search_library import source_of  # pyright: ignore[reportMissingImports] - of tests
from support.surface_gateway import SqliteGate  # pyright: ignore[reportMissingImports] - of tests
from tidegate.config.embeddings import EmbeddingSettings
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call
from tidegate.search.hybrid import search
from tidegate.search.model import SimilaritySearch
from tidegate.search.requests import Embeddings, EmbedTexts

WAYS = ("off", "equal", "less", "auto")
MOST_LOST = 0.01
_FIRST = 10
_LEAST_RIGHT, _MOST_RIGHT = 10, 400
_LEAST_WORDS, _MOST_WORDS = 5, 40
_KINDS = (
    "role::", "interface::", "implemented-in::", "uitoolkit::", "suite::", "made-of::",
    "culture::", "devel::lang", "x11::", "special::", "scope::", "hardware::input",
)  # fmt: skip
"""Tags of how a package is made, which its description does not say."""
_NAMES = 200
_BATCH = 64
_SETTINGS = EmbeddingSettings(calls_per_minute=10**9, characters_per_day=10**12)


class Passage(NamedTuple):
    name: str
    text: str
    tags: frozenset[str]


def records(text: str) -> Iterator[dict[str, str]]:
    """The records of a file of Debian's: fields that may go on in lines that begin with a space."""
    for record in text.split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in record.splitlines():
            if line[:1] in (" ", "\t") and name:
                fields[name] += f"\n{line.strip()}"
            elif ":" in line:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        if fields:
            yield fields


def passages(packages: str, most: int, chance: random.Random) -> list[Passage]:
    """Packages with tags, one for each description."""
    found: dict[str, Passage] = {}
    for record in records(packages):
        tags = frozenset(re.split(r"[,\s]+", record.get("Tag", "").strip())) - {""}
        text = record.get("Description", "").splitlines()[:1]
        if tags and text and "role::program" in tags:
            found.setdefault(text[0], Passage(record["Package"], text[0], tags))
    chosen = list(found.values())
    return chance.sample(chosen, min(most, len(chosen)))


def questions(vocabulary: str, given: Sequence[Passage]) -> dict[str, set[int]]:
    """Sentences about tags, and the places of the passages that have them."""
    found: dict[str, set[int]] = {}
    for record in records(vocabulary):
        tag = record.get("Tag", "")
        _, _, said = record.get("Description", "").partition("\n")
        sentence = " ".join(said.split(".")[0].split())
        right = {at for at, passage in enumerate(given) if tag in passage.tags}
        usual = not tag.startswith(_KINDS) and _LEAST_RIGHT <= len(right) <= _MOST_RIGHT
        if tag and usual and _LEAST_WORDS <= len(sentence.split()) <= _MOST_WORDS:
            found[sentence] = right
    return found


def gain(ranked: Sequence[int], right: set[int]) -> float:
    """nDCG of the first ten."""
    got = sum(1 / log2(place + 2) for place, at in enumerate(ranked[:_FIRST]) if at in right)
    return got / sum(1 / log2(place + 2) for place in range(min(_FIRST, len(right))))


async def measure(directory: Path, given: list[Passage], asked: Mapping[str, set[int]],
                  names: Mapping[str, set[int]]) -> dict[str, Any]:  # fmt: skip
    """The gain of each way, on questions and on names."""
    path = directory / "passages.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(
            "CREATE TABLE docs (id INTEGER PRIMARY KEY, content TEXT, content_embedding BLOB);"
            "CREATE VIRTUAL TABLE docs_fts USING fts5(content, content='docs', content_rowid='id')"
        )
    state = directory / "state"
    state.mkdir(mode=0o700)
    source = source_of(f"sqlite:///{path}")
    actor = Actor("tok_bench", "bench", Scope.READ_ONLY)
    kept: dict[str, Embeddings] = {}
    async with SqliteGate(state, source, embeddings=_SETTINGS).opened() as gate:

        async def handle(request: Any, expected: Any) -> Any:
            if isinstance(request, EmbedTexts) and request.texts[0] in kept:
                return kept[request.texts[0]]
            named = None if isinstance(request, EmbedTexts) else source.name
            call = Call(actor, "core", "search", request, named, reads_only=True)
            answer = (await gate.handle(call)).payload
            if isinstance(request, EmbedTexts) and request.purpose == "query":
                kept[request.texts[0]] = answer
            return answer

        texts = [f"{each.name}: {each.text}" for each in given]
        for start in range(0, len(texts), _BATCH):
            part = tuple(texts[start : start + _BATCH])
            vectors = (await handle(EmbedTexts(part, "document"), Embeddings)).vectors
            rows = [
                (start + number, text, struct.pack(f"<{len(vector)}f", *vector))
                for number, (text, vector) in enumerate(zip(part, vectors, strict=True))
            ]
            with closing(sqlite3.connect(path)) as made, made:
                made.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
        with closing(sqlite3.connect(path)) as made, made:
            made.execute("INSERT INTO docs_fts(docs_fts) VALUES ('rebuild')")
        found: dict[str, Any] = {}
        for kind, queries in (("questions", asked), ("names", names)):
            for way in WAYS:
                gains: list[float] = []
                for text, right in queries.items():
                    wanted = {"table_name": "docs", "query_text": text, "top_n": _FIRST,
                              "output_format": "ids_only", "words": way}  # fmt: skip
                    hits = await search(handle, msgspec.convert(wanted, SimilaritySearch))
                    gains.append(gain([row.key["id"] for row in hits.rows], right))
                found[f"{kind}_{way}"] = round(sum(gains) / len(gains), 4)
    return found


def missed(found: Mapping[str, Any]) -> list[str]:
    """What `auto` loses, each as a sentence."""
    wrong: list[str] = []
    for kind, way in (("questions", "off"), ("names", "equal")):
        auto, best = found[f"{kind}_auto"], found[f"{kind}_{way}"]
        if auto < best - MOST_LOST:
            wrong.append(f"{kind}: auto has {auto}, {way} {best}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench ranking", description=__doc__)
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--vocabulary", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=8_000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    given = passages(options.packages.read_text("utf-8"), options.rows, chance)
    asked = questions(options.vocabulary.read_text("utf-8"), given)
    names = {given[at].name: {at} for at in chance.sample(range(len(given)), _NAMES)}
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(measure(Path(directory), given, asked, names))
    found = {"passages": len(given), "questions": len(asked), "names": len(names), **found}
    print(json.dumps(found, indent=1))
    wrong = missed(found)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
