"""Runs statements that are called reads, compares digests, and finds what changed something."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field

from read_only_fuzz.harness import Digest, Harness
from tidegate.errors import TidegateError
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

BATCH = 200
MOST_FINDS = 5
MOST_TRIES = 150
"""Of making a find shorter; each may cost a new database."""

_TOKEN = re.compile(r"\s+|\w+|'[^']*'|[^\w\s]")


@dataclass
class Find:
    """A false read: as it was generated, in few words, and the parts of the digest it changed. If
    no statement of a batch does it alone, all of them, and no words."""

    text: str
    minimal: str
    changed: list[str]


@dataclass
class Summary:
    """What a hunt did. `objected` are reads that the engine's opinion kept from running, all of
    which name something that the catalog alone can tell the harm of."""

    engine: str
    seed: int
    generated: int = 0
    called_read: int = 0
    objected: int = 0
    executed: int = 0
    failed: int = 0
    changed: int = 0
    seconds: float = 0.0
    finds: list[Find] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def reads(text: str, dialect: str) -> bool:
    """Whether the judge calls it a read."""
    return judge(text, dialect).effect is Effect.READ


def difference(before: Digest, after: Digest) -> list[str]:
    """The parts that are not the same."""
    parts = before.keys() | after.keys()
    return sorted(part for part in parts if before.get(part) != after.get(part))


class Hunt:
    """`build` makes a new harness; `called` says what is called a read."""

    def __init__(
        self,
        build: Callable[[], Harness],
        called: Callable[[str, str], bool] = reads,
        seed: int = 0,
    ) -> None:
        self._build = build
        self._called = called
        self.harness = build()
        self._folder = str(self.harness.folder)
        self._before = self.harness.digest()
        self.summary = Summary(self.harness.dialect, seed)

    def close(self) -> None:
        self.harness.close()

    def go(self, texts: Iterable[str], count: int, seconds: float) -> Summary:
        """Hunt through up to `count` texts, for at most about `seconds`."""
        began = time.monotonic()
        summary, batch = self.summary, list[str]()
        for text in texts:
            summary.generated += 1
            if self._runs(text):
                batch.append(text)
            if len(batch) >= BATCH:
                self._check(batch)
                batch = []
            spent = time.monotonic() - began
            if summary.generated >= count or spent > seconds or len(summary.finds) >= MOST_FINDS:
                break
        self._check(batch)
        summary.seconds = round(time.monotonic() - began, 1)
        return summary

    def _runs(self, text: str) -> bool:
        if not self._called(text, self.harness.dialect):
            return False
        self.summary.called_read += 1
        objected = self._objected(text)
        self.summary.objected += objected
        return not objected

    def _objected(self, text: str) -> bool:
        folded = text.lower()
        if not any(name in folded for name in self.harness.hiding):
            return False
        try:
            return self.harness.objects(text)
        except TidegateError:
            return True  # what cannot be inspected is not run

    def _check(self, batch: Sequence[str]) -> None:
        for text in batch:
            self.summary.executed += 1
            self.summary.failed += not self._run(text)
        after = self.harness.digest()
        changed = difference(self._before, after)
        self._before = after
        if changed:
            self.summary.changed += 1
            self.summary.finds.append(self._find(list(batch), changed))
            self._renew()

    def _run(self, text: str) -> bool:
        """Also in a later harness, whose folder is another one."""
        return self.harness.run(text.replace(self._folder, str(self.harness.folder)))

    def _renew(self) -> None:
        self.harness.close()
        self.harness = self._build()
        self._before = self.harness.digest()

    def _effect_of(self, texts: Sequence[str]) -> list[str]:
        """What the texts change."""
        before = self.harness.digest()
        for text in texts:
            self._run(text)
        return difference(before, self.harness.digest())

    def _find(self, batch: list[str], changed: list[str]) -> Find:
        """The one of a batch that changes something; all of them if none does alone."""
        rest = batch
        while len(rest) > 1:
            half = len(rest) // 2
            self._renew()
            rest = rest[:half] if self._effect_of(rest[:half]) else rest[half:]
        self._renew()
        alone = self._effect_of(rest)
        if not alone:
            return Find(" ;;; ".join(batch), "", changed)
        return Find(rest[0], self._minimal(rest[0]), alone)

    def _minimal(self, text: str) -> str:
        """The text with as few tokens as still make it a false read."""
        tokens = _TOKEN.findall(text)
        tries, size = 0, max(1, len(tokens) // 2)
        self._renew()
        while size and tries < MOST_TRIES:
            at, before = 0, len(tokens)
            while at < len(tokens) and tries < MOST_TRIES:
                shorter = tokens[:at] + tokens[at + size :]
                candidate = "".join(shorter)
                if self._called(candidate, self.harness.dialect) and not self._objected(candidate):
                    tries += 1
                    if self._effect_of([candidate]):
                        self._renew()
                        tokens = shorter
                        continue
                at += size
            if len(tokens) == before or size > 1:
                size //= 2
        return "".join(tokens)
