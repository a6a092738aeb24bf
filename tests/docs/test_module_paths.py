"""A module that a document names is there: documents outlive many moves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("every product")

ROOT = Path(__file__).parents[2]
MADE_BY_READERS = frozenset({"products/trino/dialect.py", "products/counting/surface/__init__.py"})
"""Those that CONTRIBUTING.md has its reader make."""
OF_THE_PAST = frozenset({"sqlite/threads.py", "worker/worker_statement.py", "worker/pool.py"})
"""Those that decision 20 says it took the place of."""
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]
    if path.name != "CHANGELOG.md"
)
_FILES = [
    "/" + path.relative_to(ROOT).as_posix()
    for folder in ("src", "tests", "bench", "docs")
    for path in ROOT.glob(f"{folder}/**/*.py")
]
_MODULE = re.compile(r"`([a-z_0-9]+(?:/[a-z_0-9]+)*/[a-z_0-9]+\.py)[`:]")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_modules_that_a_document_names_are_there(document: str) -> None:
    named = set(_MODULE.findall((ROOT / document).read_text())) - MADE_BY_READERS - OF_THE_PAST
    named = {name for name in named if name.removeprefix("src/tidegate/") not in MADE_BY_READERS}
    missing = [name for name in named if not any(file.endswith("/" + name) for file in _FILES)]
    assert not missing, f"{document} names {missing}"
