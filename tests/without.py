"""Runs tests on a tree from which products are taken out: one by `./dev without PRODUCT [ARGS...]`,
all but one by `./dev alone PRODUCT [ARGS...]`, which shows that it needs none of the others, and
all of them by `./dev alone kernel [ARGS...]`.

The tree is a copy of this one below `.cache`, with an environment of its own. Neither the
folder nor the tests of such a product are there: whatever imports it fails, in the tests and in
every process that they start. Left out are tests that say that they use it: by a fixture or a
parameter with the name of one of its engines, dialects, surfaces or commands, or by
`@pytest.mark.needs("PRODUCT")`, which a file gives as its `pytestmark`; "every product" is said by
what reads all of the documents.
All others must pass.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from tidegate.product import Product, built_in

ROOT = Path(__file__).parents[1]
OWN = frozenset({"postgres", "sqlite"})
"""Engines of the kernel, which the surface of a product may be called as."""
EVERY = "every product"
SOURCES = {"duckdb": "duck", "mysql": "maria"}
"""What tests call a source on the product's engine."""


def add_option(parser: pytest.Parser) -> None:
    """`--without`, which `main` gives."""
    parser.addoption(
        "--without", type=json.loads, default={}, help="products that are not there: ./dev without"
    )


def names_of(product: Product) -> list[str]:
    """What parameters of tests call a product by."""
    parts = (product.engines, product.dialects, product.surfaces, product.commands)
    names = {key.rstrip(":") for part in parts for key in part}
    names |= {entry.engine for entry in product.engines.values()}
    names |= {SOURCES.get(product.name, product.name)}
    return sorted({product.name, *names} - OWN)


def file_needs(file: Path, absent: Collection[str]) -> bool:
    """Whether a whole file says that it needs one of the products. It is read, not imported: it may
    import what is not there."""
    text = file.read_text()
    return "mark.needs(" in text and any(
        isinstance(call, ast.Call)
        and ast.unparse(call.func) == "pytest.mark.needs"
        and not {*absent, EVERY}.isdisjoint(map(ast.literal_eval, call.args))
        for each in ast.parse(text).body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "pytestmark"
        for call in ast.walk(each.value)
    )


def is_left_out(item: pytest.Item, absent: Mapping[str, Collection[str]]) -> bool:
    """Whether a test says that it uses one of the products, which are given with their names."""
    if any(not {*absent, EVERY}.isdisjoint(mark.args) for mark in item.iter_markers("needs")):
        return True
    words = set(getattr(item, "fixturenames", ()))
    callspec = getattr(item, "callspec", None)
    if callspec is not None:
        given = [value for value in callspec.params.values() if isinstance(value, str)]
        given += callspec.id.split("-")  # the names of values that are no texts
        words |= {re.split(r"\W", each.lower(), maxsplit=1)[0] for each in given}
    return any(not words.isdisjoint(names) for names in absent.values())


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests that do not use the products among those that were collected."""
    left = [item for item in items if is_left_out(item, config.option.without)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not is_left_out(item, config.option.without)]


def make_tree(tree: Path, products: Collection[str]) -> None:
    """Make the tree without the products: what git knows or would add, and files that are built."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    absent = [
        Path(part, "products", name) for part in ("src/tidegate", "tests") for name in products
    ]
    built = [file.relative_to(ROOT) for file in (ROOT / "src").rglob("*.jar")]
    files = {
        file
        for file in (*map(Path, listed.strip("\0").split("\0")), *built)
        if (ROOT / file).is_file() and not any(map(file.is_relative_to, absent))
    }
    for place in absent:
        shutil.rmtree(tree / place, ignore_errors=True)
    for top in {file.parts[0] for file in files}:
        for old in (tree / top).rglob("*"):
            if old.is_file() and old.suffix != ".pyc" and old.relative_to(tree) not in files:
                old.unlink()
    for file in files:
        _copy(ROOT / file, tree / file)


def _copy(file: Path, target: Path) -> None:
    """Copy what changed, so that the next run need not compile all of it again."""
    new = file.stat()
    if target.exists() and target.stat()[6:9:2] == new[6:9:2]:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target)


def make_environment(tree: Path) -> Path:
    """The tree's interpreter: its package, and the packages of the interpreter that runs this."""
    place = tree / ".venv"
    python = place / "bin" / "python"
    if not python.exists():
        make = [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(place)]
        subprocess.run(make, check=True)
        (tree / ".cache").symlink_to(ROOT / ".cache")
    packages = sysconfig.get_path("purelib")
    own = next(place.glob("lib/python*/site-packages"))
    # The editable package's own line, in a .pth of the other environment, is read in that alone.
    (own / "tree.pth").write_text(f"{tree / 'src'}\n{packages}\n")
    script = (Path(sys.executable).parent / "tidegate").read_text()
    (place / "bin" / "tidegate").write_text(script.replace(sys.executable, str(python)))
    (place / "bin" / "tidegate").chmod(0o755)
    return python


def main(how: str = "", product: str = "", *words: str) -> None:
    known = {each.name: names_of(each) for each in built_in()}
    if product not in known and (how, product) != ("alone", "kernel"):
        sys.exit(f"dev: name a product: {', '.join(known)}")
    absent = {name: known[name] for name in known if (name == product) == (how == "without")}
    tree = ROOT / ".cache" / how / product
    make_tree(tree, absent)
    python = make_environment(tree)
    os.chdir(tree)
    os.execv(python, [str(python), "-m", "pytest", f"--without={json.dumps(absent)}", *words])


if __name__ == "__main__":
    main(*sys.argv[1:])
