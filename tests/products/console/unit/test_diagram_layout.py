"""Where the tables of a diagram stand: in Node, by the page's own modules."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from external.install import node
from products.console.support.console_site import PAGE

SCRIPT = """
import * as dagre from "./dagre.esm.js";
import { arrange, groupsOf } from "./diagram_layout.js";
import { fitIn } from "./diagram_fit.js";
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { sizes, links, kept } = JSON.parse(chunks.join(""));
const spots = kept ? fitIn(sizes, links, kept) : arrange(dagre, sizes, links);
console.log(JSON.stringify({ spots, groups: groupsOf(sizes.length, links).length }));
"""
Spot = list[int]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("layout")
    for name in ("dagre.esm.js", "diagram_layout.js", "diagram_fit.js"):
        shutil.copy(PAGE / name, found / name)
    (found / "package.json").write_text('{"type": "module"}')
    (found / "run.js").write_text(SCRIPT)
    return found


def laid_out(
    folder: Path,
    sizes: list[tuple[int, int]],
    links: list[tuple[int, int]],
    kept: list[Spot | None] | None = None,
) -> list[Spot]:
    given = [{"w": w, "h": h} for w, h in sizes]
    done = subprocess.run(
        [node(), folder / "run.js"],
        input=json.dumps({"sizes": given, "links": links, "kept": kept}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found["spots"]


def overlaps(sizes: list[tuple[int, int]], spots: list[Spot]) -> list[tuple[int, int]]:
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(spots, sizes, strict=True)]
    return [
        (one, other)
        for one, (left, top, right, bottom) in enumerate(boxes)
        for other, (x, y, to, end) in enumerate(boxes[:one])
        if left < to and x < right and top < end and y < bottom
    ]


def shape(sizes: list[tuple[int, int]], spots: list[Spot]) -> float:
    width = max(x + w for (x, _), (w, _) in zip(spots, sizes, strict=True))
    height = max(y + h for (_, y), (_, h) in zip(spots, sizes, strict=True))
    return width / height


SIZES = [(120 + 7 * (n % 9), 40 + 19 * (n % 5)) for n in range(60)]
CASES = {
    "none of them related": [],
    "all refer to one": [(n, 0) for n in range(1, 60)],
    "a chain": [(n, n + 1) for n in range(59)],
    "many small groups": [(n, n - n % 3) for n in range(60) if n % 3],
    "themselves and each other": [(0, 0), (1, 2), (2, 1), (3, 1)],
}


@pytest.mark.parametrize("links", CASES.values(), ids=CASES.keys())
def test_no_tables_overlap(folder: Path, links: list[tuple[int, int]]) -> None:
    assert overlaps(SIZES, laid_out(folder, SIZES, links)) == []


@pytest.mark.parametrize(
    "links", [CASES["none of them related"], CASES["all refer to one"], CASES["many small groups"]]
)
def test_the_width_is_used(folder: Path, links: list[tuple[int, int]]) -> None:
    assert 0.8 < shape(SIZES, laid_out(folder, SIZES, links)) < 4


def test_a_new_table_moves_no_other_and_comes_near_its_neighbour(folder: Path) -> None:
    links = CASES["many small groups"]
    before = laid_out(folder, SIZES, links)
    kept: list[Spot | None] = [*before, None]
    sizes, links = [*SIZES, (130, 60)], [*links, (60, 30)]
    after = laid_out(folder, sizes, links, kept)
    assert after[:-1] == before
    assert overlaps(sizes, after) == []
    assert max(abs(one - other) for one, other in zip(after[-1], after[30], strict=True)) < 600
