"""`./dev mutate` makes the mutants it promises, plants them, and knows those that were reviewed."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from mutation.core import SOURCE, modules
from mutation.mutants import Mutant, compiles, mutants_of
from mutation.reviewed import entry_of, reviews
from mutation.trial import can_exchange, exchanged

MODULE = '''
"""A sample."""
NAMES = frozenset({"a", "b"})
LIST = words("one two")
PATTERN = re.compile(r"x(?:y|z)")


def is_small(value: int, limit: int = 5) -> bool:
    """Whether it is."""
    if not value and limit:
        note(value)
    return value < limit
'''


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "tidegate" / "sample.py"
    path.parent.mkdir()
    path.write_text(MODULE)
    return path


def test_each_kind_of_change_is_made(sample: Path) -> None:
    made = {(mutant.kind, mutant.before, mutant.after) for mutant in mutants_of(sample)}
    assert made == {
        ("element", "'a'", ""),
        ("element", "'b'", ""),
        ("word", "one", ""),
        ("element", "y", ""),
        ("element", "z", ""),
        ("constant", "5", "6"),
        ("condition", "not value and limit", "True"),
        ("condition", "not value and limit", "False"),
        ("boolean", "not value and limit", "(not value or limit)"),
        ("operand", "not value and limit", "(limit)"),
        ("operand", "not value and limit", "(not value)"),
        ("not", "not value", "(value)"),
        ("statement", "note(value)", "pass"),
        ("return", "value < limit", "True"),
        ("return", "value < limit", "False"),
        ("comparison", "value < limit", "(value <= limit)"),
        ("comparison", "value < limit", "(value >= limit)"),
    }


def test_a_mutant_is_the_module_with_one_change(sample: Path) -> None:
    texts = {mutant.applied(sample.read_bytes()) for mutant in mutants_of(sample)}
    assert len(texts) == len(mutants_of(sample))
    assert MODULE.replace('r"x(?:y|z)"', "'x(?:z)'").encode() in texts
    assert MODULE.replace("note(value)", "pass").encode() in texts
    assert MODULE.replace("one two", " two").encode() in texts
    assert MODULE.encode() not in texts


def test_the_code_of_a_living_function_takes_a_mutant(sample: Path) -> None:
    (planted,) = (each for each in mutants_of(sample) if each.after == "(value <= limit)")
    assert can_exchange(planted)
    source = sample.read_bytes()
    new = dict(exchanged(source, planted.applied(source), str(sample)))
    (code,) = (code for (name, _), code in new.items() if name == "is_small")
    given: dict[str, object] = {"note": list}
    lines = MODULE.split("\n\n\n")[1]
    exec(compile(lines, str(sample), "exec"), given)  # noqa: S102
    is_small = given["is_small"]
    assert callable(is_small) and not is_small(5)
    is_small.__code__ = code  # type: ignore[attr-defined]
    assert is_small(5)


def test_every_pattern_of_the_core_names_modules_with_mutants() -> None:
    assert {"policy", "sql", "approvals", "secrets", "engines", "gateway", "audit"} == set(
        modules().values()
    )


def test_every_dialect_and_every_inspection_is_in_the_core_wherever_it_lies() -> None:
    package = SOURCE / "tidegate"
    judging = {
        *package.rglob("inspect.py"), *package.rglob("dialect.py"), *package.rglob("dialects/*.py"),
    }  # fmt: skip
    assert judging <= modules().keys()


@functools.cache
def _made(path: Path) -> dict[tuple, Mutant]:
    return {mutant.key: mutant for mutant in mutants_of(path)}


@pytest.mark.parametrize("key", sorted(reviews()), ids=lambda key: f"{key[0]}-{key[1]}")
def test_a_reviewed_mutant_is_still_made_and_has_a_reason(key: tuple) -> None:
    mutant = _made(SOURCE / "tidegate" / key[0]).get(key)
    assert mutant is not None, "the code has changed: review the mutant again or remove the entry"
    assert compiles(mutant)
    assert len(reviews()[key].reason) > 10
    assert key[0] in entry_of(mutant)
