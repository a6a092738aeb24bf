"""What errors advise exists on the surface that shows them: no tool of another surface, and a tool
by name where the advice is to list or to describe something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tidegate
from tidegate.config.model import Config
from tidegate.errors import ERRORS, Code, TidegateError
from tidegate.gateway.gateway import BY_OPERATOR
from tidegate.model.replies import Reply
from tidegate.products.console.advice import GUIDE as CONSOLE
from tidegate.products.console.advice import HINTS as OF_CONSOLE
from tidegate.products.console.advice import advice
from tidegate.products.pgedge.surface import errors as postgres
from tidegate.products.workbench.surface import errors as workbench
from tidegate.surfaces.core import errors as core
from tidegate.surfaces.hints import TOPICS, Guide
from tidegate.surfaces.registry import open_surface

pytestmark = pytest.mark.needs("console", "pgedge", "workbench")
ROOT = Path(tidegate.__file__).parent
GUIDES = {"core": core.GUIDE, "workbench": workbench.GUIDE, "postgres": postgres.GUIDE}
NOT_FOR_CALLERS = {"cli", "demo", "bridge", "config", "maven", "commands"}
"""Packages whose errors a person reads at the command line."""
OF_PAGES = ("products", "console")
"""The package whose errors a person reads on the console's pages, beside what they speak of."""
SURFACES = {"pgedge": "postgres"}
"""The surface of a product that has another name."""

PLAIN = re.compile(
    r"\b(?:with|call|see|use|by) (search|describe|sources|more|query|explain)\b(?! \w)"
)
"""Tools of core are ordinary words: so they are meant only behind such a word."""
FACILITY = re.compile(
    r"\b(list|search)\b[^.]*\b(tables?|sources?|connections?|them)\b|\bdescribe the\b"
    r"|search for it",
    re.IGNORECASE,
)
COMMANDS = re.compile(r"`tidegate [^`]*`|`[a-z]+\.[a-z_.]+`|Ask the operator to [^.]*\.")
"""Commands, settings and tasks of the operator."""
NAMED_TOOL = re.compile(r"\b(?:list|describe|get|connect|open|datalevin|query)_[a-z_]+\b")
"""A tool of any surface, by its form."""
FOR_PROGRAMS = re.compile(
    r"\bask(?:ing)? the user\b|\b(?:this|another|valid|new) token\b|\bBearer\b|\bcall id\b"
    r"|\bthe tool\b|\bthe operator\b|\bdo not retry\b|^Send (?:it|the call|the statement) again\.$",
    re.IGNORECASE,
)
"""Advice that a person at a page cannot follow."""


def names_of_tools(surface: str, **section: object) -> set[str]:
    config = Config(surface={surface: section} if section else {})
    return set(open_surface(surface, NoGate(), config).tools_by_name)


class NoGate:
    """What lists a surface's tools sends nothing through the gate."""

    choices = None

    async def handle(self, call: object) -> Reply:
        raise AssertionError(call)

    async def answer_approval(self, needed: object, call: object, allow: bool) -> None:
        raise AssertionError(needed)

    def end_session(self, session: str) -> None:
        raise AssertionError(session)


def texts(node: ast.AST) -> Iterator[str]:
    """The texts in an expression, with a word for what is filled in."""
    inner = {id(part) for each in ast.walk(node) if isinstance(each, ast.JoinedStr)
             for part in each.values}  # fmt: skip
    for each in ast.walk(node):
        if isinstance(each, ast.JoinedStr):
            yield "".join(
                [str(part.value) if isinstance(part, ast.Constant) else "NAME"
                 for part in each.values]
            )  # fmt: skip
        elif isinstance(each, ast.Constant) and id(each) not in inner:
            yield from [each.value] if isinstance(each.value, str) else []


@cache
def hints_in(path: Path) -> list[str]:
    """The hints that a module gives: what it passes as `hint` or `find`, returns from a function
    of that name, or keeps in a table of an `errors` module."""
    return [*found_hints(ast.parse(path.read_text()), path.name == "errors.py")]


def found_hints(tree: ast.Module, has_tables: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("hint", "find"):
            yield from texts(node.value)
        elif isinstance(node, ast.FunctionDef) and "hint" in node.name:
            for each in ast.walk(node):
                if isinstance(each, ast.Return) and each.value is not None:
                    yield from texts(each.value)
        elif isinstance(node, ast.Dict | ast.Tuple) and has_tables:
            for text in texts(node):
                if text.endswith(".") and " " in text:
                    yield text


def surface_of(parts: tuple[str, ...]) -> str:
    """The surface that a module is part of; empty if it is part of none."""
    if parts[0] == "products" and "surface" in parts:
        return SURFACES.get(parts[1], parts[1])
    return parts[1] if parts[0] == "surfaces" and len(parts) > 2 else ""


@cache
def hints() -> dict[str, set[str]]:
    """All hints of the package that a caller may get, with the folders of surfaces that give them,
    or `` where it is no surface's own."""
    found: dict[str, set[str]] = {each.hint: {""} for each in ERRORS.values()}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).parts
        if NOT_FOR_CALLERS & set(parts[:-1]) or parts[:2] == OF_PAGES:
            continue
        owner = surface_of(parts)
        for hint in hints_in(path):
            found.setdefault(hint, set()).add(owner)
    return found


def hints_for_pages() -> set[str]:
    """All hints of the package that a page of the console may show: not those of surfaces and of
    other edges."""
    found = {each.hint for each in ERRORS.values()}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).parts
        if NOT_FOR_CALLERS & set(parts[:-1]) or parts[0] in ("surfaces", "edges"):
            continue
        if surface_of(parts) or parts[:2] == ("products", "pgwire"):
            continue
        found.update(hints_in(path))
    return found


OF_CODES = {mapping.hint for mapping in ERRORS.values()}
TOOLS = {
    "core": names_of_tools("core"),
    "workbench": names_of_tools("workbench"),
    "postgres": names_of_tools("postgres"),
}
EXTENDED = names_of_tools("workbench", extended=True)
ALL = set().union(EXTENDED, *TOOLS.values())


def shown(surface: str) -> Iterator[tuple[str, str]]:
    """Each hint that callers of the surface may get, and how it is shown to them."""
    guide: Guide = GUIDES[surface]
    for hint, owners in hints().items():
        if hint in OF_CODES and hint not in TOPICS:
            continue  # comes with its code, below
        if "" in owners or surface in owners:
            yield hint, guide.hint(TidegateError(Code.SQL_FAILED, "It failed", hint=hint))
    for code, mapping in ERRORS.items():
        yield mapping.hint, guide.hint(TidegateError(code, "It failed"))


def foreign(text: str, own: set[str]) -> list[str]:
    """The tools that a text names and that are not among `own`."""
    plain = COMMANDS.sub("", text)
    words = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", plain)) & ALL
    return sorted((words | set(PLAIN.findall(plain))) - own)


def test_enough_hints_are_collected() -> None:
    assert len(hints()) > 200
    assert set(TOPICS) <= set(hints())
    assert "Cast one side: CAST(… AS NAME) or CAST(… AS NAME)." in hints()


@pytest.mark.parametrize("surface", sorted(GUIDES))
def test_no_hint_names_a_tool_of_another_surface(surface: str) -> None:
    own = EXTENDED if surface == "workbench" else TOOLS[surface]
    wrong = {text: found for _, text in shown(surface) if (found := foreign(text, own))}
    assert wrong == {}


@pytest.mark.parametrize("surface", sorted(GUIDES))
def test_advice_to_list_or_describe_names_the_tool_for_it(surface: str) -> None:
    wrong = [
        text
        for hint, text in shown(surface)
        if FACILITY.search(COMMANDS.sub("", hint))
        and FACILITY.search(COMMANDS.sub("", text))
        and not any(re.search(rf"\b{tool}\b", text) for tool in TOOLS[surface])
    ]
    assert wrong == []


def shown_on_pages() -> Iterator[tuple[str, str]]:
    """Each hint that a page of the console may show, and how it is shown there."""
    for hint in hints_for_pages():
        if hint not in OF_CODES or hint in TOPICS:
            yield hint, advice(TidegateError(Code.SQL_FAILED, "It failed", hint=hint))
    yield BY_OPERATOR, advice(TidegateError(Code.CALL_CANCELLED, "It ended", hint=BY_OPERATOR))
    for code, mapping in ERRORS.items():
        yield mapping.hint, advice(TidegateError(code, "It failed"))


def test_a_person_at_a_page_of_the_console_can_follow_each_advice_there() -> None:
    wrong = {
        hint: text
        for hint, text in shown_on_pages()
        if foreign(text, set()) or FOR_PROGRAMS.search(text) or NAMED_TOOL.search(text)
    }
    assert wrong == {}


def test_a_page_of_the_console_names_the_page_where_the_advice_is_to_list_or_describe() -> None:
    wrong = {
        hint: text
        for hint, text in shown_on_pages()
        if FACILITY.search(COMMANDS.sub("", hint))
        and FACILITY.search(COMMANDS.sub("", text))
        and not re.search(r"\b(page|Inbox|Activity)\b|list of tables", text)
    }
    assert wrong == {}


def test_advice_for_programs_that_the_console_replaces_is_still_given_somewhere() -> None:
    assert set(OF_CONSOLE) <= hints_for_pages() | {BY_OPERATOR}
    assert all(text.endswith(".") for text in CONSOLE.codes.values())


def test_the_usual_tools_of_the_workbench_are_enough_for_its_guide() -> None:
    guide = GUIDES["workbench"]
    for text in (guide.tables, guide.columns, guide.sources, *guide.codes.values()):
        assert foreign(text, TOOLS["workbench"]) == []


def test_the_check_finds_a_tool_of_another_surface() -> None:
    assert foreign("Find it with search.", TOOLS["postgres"]) == ["search"]
    assert foreign("See the tables with list_tables.", TOOLS["core"]) == ["list_tables"]
    assert foreign("Run `tidegate source list`.", TOOLS["core"]) == []
    assert FACILITY.search("Search or list the tables, then use a name from there.")
