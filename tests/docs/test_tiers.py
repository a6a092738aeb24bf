"""The tiers of the tests, and which tests a change is said to affect."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import changed
import tiers
import without
from support.authz_engines import ENGINES
from support.documents import ROOT
from support.engine_cases import CASES, JDBC_CASES
from support.undo_shops import KINDS

pytestmark = pytest.mark.needs("every product")

TESTS = ROOT / "tests"


def dry_run(*words: str) -> str:
    """What `make` would run, whatever the `make` that started these tests was given."""
    return subprocess.run(
        ["make", "--no-print-directory", "-n", *words],
        cwd=ROOT, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def collected(*words: str) -> list[str]:
    """The tests that pytest finds, by file and name."""
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--collect-only",
         *words],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [line for line in ended.stdout.splitlines() if "::" in line]


def test_each_place_that_is_left_to_the_whole_tier_is_there_and_named_once() -> None:
    places = [TESTS / place for named in tiers.WHOLE.values() for place in named]
    assert [place for place in places if not place.exists()] == []
    assert len(set(places)) == len(places)
    assert [place for place in places if not place.is_dir() and not place.match("test_*.py")] == []
    assert [place for place in places if any(map(tiers.is_whole, place.parents))] == []


def test_each_engine_of_the_contracts_belongs_to_a_tier() -> None:
    known = {*CASES, *ENGINES, *KINDS, *(f"jdbc-{name}" for name in JDBC_CASES)}
    assert known - tiers.OTHERS == {"sqlite", "postgres", "memory"}
    assert [folder for folder in tiers.ENGINES if not (TESTS / folder).is_dir()] == []


def test_each_kind_of_test_and_each_product_has_tests_of_the_quick_tier() -> None:
    folders = {file.parent for file in TESTS.rglob("test_*.py")}
    quick = {file.parent for file in TESTS.rglob("test_*.py") if not tiers.is_whole(file)}
    products = {folder for folder in (TESTS / "products").iterdir() if folder.is_dir()}
    for area in (*products, *(TESTS / name for name in ("cli", "contract", "security", "wire"))):
        assert any(folder.is_relative_to(area) for folder in quick), area
    for folder in folders:
        if folder.is_relative_to(TESTS / "unit") or folder.name == "unit":
            assert folder in quick, folder


def test_the_quick_tier_takes_a_contract_on_sqlite_and_postgres() -> None:
    file = "tests/contract/engines/test_dry_run.py"
    quick, whole = collected("--quick", file), collected(file)
    assert {"sqlite", "postgres"} <= {line.rpartition("[")[2].strip("]") for line in quick}
    assert any("[duckdb]" in line for line in whole)
    assert not any("[duckdb]" in line for line in quick)
    assert set(quick) < set(whole)


def test_ci_runs_every_test_and_a_newcomer_the_quick_tier() -> None:
    assert dry_run("test").split() == ["./dev", "test"]
    assert dry_run("test", "ALL=1").split() == ["./dev", "test", "--all"]
    assert "make --no-print-directory test ALL=1" in (ROOT / ".ci" / "run").read_text()
    readme = (ROOT / "README.md").read_text()
    assert "`make test`" in readme and "`make test ALL=1`" in readme


def test_no_products_tests_import_those_of_another_and_what_all_share_imports_none() -> None:
    wrong = [
        f"{file.relative_to(TESTS)} imports {name}"
        for folder in ("products", "support")
        for file in (TESTS / folder).rglob("*.py")
        for name in changed.imported(file)
        if name.startswith("products.") and name.split(".")[1] != file.relative_to(TESTS).parts[1]
    ]
    assert wrong == []


def test_each_product_that_a_test_says_it_needs_is_one() -> None:
    products = {folder.name for folder in (TESTS / "products").iterdir()} | {without.EVERY}
    named = {
        argument.value
        for file in TESTS.rglob("test_*.py")
        if "mark.needs(" in (text := file.read_text())
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.needs"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    }
    assert named and named <= products


def test_a_file_that_needs_a_product_is_left_out_where_that_is_not_there() -> None:
    file = TESTS / "unit" / "surfaces" / "test_hints.py"
    assert without.file_needs(file, ["workbench"]) and without.file_needs(file, ["jdbc", "pgedge"])
    assert not without.file_needs(file, ["jdbc"])
    assert without.file_needs(TESTS / "docs" / "test_snippets.py", ["jdbc"])


imports = cache(changed.imports)


def affected(*paths: str) -> set[str]:
    """Which files of tests a change of these paths affects, by the module's own graph."""
    found = changed.chosen(paths, imports())
    return {file.relative_to(ROOT).as_posix() for file in found}


def all_below(folder: str) -> set[str]:
    return {file.relative_to(ROOT).as_posix() for file in (ROOT / folder).rglob("test_*.py")}


def test_a_change_of_a_product_affects_all_its_tests_and_few_others() -> None:
    found = affected("src/tidegate/products/datalog/product.py")
    assert all_below("tests/products/datalog") <= found
    assert not found & all_below("tests/products/cloud")
    assert not found & all_below("tests/contract/engines")


def test_a_change_of_an_engines_product_affects_the_contract_of_engines() -> None:
    path = "src/tidegate/products/duckdb/engine/engine.py"
    assert all_below("tests/contract/engines") <= affected(path)
    assert changed.is_engine(path)
    assert not changed.is_engine("src/tidegate/products/cloud/entry.py")


def test_a_change_of_a_module_affects_tests_that_import_it_and_those_that_start_commands() -> None:
    found = affected("src/tidegate/sql/judge.py")
    assert {
        "tests/security/judge/test_judge_cases.py", "tests/cli/test_query.py",
        "tests/contract/engines/test_dry_run.py",
    } <= found  # fmt: skip
    assert "tests/fuzz/test_fuzz_judge.py" not in found


def test_a_changed_test_is_affected_whatever_its_tier() -> None:
    assert affected("tests/fuzz/test_fuzz_judge.py") == {"tests/fuzz/test_fuzz_judge.py"}


def test_a_change_of_a_page_affects_the_tests_of_documents_alone() -> None:
    assert affected("docs/howto/call-by-hand.md") == all_below("tests/docs")


def test_a_change_of_what_is_installed_affects_everything() -> None:
    assert affected("pyproject.toml") == all_below("tests")


def test_what_differs_is_committed_changed_or_new(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    for name in ("kept", "edited", "moved"):
        (tmp_path / name).write_text(name)
    git("init", "--initial-branch", "main")
    git("add", ".")
    git("commit", "-m", "first")
    git("switch", "-c", "branch")
    (tmp_path / "committed").write_text("1")
    git("add", ".")
    git("commit", "-m", "second")
    (tmp_path / "edited").write_text("2")
    (tmp_path / "new").write_text("3")
    (tmp_path / "moved").unlink()
    assert changed.changed("main", tmp_path) == ["committed", "edited", "moved", "new"]
