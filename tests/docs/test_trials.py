"""Each point that the trials of the first release found has tests of its own, which are there."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import msgspec
import pytest

from support.documents import ROOT
from tidegate.config.model import LockoutSettings

TESTS = ROOT / "tests"
POINTS: dict[str, list[str]] = {
    f"{area}.{point}": tests
    for area, points in tomllib.loads((Path(__file__).parent / "trials.toml").read_text()).items()
    for point, tests in points.items()
}
LETTERS = [
    *(f"security.A{number}" for number in range(1, 11)),
    *(f"reliability.B{number}" for number in ("1", "2", "2a", *range(3, 17))),
    *(f"new_users.D{number}" for number in range(1, 11)),
    "tests.E",
]


@cache
def names_in(path: Path) -> set[str]:
    """The test functions of a module."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(path.read_text())
    return {each.name for each in ast.walk(tree) if isinstance(each, functions)}


def test_no_point_of_the_trials_is_left_out() -> None:
    assert set(LETTERS) <= set(POINTS)
    assert all(POINTS.values())


@pytest.mark.parametrize("point", POINTS)
def test_the_tests_of_a_point_are_there(point: str) -> None:
    for test in POINTS[point]:
        path, _, name = test.partition("::")
        assert (TESTS / path).is_file(), test
        found = names_in(TESTS / path)
        assert name in found if name else any(each.startswith("test_") for each in found), test


def test_the_page_on_lockout_says_what_the_settings_do() -> None:
    page = (ROOT / "docs" / "explanation" / "lockout.md").read_text()
    defaults = LockoutSettings()
    assert str(defaults.failures) in page
    for setting in msgspec.structs.fields(LockoutSettings):
        assert f"`{setting.name}`" in page or setting.name in page, setting.name
