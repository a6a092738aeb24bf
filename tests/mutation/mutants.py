"""The mutants of a module: one small change of its text each."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

MODULE = "<module>"
EACH = 20
"""Of a list of words, every one of so many is left out in a mutant."""

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_EMPTY = {"str": "''", "bytes": "b''", "tuple": "()", "list": "[]", "frozenset": "frozenset()"}
_NO_BEHAVIOR = {"frozen", "strict", "gc", "kw_only", "cache_hash", "maxsize", "daemon"}
"""Keywords whose values tests cannot or need not see."""
_PATTERNS = {"compile", "search", "match", "fullmatch", "sub", "finditer", "findall", "split"}


@dataclass(frozen=True)
class Mutant:
    """A change: the bytes from `start` to `end` of the module become `text`."""

    path: Path
    function: str
    """The qualified name of the function around it, or `<module>`."""
    kind: str
    line: int
    last_line: int
    start: int
    end: int
    text: str
    before: str
    """What is changed and what it becomes, for readers; a removed element becomes nothing."""
    after: str
    number: int = 0
    """Which one it is of those that read the same in this function."""

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What it is called in `survivors.toml`: no line numbers, which every change moves."""
        tail = str(self.path).split("tidegate/", 1)[1]
        return tail, self.function, _folded(self.before), _folded(self.after), self.number

    def __str__(self) -> str:
        where = f"{self.key[0]}:{self.line} {self.function}"
        number = f" (number {self.number})" if self.number else ""
        return f"{where}{number}\n    - {_folded(self.before)}\n    + {_folded(self.after)}"


def _folded(text: str) -> str:
    return " ".join(text.split())


def mutants_of(path: Path) -> list[Mutant]:
    """All of them, in the order of the text. Not each one compiles: see `compiles`."""
    seen: dict[tuple, int] = {}
    found: list[Mutant] = []
    for mutant in _Maker(path, path.read_bytes()).made():
        same = (mutant.function, _folded(mutant.before), _folded(mutant.after))
        number = seen[same] = seen.get(same, -1) + 1
        found.append(replace(mutant, number=number))
    return found


def compiles(mutant: Mutant) -> bool:
    try:
        compile(mutant.applied(mutant.path.read_bytes()), str(mutant.path), "exec")
    except (SyntaxError, ValueError):
        return False
    return True


class _Maker:
    def __init__(self, path: Path, source: bytes) -> None:
        self._path = path
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._functions: list[str] = []
        self._scopes: list[str] = []
        self._returns: list[str] = []

    def made(self) -> Iterator[Mutant]:
        yield from self._body(ast.parse(self._source).body)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _mutant(self, node: ast.AST, kind: str, after: str) -> Mutant:
        start, end = self._span(node)
        before = self._source[start:end].decode()
        return self._made(node, kind, (start, end), after, before, after)

    def _made(
        self, node: ast.AST, kind: str, span: tuple[int, int], text: str, before: str, after: str
    ) -> Mutant:
        function = self._functions[-1] if self._functions else MODULE
        lines = (node.lineno, node.end_lineno)
        return Mutant(self._path, function, kind, *lines, *span, text, before, after)

    def _without(self, node: ast.AST, element: str, text: str) -> Mutant:
        """One of the elements of a collection is missing."""
        return self._made(node, "element", self._span(node), text, element, "")

    def _expression(self, node: ast.expr, kind: str, new: ast.expr) -> Mutant:
        return self._mutant(node, kind, f"({ast.unparse(ast.fix_missing_locations(new))})")

    # Statements.

    def _body(self, body: list[ast.stmt]) -> Iterator[Mutant]:
        for index, statement in enumerate(body):
            if index == 0 and _is_docstring(statement):
                continue
            yield from self._statement(statement)

    def _statement(self, node: ast.stmt) -> Iterator[Mutant]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self._function(node)
            case ast.ClassDef():
                self._scopes.append(node.name)
                yield from self._body(node.body)
                self._scopes.pop()
            case ast.If(test=test) if "TYPE_CHECKING" not in ast.unparse(test):
                yield self._mutant(test, "condition", "True")
                yield self._mutant(test, "condition", "False")
                yield from self._children(node)
            case ast.Return(value=value) if value is not None:
                yield from self._returned(value)
                yield from self._children(node)
            case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.If():
                return
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                return
            case ast.AnnAssign(value=value):
                if value is not None:
                    yield from self._value(value)
            case _:
                if _may_be_dropped(node):
                    yield self._mutant(node, "statement", "pass")
                yield from self._children(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Mutant]:
        if any("overload" in ast.unparse(each) for each in node.decorator_list):
            return
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                yield from self._value(default)
        self._scopes.append(node.name)
        self._functions.append(".".join(self._scopes))
        self._scopes.append("<locals>")
        self._returns.append(ast.unparse(node.returns) if node.returns else "")
        yield from self._body(node.body)
        self._returns.pop()
        self._scopes.pop()
        self._functions.pop()
        self._scopes.pop()

    def _returned(self, value: ast.expr) -> Iterator[Mutant]:
        kind = self._returns[-1] if self._returns else ""
        is_constant = isinstance(value, ast.Constant)
        if kind.startswith(("bool", "TypeGuard", "TypeIs")):
            if not is_constant:
                yield self._mutant(value, "return", "True")
                yield self._mutant(value, "return", "False")
        elif empty := _EMPTY.get(kind.split("[")[0]):
            if ast.unparse(value) != empty:
                yield self._mutant(value, "return", empty)
        elif not is_constant or value.value is not None:
            yield self._mutant(value, "return", "None")

    def _children(self, node: ast.AST) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            yield from self._any(child)

    def _any(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.stmt():
                yield from self._statement(node)
            case ast.expr():
                yield from self._value(node)
            case ast.keyword(arg=arg) if arg in _NO_BEHAVIOR:
                return
            case ast.MatchOr(patterns=patterns):
                for index in range(len(patterns)):
                    kept = patterns[:index] + patterns[index + 1 :]
                    text = " | ".join(ast.unparse(each) for each in kept)
                    yield self._without(node, ast.unparse(patterns[index]), f"({text})")
            case _:
                yield from self._children(node)

    # Expressions.

    def _value(self, node: ast.expr) -> Iterator[Mutant]:
        match node:
            case ast.JoinedStr():  # positions inside are not those of the file before Python 3.12
                return
            case ast.Constant(value=value):
                if isinstance(value, bool):
                    yield self._mutant(node, "constant", str(not value))
                elif isinstance(value, int | float):
                    yield self._mutant(node, "constant", repr(value + 1))
                return
            case ast.Compare(ops=ops):
                for index, operator in enumerate(ops):
                    for other in _COMPARISONS[type(operator)]:
                        new = copy.deepcopy(node)
                        new.ops[index] = other()
                        yield self._expression(node, "comparison", new)
            case ast.BoolOp(op=op, values=values):  # swapped, and each operand left out
                other = ast.Or() if isinstance(op, ast.And) else ast.And()
                yield self._expression(node, "boolean", ast.BoolOp(other, values))
                for index in range(len(values)):
                    kept = values[:index] + values[index + 1 :]
                    new = ast.BoolOp(op, kept) if len(kept) > 1 else kept[0]
                    yield self._expression(node, "operand", new)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._expression(node, "not", operand)
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _ARITHMETIC:
                if not _is_text(left) and not _is_text(right):
                    new = ast.BinOp(left, _ARITHMETIC[type(op)](), right)
                    yield self._expression(node, "arithmetic", new)
            case ast.IfExp(test=test):
                yield self._mutant(test, "condition", "True")
                yield self._mutant(test, "condition", "False")
            case ast.Set() | ast.List() | ast.Tuple() | ast.Dict():
                yield from self._elements(node)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                for place, generator in enumerate(node.generators):
                    for index in range(len(generator.ifs)):
                        new = copy.deepcopy(node)
                        del new.generators[place].ifs[index]
                        yield self._expression(node, "filter", new)
            case ast.Call():
                yield from self._call(node)
            case ast.Subscript(value=value, slice=part):
                yield from self._value(value)
                if not isinstance(part, ast.Tuple):
                    yield from self._value(part)
                return
            case ast.Lambda():
                yield from self._value(node.body)
                return
            case _:
                pass
        yield from self._children(node)

    def _elements(self, node: ast.Set | ast.List | ast.Tuple | ast.Dict) -> Iterator[Mutant]:
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return
        elements = node.keys if isinstance(node, ast.Dict) else node.elts
        simple = all(isinstance(each, ast.Constant | ast.Attribute) for each in elements)
        if isinstance(node, ast.Tuple) and not simple:
            return
        for index, element in enumerate(elements):
            new = copy.deepcopy(node)
            if isinstance(new, ast.Dict):
                del new.keys[index], new.values[index]
            else:
                del new.elts[index]
            is_empty_set = isinstance(new, ast.Set) and not new.elts
            text = "set()" if is_empty_set else ast.unparse(new)
            yield self._without(node, ast.unparse(element) if element else "**", f"({text})")

    def _call(self, node: ast.Call) -> Iterator[Mutant]:
        """Words of `words("a b c")` and alternatives of a pattern are elements, too."""
        name = ast.unparse(node.func).rsplit(".", 1)[-1]
        for argument in node.args[:1]:
            if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                continue
            if name == "words":
                yield from self._words(argument)
            elif name in _PATTERNS:
                for without, kept in _fewer_alternatives(argument.value):
                    yield self._without(argument, without, repr(kept))

    def _words(self, node: ast.Constant) -> Iterator[Mutant]:
        """A few of a list of names: hundreds of them are data, and one is like the next."""
        start, end = self._span(node)
        named = re.finditer(rb"[^\s\"']+", self._source[start:end])
        for index, word in enumerate(named):
            if index % EACH == 0:
                span = (start + word.start(), start + word.end())
                yield self._made(node, "word", span, "", word[0].decode(), "")


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _may_be_dropped(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete():
            return True
        case ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(each, ast.Attribute | ast.Subscript) for each in targets)
        case _:
            return False


def _fewer_alternatives(pattern: str) -> Iterator[tuple[str, str]]:
    """Each alternative of each group, and the pattern without it."""
    for without, kept in _without_one(pattern):
        try:
            re.compile(kept)
        except re.error:
            continue
        yield without, kept


def _without_one(pattern: str) -> Iterator[tuple[str, str]]:
    bars: dict[int, list[int]] = {}
    """By the start of its group: where an alternative begins or the group ends."""
    opened = [0]
    bars[0] = [0]
    index, in_class = 0, False
    while index < len(pattern):
        sign = pattern[index]
        if sign == "\\":
            index += 2
            continue
        if in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
            if pattern[index + 1 : index + 2] in ("]", "^"):
                index += 2 if pattern[index + 1 : index + 3] == "^]" else 1
        elif sign == "(":
            prefix = re.match(r"\((\?(?:[aiLmsux-]*:|P<\w+>|<?[=!]))?", pattern[index:])
            begin = index + (prefix.end() if prefix else 1)
            opened.append(begin)
            bars[begin] = [begin]
        elif sign == ")" and len(opened) > 1:
            bars[opened.pop()].append(index + 1)
        elif sign == "|":
            bars[opened[-1]].append(index + 1)
        index += 1
    bars[0].append(len(pattern) + 1)
    for places in bars.values():
        if len(places) < 3:
            continue
        for first, after in pairwise(places):
            if after == places[-1]:
                yield pattern[first : after - 1], pattern[: first - 1] + pattern[after - 1 :]
            else:
                yield pattern[first : after - 1], pattern[:first] + pattern[after:]
