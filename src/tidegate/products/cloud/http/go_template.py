"""Interprets the Go templates of provider documents.

The language is that of Go's package text/template, with the functions that the documents use.
Templates are data from a registry: nothing here can reach beyond its input, and output and steps
are bounded. Two differences keep values exact: whole numbers are never written as 1e+06, and `%q`
writes JSON strings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal, NoReturn, cast

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.template_functions import (
    CONSTANTS,
    FUNCTIONS,
    TemplateError,
    is_true,
    kind_of,
    member,
    printed,
)

MOST_OUTPUT: Final = 64 * 1_048_576
"""Characters that one rendering may write."""
MOST_STEPS: Final = 5_000_000
_DEEPEST: Final = 100
_BLANKS: Final = " \t\r\n"
_LONGEST: Final = 262_144

_START: Final = re.compile(
    # `{{{` is a brace and an action: no action begins with a brace.
    r"\{\{(?!\{)(-(?=\s))?"
)
_ACTION: Final = re.compile(
    r"\s*(?:/\*(?:(?!\*/)(?:.|\n))*\*/"
    r"|((?:\"(?:\\.|[^\"\\])*\"|`[^`]*`|(?!\s-?\}\}|\}\})[^\"`])*))\s*(-)?\}\}"
)
_TOKEN: Final = re.compile(
    r"\s+|(?P<text>\"(?:\\.|[^\"\\])*\"|`[^`]*`)|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<variable>\$\w*)|(?P<field>\.\w+)|(?P<dot>\.)|(?P<word>\w+)|(?P<mark>:=|[=|(),])"
)


class _Literal(msgspec.Struct, frozen=True):
    value: Any


class _Dot(msgspec.Struct, frozen=True):
    """`.`"""


class _Variable(msgspec.Struct, frozen=True):
    name: str


class _Field(msgspec.Struct, frozen=True):
    """`of.name`"""

    of: Any
    name: str


class _Call(msgspec.Struct, frozen=True):
    function: str
    arguments: tuple[Any, ...]


class _Text(msgspec.Struct, frozen=True):
    text: str


class _Output(msgspec.Struct, frozen=True):
    value: Any


class _Assign(msgspec.Struct, frozen=True):
    name: str
    value: Any
    declares: bool


class _If(msgspec.Struct, frozen=True):
    condition: Any
    declared: str
    """The variable of `if $x := …`; empty: none."""
    then: tuple[Any, ...]
    otherwise: tuple[Any, ...]
    moves_dot: bool
    """`with`"""


class _Range(msgspec.Struct, frozen=True):
    over: Any
    names: tuple[str, ...]
    body: tuple[Any, ...]
    otherwise: tuple[Any, ...]


class _Include(msgspec.Struct, frozen=True):
    """`template "name" value`"""

    name: str
    value: Any
    """None: there is none, and the template's `.` is nil."""


class _Jump(msgspec.Struct, frozen=True):
    """`break` or `continue`"""

    word: Literal["break", "continue"]


class Template(msgspec.Struct, frozen=True):
    """A template that was read, and those that it defines by name."""

    nodes: tuple[Any, ...]
    defined: Mapping[str, tuple[Any, ...]]

    def render(self, data: Any) -> str:
        """The text for `data`, values as JSON has them. Raises: TemplateError."""
        return _Rendering(data, self.defined).run(self.nodes)


@lru_cache(2_048)
def parse_template(text: str) -> Template:
    """Read a template. Raises: TemplateError that says what is not understood."""
    if len(text) > _LONGEST:
        raise TemplateError(f"it is longer than {_LONGEST:,} characters")
    parser = _Parser(text)
    return Template(parser.parse(), parser.defined)


class _Parser:
    """Cuts a text into parts: texts, and the tokens of an action."""

    def __init__(self, text: str) -> None:
        self._parts: list[str | list[tuple[str, str]]] = []
        self.defined: dict[str, tuple[Any, ...]] = {}
        self._included: set[str] = set()
        self._loops = 0
        at, trims = 0, False
        while (start := _START.search(text, at)) is not None:
            before = text[at : start.start()]
            before = before.lstrip(_BLANKS) if trims else before
            self._parts.append(before.rstrip(_BLANKS) if start[1] else before)
            action = _ACTION.match(text, start.end())
            if action is None:
                raise TemplateError(f"an action has no end: {text[start.start() :][:60]!r}")
            if action[1] is not None:
                self._parts.append(_tokens(action[1].strip()))
            at, trims = action.end(), action[2] is not None
        self._parts.append(text[at:].lstrip(_BLANKS) if trims else text[at:])
        self._at = 0

    def parse(self) -> tuple[Any, ...]:
        nodes, end = self._nodes(0)
        if end:
            raise TemplateError(f"`{{{{ {end[0][1]} }}}}` has nothing to close")
        if absent := sorted(self._included - self.defined.keys()):
            raise TemplateError(f"the template `{absent[0][:60]}` is not defined")
        return nodes

    def _nodes(self, depth: int) -> tuple[tuple[Any, ...], list[tuple[str, str]]]:
        """Nodes up to `end` or `else`, and the tokens of that; none at the end of the text."""
        if depth > _DEEPEST:
            raise TemplateError(f"it is nested deeper than {_DEEPEST} levels")
        nodes: list[Any] = []
        while self._at < len(self._parts):
            part = self._parts[self._at]
            self._at += 1
            if isinstance(part, str):
                if part:
                    nodes.append(_Text(part))
                continue
            if not part:
                raise TemplateError("an action is empty")
            kind, word = part[0]
            if kind == "word" and word in ("end", "else"):
                return tuple(nodes), part
            if kind == "word" and word in ("if", "with", "range"):
                nodes.append(self._block(word, part[1:], depth))
            elif kind == "word" and word in ("define", "template", "block"):
                nodes += self._named(word, part[1:], depth)
            elif word == "break" or word == "continue":
                if not self._loops or len(part) > 1:
                    raise TemplateError(f"`{word}` is in no range")
                nodes.append(_Jump(word))
            else:
                nodes.append(_statement(part))
        return tuple(nodes), []

    def _named(self, word: str, head: list[tuple[str, str]], depth: int) -> list[Any]:
        """`template` puts in what has a name, `define` gives it, `block` does both."""
        if not head or head[0][0] != "text":
            raise TemplateError(f"`{word}` has no name")
        name = _unquoted(head[0][1])
        value = _pipeline(head[1:]) if head[1:] else None
        if word != "template":
            if word == "define" and (depth or value is not None):
                raise TemplateError("`define` must be alone, with a name and nothing else")
            loops, self._loops = self._loops, 0
            body, end = self._nodes(depth + 1)
            self._loops = loops
            if [each[1] for each in end] != ["end"]:
                raise TemplateError(f"`{{{{ {word} }}}}` has no end")
            self.defined[name] = body
        if word == "define":
            return []
        self._included.add(name)
        return [_Include(name, value)]

    def _block(self, word: str, head: list[tuple[str, str]], depth: int) -> Any:
        names, value = _declaration(head)
        self._loops += word == "range"
        body, end = self._nodes(depth + 1)
        self._loops -= word == "range"
        otherwise: tuple[Any, ...] = ()
        if end and end[0][1] == "else":
            if len(end) > 1 and end[1][1] in ("if", "with"):
                otherwise = (self._block(end[1][1], end[2:], depth + 1),)
                end = [("word", "end")]
            else:
                otherwise, end = self._nodes(depth + 1)
        if not end or end[0][1] != "end":
            raise TemplateError(f"`{{{{ {word} }}}}` has no end")
        if word == "range":
            return _Range(value, names, body, otherwise)
        return _If(value, names[0] if names else "", body, otherwise, word == "with")


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise TemplateError(f"`{text[at : at + 40]}` is not understood")
        if match.lastgroup is not None:
            # A field directly after a value belongs to it; after a blank it is a separate operand.
            glued = match.lastgroup == "field" and at > 0 and not text[at - 1].isspace()
            glued = glued and text[at - 1] not in "(|,="
            tokens.append(("of" if glued else match.lastgroup, match[0]))
        at = match.end()
    return tokens


def _declaration(tokens: list[tuple[str, str]]) -> tuple[tuple[str, ...], Any]:
    """The variables before `:=` or `=`, and the pipeline."""
    marks = [at for at, token in enumerate(tokens) if token in (("mark", ":="), ("mark", "="))]
    if not marks:
        return (), _pipeline(tokens)
    head = tokens[: marks[0]]
    names = tuple(value for kind, value in head if kind == "variable")
    if not names or any(kind != "variable" and value != "," for kind, value in head):
        raise TemplateError("a declaration names no variable")
    return names, _pipeline(tokens[marks[0] + 1 :])


def _statement(tokens: list[tuple[str, str]]) -> Any:
    names, value = _declaration(tokens)
    if not names:
        return _Output(value)
    return _Assign(names[0], value, ("mark", ":=") in tokens)


def _pipeline(tokens: list[tuple[str, str]]) -> Any:
    value, at = _piped(tokens, 0, 0)
    if at != len(tokens):
        raise TemplateError(f"`{tokens[at][1]}` is not understood here")
    return value


def _piped(tokens: list[tuple[str, str]], at: int, depth: int) -> tuple[Any, int]:
    """A pipeline from `at` on, up to `)` or the end."""
    value, at = _command(tokens, at, depth, ())
    while at < len(tokens) and tokens[at] == ("mark", "|"):
        value, at = _command(tokens, at + 1, depth, (value,))
    return value, at


def _command(
    tokens: list[tuple[str, str]], at: int, depth: int, last: tuple[Any, ...]
) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise TemplateError(f"it is nested deeper than {_DEEPEST} levels")
    if at >= len(tokens):
        raise TemplateError("a value is missing")
    kind, word = tokens[at]
    if kind != "word" or word in CONSTANTS:
        value, at = _operand(tokens, at, depth)
        if last:
            raise TemplateError("a pipeline leads into a value that is no function")
        return value, at
    if word not in FUNCTIONS and word not in ("and", "or"):
        raise TemplateError(f"the function `{word[:60]}` is not known")
    at += 1
    arguments: list[Any] = []
    while at < len(tokens) and tokens[at] not in (("mark", "|"), ("mark", ")")):
        argument, at = _operand(tokens, at, depth)
        arguments.append(argument)
    return _Call(word, (*arguments, *last)), at


def _operand(tokens: list[tuple[str, str]], at: int, depth: int) -> tuple[Any, int]:
    kind, text = tokens[at]
    at += 1
    value: Any
    if kind == "text":
        value = _Literal(_unquoted(text))
    elif kind == "number":
        value = _Literal(int(text) if re.fullmatch(r"-?\d{1,30}", text) else float(text))
    elif kind == "variable":
        value = _Variable(text)
    elif kind == "dot":
        value = _Dot()
    elif kind == "field":
        value = _Field(_Dot(), text[1:])
    elif kind == "word" and text in CONSTANTS:
        value = _Literal(CONSTANTS[text])
    elif kind == "word" and text in FUNCTIONS:
        value = _Call(text, ())
    elif (kind, text) == ("mark", "("):
        value, at = _piped(tokens, at, depth + 1)
        if at >= len(tokens) or tokens[at] != ("mark", ")"):
            raise TemplateError("a parenthesis has no end")
        at += 1
    else:
        raise TemplateError(f"`{text[:60]}` is not understood here")
    while at < len(tokens) and tokens[at][0] == "of":
        value = _Field(value, tokens[at][1][1:])
        at += 1
    return value, at


_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def _unquoted(text: str) -> str:
    """The value of a Go string literal."""
    if text[0] == "`":
        return text[1:-1]

    def decode(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped[0] in "xuU" and len(escaped) > 1:
            return chr(int(escaped[1:], 16))
        return _ESCAPES.get(escaped, escaped)

    escape = r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|.)"
    return re.sub(escape, decode, text[1:-1])


class _Rendering:
    """Renders one template. `_scopes` has the variables, the innermost last."""

    def __init__(self, data: Any, defined: Mapping[str, tuple[Any, ...]]) -> None:
        self._defined = defined
        self._depth = 0
        self._scopes: list[dict[str, Any]] = [{"$": data}]
        self._data = data
        self._output: list[str] = []
        self._size = 0
        self._steps = 0

    def run(self, nodes: tuple[Any, ...]) -> str:
        self._nodes(nodes, self._data)
        return "".join(self._output)

    def _nodes(self, nodes: tuple[Any, ...], dot: Any) -> str:
        """`break` or `continue` if that ended them, else empty."""
        for node in nodes:
            self._steps += 1
            if self._steps > MOST_STEPS:
                raise TemplateError(f"it takes more than {MOST_STEPS:,} steps")
            jump = ""
            if isinstance(node, _Text):
                self._write(node.text)
            elif isinstance(node, _Output):
                self._write(printed(self._value(node.value, dot)))
            elif isinstance(node, _Assign):
                self._assign(node, self._value(node.value, dot))
            elif isinstance(node, _If):
                jump = self._branch(node, dot)
            elif isinstance(node, _Jump):
                jump = node.word
            elif isinstance(node, _Include):
                self._include(node, dot)
            else:
                self._loop(node, dot)
            if jump:
                return jump
        return ""

    def _include(self, node: _Include, dot: Any) -> None:
        """A template of another name, which sees its own value and not the variables here."""
        if self._depth >= _DEEPEST:
            raise TemplateError(f"templates call each other more than {_DEEPEST} deep")
        value = None if node.value is None else self._value(node.value, dot)
        scopes, self._scopes = self._scopes, [{"$": value}]
        self._depth += 1
        self._nodes(self._defined[node.name], value)
        self._depth -= 1
        self._scopes = scopes

    def _write(self, text: str) -> None:
        self._size += len(text)
        if self._size > MOST_OUTPUT:
            raise TemplateError(f"it writes more than {MOST_OUTPUT:,} characters")
        self._output.append(text)

    def _assign(self, node: _Assign, value: Any) -> None:
        if node.declares:
            self._scopes[-1][node.name] = value
            return
        for scope in reversed(self._scopes):
            if node.name in scope:
                scope[node.name] = value
                return
        raise TemplateError(f"the variable `{node.name}` is not declared")

    def _branch(self, node: _If, dot: Any) -> str:
        value = self._value(node.condition, dot)
        self._scopes.append({node.declared: value} if node.declared else {})
        if is_true(value):
            jump = self._nodes(node.then, value if node.moves_dot else dot)
        else:
            jump = self._nodes(node.otherwise, dot)
        self._scopes.pop()
        return jump

    def _loop(self, node: _Range, dot: Any) -> None:
        over = self._value(node.over, dot)
        pairs: list[tuple[Any, Any]]
        if isinstance(over, dict):
            pairs = sorted(cast("dict[str, Any]", over).items())
        elif isinstance(over, list):
            pairs = list(enumerate(cast("list[Any]", over)))
        elif isinstance(over, int) and not isinstance(over, bool) and over <= MOST_STEPS:
            pairs = [(at, at) for at in range(over)]
        elif over is None:
            pairs = []
        else:
            raise TemplateError(f"range cannot go over a {kind_of(over)}")
        if not pairs:
            self._nodes(node.otherwise, dot)
        for key, value in pairs:
            names = node.names
            bound = (value,) if len(names) == 1 else (key, value)
            self._scopes.append(dict(zip(names, bound, strict=False)))
            jump = self._nodes(node.body, value)
            self._scopes.pop()
            if jump == "break":
                break

    def _value(self, node: Any, dot: Any) -> Any:
        self._steps += 1
        if isinstance(node, _Literal):
            return node.value
        if isinstance(node, _Dot):
            return dot
        if isinstance(node, _Variable):
            for scope in reversed(self._scopes):
                if node.name in scope:
                    return scope[node.name]
            raise TemplateError(f"the variable `{node.name}` is not declared")
        if isinstance(node, _Field):
            return member(self._value(node.of, dot), node.name)
        return self._called(node, dot)

    def _called(self, node: _Call, dot: Any) -> Any:
        if node.function in ("and", "or"):
            value: Any = None
            for each in node.arguments:
                value = self._value(each, dot)
                if is_true(value) is (node.function == "or"):
                    break
            return value
        arguments = [self._value(each, dot) for each in node.arguments]
        try:
            return FUNCTIONS[node.function](*arguments)
        except (TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
            raise TemplateError(f"{node.function}: {error}") from None


def render_template(text: str, data: Any, what: str) -> str:
    """Render a document's template. Raises: TidegateError DOCUMENT_INVALID that names `what`."""
    try:
        return parse_template(text).render(data)
    except TemplateError as error:
        refuse_template(what, error)


def refuse_template(what: str, error: TemplateError) -> NoReturn:
    raise TidegateError(Code.DOCUMENT_INVALID, f"The template of {what} fails: {error}.") from None
