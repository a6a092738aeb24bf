"""The indexes of documents name each page once; what replaced a decision is named on both sides."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DECISIONS = DOCS / "explanation" / "decisions"
RECORDS = {int(path.name[:4]): path for path in sorted(DECISIONS.glob("[0-9]*.md"))}
_LINK = re.compile(r"\]\(([^)#\s]+\.md)[^)]*\)")
_ENTRY = re.compile(r"^\* (\d+)\. \[(.+?)\]\((\d{4}-[^)]+\.md)\): (.+)$", re.MULTILINE)
_REPLACED = re.compile(r"^\*Superseded (?:in part )?by (.+)\.\*$", re.MULTILINE)
_REPLACED_IN_INDEX = re.compile(r"Superseded (?:in part )?by ([\d, ]+)\.$")
_DECISION_LINK = re.compile(r"\[(\d+)\]\((\d{4})-[^)]+\.md\)")


def entries() -> list[re.Match[str]]:
    return list(_ENTRY.finditer((DECISIONS / "README.md").read_text("utf-8")))


def replacements(number: int) -> list[int]:
    """The decisions that the record says it is superseded by."""
    found = _REPLACED.findall(RECORDS[number].read_text("utf-8"))
    return [int(shown) for line in found for shown, _ in _DECISION_LINK.findall(line)]


def test_every_page_stands_in_the_index_of_documents_once() -> None:
    index = DOCS / "README.md"
    listed = Counter((DOCS / place).resolve() for place in _LINK.findall(index.read_text("utf-8")))
    first = (DOCS / "tutorial" / "first-query.md").resolve()
    listed[first] -= 1  # it is also named where a newcomer begins
    pages = {path for path in DOCS.rglob("*.md") if path.parent != DECISIONS and path != index}
    pages.add(DECISIONS / "README.md")
    wanted = Counter(path.resolve() for path in pages)
    assert (wanted - listed, listed - wanted) == (Counter(), Counter()), f"correct {index}"


def test_every_decision_stands_in_the_index_of_decisions_once_with_its_title() -> None:
    listed = [(int(entry[1]), entry[3], entry[2]) for entry in entries()]
    there = [
        (number, path.name, path.read_text("utf-8").partition("\n")[0].partition(". ")[2])
        for number, path in RECORDS.items()
    ]
    assert (set(there) - set(listed), set(listed) - set(there)) == (set(), set()), (
        "add the line of a new decision to docs/explanation/decisions/README.md"
    )
    assert len(listed) == len(there)


def test_what_supersedes_a_decision_exists_and_is_named_in_the_index() -> None:
    shown = {
        int(entry[1]): [int(number) for number in found[1].split(", ")]
        for entry in entries()
        if (found := _REPLACED_IN_INDEX.search(entry[4])) is not None
    }
    said = {number: replacements(number) for number in RECORDS}
    assert shown == {number: later for number, later in said.items() if later}
    for number, later in shown.items():
        assert set(later) <= set(RECORDS) - {number}, RECORDS[number].name


def test_a_link_to_a_decision_that_supersedes_shows_its_number() -> None:
    wrong = [
        f"{path.name}: {shown}"
        for path in RECORDS.values()
        for line in _REPLACED.findall(path.read_text("utf-8"))
        for shown, file in _DECISION_LINK.findall(line)
        if int(shown) != int(file)
    ]
    assert wrong == []


def test_each_word_of_superseding_is_in_the_form_that_is_read() -> None:
    for number, path in RECORDS.items():
        if "uperseded" in path.read_text("utf-8"):
            assert replacements(number), path.name
    index = (DECISIONS / "README.md").read_text("utf-8")
    assert index.count("Superseded") == sum(bool(replacements(number)) for number in RECORDS)
