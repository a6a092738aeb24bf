"""All that is known of a dialect is in its own module."""

from __future__ import annotations

import re
from pathlib import Path

import tidegate

_SOURCE = Path(tidegate.__file__).parent
_NAME = r"[\"'](?:sqlite|postgres|postgresql|mysql|mariadb|duckdb)[\"']"
_BRANCH = re.compile(
    rf"\b\w*(?:dialect|spoken|parser)\w*(?:\.name)?\)? *(?:==|!=|in|not in) *[\[({{]*{_NAME}"
    rf"|(?:==|!=) *{_NAME}|case {_NAME}"
)
_TABLE_KEY = re.compile(rf"^ *{_NAME}: (?!Entry|POSTGRES|MYSQL)", re.MULTILINE)


def test_no_module_outside_the_dialects_branches_on_the_name_of_one() -> None:
    found: list[str] = []
    for path in sorted(_SOURCE.rglob("*.py")):
        place = path.relative_to(_SOURCE)
        if {"dialects", "dialect.py"} & set(place.parts):
            continue
        text = path.read_text()
        # `config/installation.py` lists extras of the package, some of them named like a dialect;
        # an engine and a product name their own dialects.
        names_others = place.parts[0] in ("engines", "cli", "demo", "products") or place.name in (
            "installation.py",
            "product.py",
        )
        pattern = _BRANCH if names_others else _BOTH
        found += [f"{place}: {hit[0].strip()}" for hit in pattern.finditer(text)]
    assert found == []


_BOTH = re.compile(f"{_BRANCH.pattern}|{_TABLE_KEY.pattern}", re.MULTILINE)
