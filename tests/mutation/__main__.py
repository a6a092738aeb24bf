"""Plant small faults in the safety core, one by one, and see whether a test fails."""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

from mutation import coverage_map, trial
from mutation.core import ROOT, modules
from mutation.coverage_map import Covering
from mutation.mutants import Mutant, compiles, mutants_of
from mutation.reviewed import Review, entry_of, reviews

_TIERS = (2, 5, 12, 10_000)
"""Modules of the core that a test executes, at most, to run before those that execute more."""
LEAST = 95
"""How many of a hundred mutants that are not equivalent must be killed."""


def main() -> int:
    arguments = _arguments()
    candidates = _candidates(arguments.module, arguments.changed_since)
    if not candidates:
        print("no mutants: nothing of the safety core was named or changed")
        return 0
    chosen = _sample(candidates, arguments.sample, arguments.seed)
    if arguments.list:
        for mutant in chosen:
            print(mutant)
        return 0
    if not arguments.no_record:
        _record_what_is_stale()
    return _Run(chosen, candidates, arguments.budget).report()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__)
    parser.add_argument(
        "--module", action="append", default=[], metavar="M",
        help="a package of the core, or a part of a module's path; may be given again",
    )  # fmt: skip
    parser.add_argument("--sample", type=int, default=200, metavar="N", help="0 for all of them")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--changed-since", metavar="REV", help="only lines that changed since")
    parser.add_argument(
        "--budget", type=float, default=20.0, metavar="SECONDS",
        help="how long the tests of one mutant took when they were recorded, at most",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="show the mutants and try none")
    parser.add_argument(
        "--no-record", action="store_true", help="use the recordings as they are, or none"
    )
    return parser.parse_args()


def _candidates(wanted: list[str], revision: str | None) -> dict[Mutant, str]:
    found: dict[Mutant, str] = {}
    packages = set(modules().values())
    for path, package in modules().items():
        name = str(path.relative_to(ROOT / "src" / "tidegate"))
        # `sql` is a package, and a part of `products/mysql/engine` that is not meant.
        if wanted and not any(
            each == package if each in packages else each in name for each in wanted
        ):
            continue
        changed = None if revision is None else _changed_lines(str(path), revision)
        for mutant in mutants_of(path):
            lines = range(mutant.line, mutant.last_line + 1)
            if changed is None or not changed.isdisjoint(lines):
                found[mutant] = package
    return found


def _changed_lines(path: str, revision: str) -> set[int]:
    command = ["git", "diff", "--unified=0", revision, "--", path]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found: set[int] = set()
    for start, length in re.findall(r"^@@ .* \+(\d+)(?:,(\d+))? @@", text, re.MULTILINE):
        found.update(range(int(start), int(start) + int(length or 1)))
    return found


def _sample(candidates: dict[Mutant, str], size: int, seed: int) -> list[Mutant]:
    """Of each package by the root of its size, so that the largest does not hide the others."""
    randomness = random.Random(seed)
    packages: dict[str, list[Mutant]] = {}
    for mutant, package in candidates.items():
        packages.setdefault(package, []).append(mutant)
    roots = sum(len(those) ** 0.5 for those in packages.values())
    chosen: list[Mutant] = []
    for those in packages.values():
        randomness.shuffle(those)
        wanted = len(those) if size == 0 else round(size * len(those) ** 0.5 / roots)
        chosen += _first_that_compile(those, wanted)
    return sorted(chosen, key=lambda each: (each.path, each.start))


def _first_that_compile(mutants: list[Mutant], wanted: int) -> list[Mutant]:
    found: list[Mutant] = []
    for mutant in mutants:
        if len(found) == wanted:
            break
        if compiles(mutant):
            found.append(mutant)
    return found


def _record_what_is_stale() -> None:
    stale = coverage_map.CoverageMap().stale()
    if not stale:
        return
    print(f"recording which lines the tests of {len(stale)} files execute", file=sys.stderr)
    coverage_map.record(stale)


class _Run:
    """The trials of a sample, and what is said about them."""

    def __init__(self, chosen: list[Mutant], packages: dict[Mutant, str], budget: float) -> None:
        self._chosen = chosen
        self._packages = packages
        self._budget = budget
        self._reviews = reviews()
        self._results: dict[Mutant, trial.Result] = {}

    def report(self) -> int:
        self._try_all()
        counts: dict[str, Counter[str]] = {}
        for mutant in self._chosen:
            counts.setdefault(self._packages[mutant], Counter())[self._word(mutant)] += 1
        total = sum(counts.values(), Counter())
        words = ("killed", "survived", "equivalent")
        print(f"{'':12}{'made':>8}" + "".join(f"{word:>12}" for word in words))
        for package, those in [*counts.items(), ("all", total)]:
            cells = "".join(f"{those[word]:12}" for word in words)
            print(f"{package:12}{those.total():8}{cells}")
        for mutant in self._chosen:
            if self._word(mutant) == "survived":
                self._show(mutant)
        counted = total["killed"] + total["survived"]
        percent = 100 * total["killed"] / counted if counted else 100.0
        print(f"\nkilled: {percent:.1f} % of {counted} that are not equivalent (at least {LEAST})")
        return 0 if percent >= LEAST else 1

    def _word(self, mutant: Mutant) -> str:
        status = self._results[mutant].status
        if status in ("killed", "timed-out"):
            return "killed"
        review = self._reviews.get(mutant.key)
        return "equivalent" if review and review.verdict == "equivalent" else "survived"

    def _show(self, mutant: Mutant) -> None:
        review: Review | None = self._reviews.get(mutant.key)
        status = self._results[mutant].status
        print(f"\n{status} {mutant}")
        print(f"    reviewed: {review.reason}" if review else entry_of(mutant))

    def _try_all(self) -> None:
        covers = coverage_map.CoverageMap()
        if failed := covers.failed():
            print(f"{len(failed)} tests failed when recorded and cannot kill", file=sys.stderr)
        for place in covers.idle_assertions():
            print(f"an assertion that no test reached: {place}", file=sys.stderr)
        works: list[trial.Work] = []
        for mutant in self._chosen:
            tests = _first_tests(covers.covering(mutant), self._budget)
            if not tests:
                self._tell(mutant, trial.Result("uncovered"))
            else:
                works.append(trial.Work(mutant, tuple(tests), sum(tests.values())))
        trial.prepare(test for work in works for test in work.tests)
        exchangeable = [
            work for work in works
            if trial.can_exchange(work.mutant) and not covers.is_imported(work.mutant)
        ]  # fmt: skip
        trial.exchange_all(exchangeable, self._tell)
        for work in works:
            if work not in exchangeable:
                self._tell(work.mutant, trial.import_anew(work))
        shutil.rmtree(ROOT / ".cache" / "mutation" / "temporary", ignore_errors=True)

    def _tell(self, mutant: Mutant, result: trial.Result) -> None:
        self._results[mutant] = result
        number = f"{len(self._results)}/{len(self._chosen)}"
        clock = time.strftime("%H:%M:%S")
        line = f"{clock} {number} {result.status:10} {mutant.key[0]}:{mutant.line} {result.by}"
        print(line, file=sys.stderr, flush=True)
        with (coverage_map.CACHE / "results.jsonl").open("a") as file:
            row = {"mutant": mutant.key, "kind": mutant.kind, **vars(result)}
            file.write(json.dumps(row) + "\n")


def _first_tests(tests: list[Covering], budget: float) -> dict[str, float]:
    """In the order in which they run, as many as the budget allows."""
    chosen: dict[str, float] = {}
    for each in _in_turns(tests):
        if budget <= 0:
            break
        chosen[each.test] = each.seconds
        budget -= each.seconds
    return chosen


def _in_turns(tests: list[Covering]) -> Iterator[Covering]:
    """Tests of few modules before others. Among those alike, one of each function first, and the
    quick ones before the slow."""
    tiers: dict[int, dict[str, list[Covering]]] = {}
    for each in sorted(tests, key=lambda each: (each.seconds, each.test)):
        tier = next(place for place, most in enumerate(_TIERS) if each.breadth <= most)
        name = each.test.split("[", 1)[0]
        tiers.setdefault(tier, {}).setdefault(name, []).append(each)
    for tier in sorted(tiers):
        functions = tiers[tier].values()
        for turn in range(max(len(those) for those in functions)):
            for those in functions:
                if turn < len(those):
                    yield those[turn]


if __name__ == "__main__":
    sys.exit(main())
