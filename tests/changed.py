"""Prints what pytest takes to run the tests that a change can affect: `./dev test --changed`.

A change is what differs from the branch `main`, committed or not. Affected is a test file that
changed, one that imports a changed module at any remove, and every test of a product of which
anything changed. Commands run in processes, so what starts them counts as importing all of the
command line. What is not a module has rules of its own: `chosen`.

Left out are tests that reach the change in another way alone: by a name in a string, as products
are found, or by reading a file; and, unless the product of an engine changed, what `--quick` leaves
out of files that did not change themselves. The whole tier runs them.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tiers import OTHERS, TESTS, is_whole

ROOT = TESTS.parent
ROOTS = (ROOT / "src", TESTS, ROOT)
"""Where modules are found, in the order in which a name is looked up."""
EVERYTHING = ("pyproject.toml", "requirements/", "tests/conftest.py")
DOCUMENTS = ("docs/", "dev", "Makefile", ".ci/")
CONTRACTS = ("tests/contract/engines", "tests/contract/undo", "tests/security/authz")
"""What runs on each engine, and finds it by its name."""


_STATEMENTS = ("body", "orelse", "handlers", "finalbody", "cases")
"""The fields of a node of Python's syntax that hold further statements."""


def changed(revision: str, root: Path = ROOT) -> list[str]:
    """Paths below `root` that differ from where this branch left `revision`. Raises:
    CalledProcessError without such a revision."""

    def git(*words: str) -> list[str]:
        ended = subprocess.run(["git", *words], cwd=root, capture_output=True, check=True)
        return ended.stdout.decode().splitlines()

    base = git("merge-base", revision, "HEAD")[0]
    new = git("ls-files", "--others", "--exclude-standard")
    return sorted({*git("diff", "--name-only", base), *new})


def chosen(paths: Iterable[str], importers: Mapping[Path, set[Path]]) -> set[Path]:
    """The test files that a change of these paths affects."""
    files, modules = set(TESTS.rglob("test_*.py")), set[Path]()
    found: set[Path] = set()
    for path in paths:
        parts = Path(path).parts
        if path.startswith(EVERYTHING):
            return files
        if parts[:3] == ("src", "tidegate", "products") or parts[:2] == ("tests", "products"):
            product = parts[parts.index("products") + 1]
            found |= _below(files, f"tests/products/{product}")
            if is_engine(path):
                found |= {file for folder in CONTRACTS for file in _below(files, folder)}
        elif path.startswith(DOCUMENTS) or path.endswith(".md"):
            found |= _below(files, "tests/docs")
        elif parts[0] in ("src", "tests") and not path.endswith(".py"):
            found |= _below(files, str(Path(path).parent)) or files
        elif parts[0] == "bench":
            found |= _below(files, "tests/bench")
        if path.endswith(".py"):
            modules.add(ROOT / path)
    reached, waiting = set(modules), list(modules)
    while waiting:
        for each in importers.get(waiting.pop(), set()) - reached:
            reached.add(each)
            waiting.append(each)
    return found | {file for file in reached & files if file in modules or not is_whole(file)}


def is_engine(path: str) -> bool:
    """Whether the path is of a product whose engine the contract runs on, beyond the quick tier."""
    parts = Path(path).parts
    return parts[:3] == ("src", "tidegate", "products") and parts[3] in OTHERS | {"jdbc"}


def _below(files: set[Path], folder: str) -> set[Path]:
    return {file for file in files if file.is_relative_to(ROOT / folder)}


def imports() -> dict[Path, set[Path]]:
    """By module, the modules that import it, also inside functions."""
    modules: dict[str, Path] = {}
    for root in reversed(ROOTS):
        below = (ROOT / "bench").glob("*.py") if root == ROOT else root.rglob("*.py")
        modules |= {_name(file.relative_to(root)): file for file in below}
    importers: dict[Path, set[Path]] = defaultdict(set)
    for file in modules.values():
        for name in imported(file):
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                if found := modules.get(".".join(parts[:end])):
                    importers[found].add(file)
        if file.name == "conftest.py":
            importers[file] |= set(file.parent.rglob("test_*.py"))
    commands = modules["support.loaded_commands"]
    for name, file in modules.items():
        if name.startswith("tidegate.cli"):
            importers[file].add(commands)
    return importers


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imported(file: Path) -> Iterator[str]:
    """What a module imports, also inside functions: names of modules and of what is in them."""
    waiting: list[ast.AST] = [ast.parse(file.read_bytes())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield from (f"{node.module}.{each.name}" for each in node.names)
        else:  # expressions hold no import, and are most of a tree
            for field in _STATEMENTS:
                waiting += getattr(node, field, ())


def main(revision: str = "main") -> None:
    paths = changed(revision)
    files = chosen(paths, imports())
    if not any(map(is_engine, paths)):
        print("--quick")
    for file in sorted(files):
        print(file.relative_to(ROOT))
    print(
        f"dev: {len(files)} files of tests that a change since {revision} affects; not those that"
        " reach it by a name in a string or by reading a file (./dev test --all)",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
