"""A function takes seven parameters at most: what belongs together is a value with a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from support.documents import ROOT

SOURCES = ROOT / "src"
MOST = 7


def functions(node: ast.AST, name: str) -> Iterator[tuple[str, ast.arguments]]:
    """Each function in a module, by its qualified name, with its parameters."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{name}.{child.name}", child.args
            yield from functions(child, f"{name}.{child.name}")
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, f"{name}.{child.name}")
        else:
            yield from functions(child, name)


def count(parameters: ast.arguments) -> int:
    """How many there are, without the object or the class itself, *args and **kwargs."""
    named = [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs]
    return sum(each.arg not in ("self", "cls") for each in named)


def test_a_function_takes_seven_parameters_at_most() -> None:
    """Generated constructors of structs and tuples are not functions of the text: they may."""
    long = {
        name
        for file in sorted(SOURCES.rglob("*.py"))
        for name, parameters in functions(
            ast.parse(file.read_text(encoding="utf-8")),
            ".".join(file.relative_to(SOURCES).with_suffix("").parts),
        )
        if count(parameters) > MOST
    }
    assert not long
