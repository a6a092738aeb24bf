"""Each point that trials of a commit found has tests of its own, which are there.

`trials/2a83567.toml` has those of the first trials: a point and its tests. `trials/070620cb/` has
those of the second, a file for each part of the product: for each point what was done (or, where
nothing was, the reason) and the tests that would find it or the next of its kind.
"""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import msgspec
import pytest

from support.documents import ROOT
from tidegate.config.model import LockoutSettings

pytestmark = pytest.mark.needs("every product")

TESTS = ROOT / "tests"
TRIALS = Path(__file__).parent / "trials"


class Point(msgspec.Struct, forbid_unknown_fields=True):
    """What was done about one finding, or why nothing, and its tests."""

    done: str = ""
    why_not: str = ""
    tests: list[str] = []


FIRST: dict[str, list[str]] = {
    f"{area}.{point}": tests
    for area, points in tomllib.loads((TRIALS / "2a83567.toml").read_text()).items()
    for point, tests in points.items()
}
SECOND: dict[str, Point] = {
    f"{file.stem}.{name}": point
    for file in sorted((TRIALS / "070620cb").glob("*.toml"))
    for name, point in msgspec.toml.decode(file.read_bytes(), type=dict[str, Point]).items()
}
LETTERS = [
    *(f"security.A{number}" for number in range(1, 11)),
    *(f"reliability.B{number}" for number in ("1", "2", "2a", *range(3, 17))),
    *(f"new_users.D{number}" for number in range(1, 11)),
    "tests.E",
]


SECOND_LETTERS = [
    *(f"A{number}" for number in range(1, 19)),
    *(f"B{number}" for number in range(1, 12)),
    "E",
    *(f"F{number}" for number in range(1, 6)),
    *(f"G{number}" for number in range(1, 5)),
]


@cache
def names_in(path: Path) -> set[str]:
    """The test functions of a module."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(path.read_text())
    return {each.name for each in ast.walk(tree) if isinstance(each, functions)}


def check_tests_exist(tests: list[str]) -> None:
    for test in tests:
        path, _, name = test.partition("::")
        assert (TESTS / path).is_file(), test
        found = names_in(TESTS / path)
        assert name in found if name else any(each.startswith("test_") for each in found), test


def test_no_point_of_the_first_trials_is_left_out() -> None:
    assert set(LETTERS) <= set(FIRST)
    assert all(FIRST.values())


def test_no_point_of_the_second_trials_is_left_out() -> None:
    points = [name.partition(".")[2] for name in SECOND]
    assert set(SECOND_LETTERS) <= set(points)
    twice = {each for each in SECOND_LETTERS if points.count(each) > 1}
    assert not twice


@pytest.mark.parametrize("point", FIRST)
def test_the_tests_of_a_point_are_there(point: str) -> None:
    check_tests_exist(FIRST[point])


@pytest.mark.parametrize("point", SECOND)
def test_a_point_says_what_was_done_and_its_tests_are_there(point: str) -> None:
    entry = SECOND[point]
    assert entry.done or entry.why_not
    assert entry.tests or entry.why_not
    check_tests_exist(entry.tests)


def test_the_page_on_lockout_says_what_the_settings_do() -> None:
    page = (ROOT / "docs" / "explanation" / "lockout.md").read_text()
    defaults = LockoutSettings()
    assert str(defaults.failures) in page
    for setting in msgspec.structs.fields(LockoutSettings):
        assert f"`{setting.name}`" in page or setting.name in page, setting.name
