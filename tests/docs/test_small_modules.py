"""A module of under 40 lines has a reason of its own: it is loaded by its name, several modules
share it, or it is named here."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import changed
from support.documents import ROOT

pytestmark = pytest.mark.needs("every product")

SOURCES = ROOT / "src"
SMALL = 40

REASONS = {
    "tidegate.products.cloud.surface.statements": "the one place where arguments become SQL",
    "tidegate.products.jdbc.extraction.ordering": "reads texts, and its one user is a command",
    "tidegate.products.duckdb.server_panels": "statements of panels; its one user is large",
    "tidegate.identity.granted_rights": "its one user is the composition root",
    "tidegate.sql.dialects.sqlite_server": "as that of PostgreSQL, which is larger",
    "tidegate.sql.masking.view_definition": "reads a definition; its one user is large",
}
"""Modules with one user, and why each is not a part of it."""

BY_NAME = re.compile(
    r"\.(?:cli\.commands|commands|jdbc\.dialects)\.\w+$|\.engine\.account$"
    r"|\.engines\.\w+\.account(?:_setup)?$"
)
"""Modules that a rule finds by their names: commands, dialects of JDBC, accounts of engines."""


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(file): file for file in sorted(SOURCES.rglob("*.py"))}
TEXTS = {name: file.read_text(encoding="utf-8") for name, file in FILES.items()}


def imported(file: Path) -> set[str]:
    """The modules of ours that a module imports."""
    names = set(changed.imported(file))
    return {name if name in FILES else name.rpartition(".")[0] for name in names} & FILES.keys()


@cache
def users() -> Counter[str]:
    """How many modules import each."""
    return Counter(each for file in FILES.values() for each in imported(file))


def is_small(name: str) -> bool:
    return (
        FILES[name].name not in ("__init__.py", "__main__.py", "product.py")
        and TEXTS[name].count("\n") < SMALL
    )


def is_loaded_by_name(name: str) -> bool:
    return BY_NAME.search(name) is not None or any(
        re.search(rf'"{re.escape(name)}[":]', text) for text in TEXTS.values()
    )


def test_a_small_module_has_a_reason() -> None:
    alone = {
        name
        for name in FILES
        if is_small(name) and users()[name] < 2 and not is_loaded_by_name(name)
    }
    assert alone == REASONS.keys()
