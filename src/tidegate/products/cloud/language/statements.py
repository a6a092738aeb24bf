"""Reads statements for cloud providers: which kind each is, and what it names.

SELECT, INSERT, UPDATE, DELETE and REPLACE are SQL over `provider.service.resource`; SHOW, DESCRIBE,
REGISTRY and EXEC are commands of their own. A text holds one statement. What is not known here is
refused, whatever the mode: the original checks the first word alone and runs all that follow.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import structs

from tidegate.errors import Code
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, STRING, WORD, Token, lex

StatementClass = Literal["select", "mutation_create", "mutation_delete", "lifecycle"]
"""What the modes of the surface are about. What could not be read has none and is refused."""
ShownKind = Literal["providers", "services", "resources", "methods", "insert"]
_SHOWN: Final[dict[ShownKind, int]] = {
    "providers": 0, "services": 1, "resources": 2, "methods": 3, "insert": 3,
}  # fmt: skip
"""How many names each SHOW has after IN."""
_CLASSES: Final[dict[str, StatementClass]] = {
    "SELECT": "select", "WITH": "select", "VALUES": "select", "INSERT": "mutation_create",
    "UPDATE": "mutation_create", "REPLACE": "mutation_create", "DELETE": "mutation_delete",
}  # fmt: skip
_CHANGES: Final = frozenset({"INSERT", "UPDATE", "REPLACE", "DELETE", "MERGE", "UPSERT"})
_SQLITE: Final = find("sqlite").lexical_rules
_PARAMETER: Final = r"\?[0-9]*+|@@?[A-Za-z_][A-Za-z0-9_.-]*+"
_COMMAND_RULES: Final = structs.replace(
    _SQLITE, parameters=_PARAMETER, operators=_SQLITE.operators | {"-"}
)
_HINTS: Final = re.compile(r"\s*(?:\w+\s*)?/\*\+([^*]{1,200})\*/")
_SHORT: Final = re.compile(r"\s*SHOW\s+INSERT\s*/\*\+\s*REQUIRED\s*\*/", re.IGNORECASE)
_VERSION: Final = re.compile(r"v?\d{1,9}(?:\.\d{1,9}){0,3}(?:-[\w.]{1,40})?")
_QUERY_HINT: Final = "Put the query into WITH at the beginning of a SELECT."
_TABLE_HINT: Final = (
    "Keep rows in a table of another source, which a SELECT can join: source.schema.table."
)
_UNSUPPORTED: Final[dict[str, tuple[str, str]]] = {
    "CREATE VIEW": ("Views are those of provider documents", _QUERY_HINT),
    "CREATE MATERIALIZED": (
        "Materialized views are not supported",
        "`tidegate cloud snapshot` keeps a result, and the option `cache_seconds` of the source"
        " keeps replies.",
    ),
    "CREATE TABLE": ("A source of cloud providers has no tables of its own", _TABLE_HINT),
    "SET": ("SET is not supported", "Logins are in the settings, under `cloud.providers`."),
    "AUTH": ("AUTH is not supported", "Logins are in the settings, under `cloud.providers`."),
    "PURGE": ("PURGE is not supported", "SELECT /*+ FRESH */ asks for what may be kept."),
    "NATIVEQUERY": ("Native queries are not supported", "Say it as a SELECT."),
}
"""Statements of StackQL that are refused by name, by their first words, and what to do instead."""
_NOT_SHOWN: Final[dict[str, tuple[str, str]]] = {
    "version": ("SHOW VERSION is not supported", "The tool server_info names the version."),
}
_COMPARED: Final[dict[str, Literal["=", "<>", "LIKE"]]] = {
    "=": "=", "==": "=", "<>": "<>", "!=": "<>", "LIKE": "LIKE",
}  # fmt: skip
_DEFINING: Final = frozenset({"CREATE", "DROP", "ALTER", "REFRESH", "REPLACE"})
_DEFINED: Final = ("MATERIALIZED", "VIEW", "TABLE")
_UNKNOWN_HINT: Final = (
    "Statements are SELECT, INSERT, UPDATE, REPLACE, DELETE, EXEC, SHOW, DESCRIBE, EXPLAIN and "
    "REGISTRY."
)


class ShownCondition(msgspec.Struct, frozen=True):
    """`column = 'value'`, `column <> 'value'` or `column LIKE 'pattern'` on the rows of a SHOW."""

    column: str
    operator: Literal["=", "<>", "LIKE"]
    value: str


class ShowStatement(msgspec.Struct, frozen=True):
    """`SHOW [EXTENDED] SERVICES IN p`, and its like. `path` has the names after IN.
    `SHOW RESOURCES MATCHING 'words'` is about those of all providers."""

    shown: ShownKind
    path: tuple[str, ...]
    is_extended: bool = False
    like: str | None = None
    """A pattern for names, of LIKE."""
    matching: str | None = None
    """Words, of MATCHING."""
    conditions: tuple[ShownCondition, ...] = ()
    """Those of WHERE, with AND between them."""
    is_short: bool = False
    """Of `SHOW INSERT /*+ REQUIRED */ INTO p.s.r`: what is required alone."""


class DescribeStatement(msgspec.Struct, frozen=True):
    """`DESCRIBE [EXTENDED] p.s.r`, or with a method's name as the fourth."""

    path: tuple[str, ...]
    is_extended: bool = False


class RegistryStatement(msgspec.Struct, frozen=True):
    """`REGISTRY LIST [provider]`, `REGISTRY PULL provider [version]`."""

    action: Literal["list", "pull"]
    provider: str = ""
    version: str = ""


class ExecStatement(msgspec.Struct, frozen=True):
    """`EXEC p.s.r.method @name='value', @@json='{…}'`; before `@@json` there need be no comma."""

    path: tuple[str, ...]
    values: Mapping[str, Any]
    body: Mapping[str, Any]
    awaits: bool = False


class SqlStatement(msgspec.Struct, frozen=True):
    """A statement over resources. `text` is as it was sent, without what ends it."""

    verb: Literal["select", "insert", "update", "replace", "delete"]
    text: str
    awaits: bool = False
    is_fresh: bool = False
    """Whether it takes nothing that was kept from an earlier statement: `SELECT /*+ FRESH */`."""
    skips_denied: bool = False
    """Whether `/*+ on_error=skip */` asks for what comes where an account or region is denied."""


CloudStatement = (
    ShowStatement | DescribeStatement | RegistryStatement | ExecStatement | SqlStatement
)


Explanation = Literal["plan", "digest", "preview"]
"""What EXPLAIN shows: how a statement would be answered; of a change, a digest of its requests, or
the requests and the present state, as a person who approves it sees them."""


class ReadStatement(msgspec.Struct, frozen=True):
    """A statement, its class, and what of it EXPLAIN asks for, if that is before it."""

    statement: CloudStatement
    statement_class: StatementClass
    explained: Explanation | None = None

    @property
    def is_explained(self) -> bool:
        return self.explained is not None


def read_statement(text: str) -> ReadStatement:
    """The one statement in `text`.

    Raises: Refusal SQL_EMPTY, SQL_MULTIPLE, SQL_UNKNOWN, SQL_UNREADABLE.
    """
    tokens = _one_statement(lex(text, _COMMAND_RULES))
    first = tokens[0].key
    if first == "EXPLAIN":
        # It changes nothing: what it explains is read, and gives it no class.
        skipped = 3 if [token.key for token in tokens[1:3]] == ["QUERY", "PLAN"] else 1
        explained: Explanation = "plan"
        if len(tokens) > 1 and tokens[1].key in ("DIGEST", "PREVIEW"):
            skipped, explained = 2, "digest" if tokens[1].key == "DIGEST" else "preview"
        if len(tokens) <= skipped:
            raise _unreadable("EXPLAIN is followed by a statement")
        inner = read_statement(text[tokens[skipped].at :])
        if inner.is_explained:
            raise _unreadable("EXPLAIN of EXPLAIN explains nothing")
        if explained != "plan" and inner.statement_class == "select":
            raise _unreadable(f"EXPLAIN {explained.upper()} is followed by a change")
        return ReadStatement(inner.statement, "select", explained)
    if (unsupported := _unsupported(tokens)) is not None:
        raise unsupported
    if first in _CLASSES:
        return _sql(text, tokens)
    reader = {"SHOW": _show, "DESCRIBE": _describe, "DESC": _describe, "REGISTRY": _registry}
    if first in reader:
        read = reader[first](_Words(tokens[1:]))
        if isinstance(read, ShowStatement) and _SHORT.match(text):
            read = structs.replace(read, is_short=True)
        return ReadStatement(read, "select")
    if first == "EXEC":
        return ReadStatement(_exec(_Words(tokens[1:]), awaits="AWAIT" in _hints(text)), "lifecycle")
    raise Refusal(
        Code.SQL_UNKNOWN,
        "cloud.statement",
        f"A statement that begins with {tokens[0].text[:40]!r} is not known",
        _UNKNOWN_HINT,
    )


def read_judged_statement(text: str) -> ReadStatement:
    """As `read_statement`, for an engine: the gate has judged the text before.

    Raises: TidegateError with the code of the refusal.
    """
    try:
        return read_statement(text)
    except Refusal as refusal:
        raise refusal.error() from None


def _unsupported(tokens: list[Token]) -> Refusal | None:
    """The refusal of a statement that StackQL has and this source does not."""
    first = tokens[0].key
    name = first
    if first in _DEFINING:
        # CREATE OR REPLACE TEMP VIEW, DROP TABLE, REFRESH MATERIALIZED VIEW
        skipped = {"OR", "REPLACE", "TEMP", "TEMPORARY"}
        at = next((at for at in range(1, len(tokens)) if tokens[at].key not in skipped), 0)
        if not at or tokens[at].kind != WORD or tokens[at].key not in _DEFINED:
            return None
        name = f"CREATE {tokens[at].key}"
        following = tokens[at + 1 : at + 2]
        if first == "REPLACE" and (not following or following[0].key in (".", "SET")):
            return None  # the resource has that name
    if name not in _UNSUPPORTED:
        return None
    reason, hint = _UNSUPPORTED[name]
    return Refusal(Code.SQL_UNKNOWN, "cloud.unsupported", reason, hint)


def _one_statement(tokens: list[Token]) -> list[Token]:
    while tokens and tokens[-1].key == ";":
        tokens.pop()
    if not tokens:
        raise Refusal(Code.SQL_EMPTY, "cloud.empty", "The text holds no statement")
    if any(token.key == ";" for token in tokens):
        raise Refusal(
            Code.SQL_MULTIPLE,
            "cloud.statements",
            "Multi-statement queries are not supported. Send one statement at a time.",
        )
    return tokens


def _sql(text: str, tokens: list[Token]) -> ReadStatement:
    first = tokens[0].key
    statement_class = _CLASSES[first]
    verb = first.lower()
    if statement_class == "select":
        verb = "select"
        for each, following in itertools.zip_longest(tokens, tokens[1:]):
            # `replace(…)` is a function; as a statement it is followed by a name.
            is_function = each.key == "REPLACE" and following is not None and following.key == "("
            if each.key in _CHANGES and not is_function:
                raise Refusal(
                    Code.SQL_UNKNOWN,
                    "cloud.change_in_query",
                    f"A query that holds {each.key} is no query",
                    "Send the change as a statement of its own.",
                )
    end = tokens[-1].at + len(text[tokens[-1].at :].rstrip("; \t\r\n\f\v"))
    hints = _hints(text)
    skips = "ON_ERROR=SKIP" in hints
    if skips and statement_class != "select":
        raise _unreadable("on_error=skip is for a query: of a change nothing is left out")
    asked = ("AWAIT" in hints, "FRESH" in hints, skips)
    statement = SqlStatement(verb, text[:end], *asked)  # type: ignore[arg-type]
    return ReadStatement(statement, statement_class)


def _hints(text: str) -> frozenset[str]:
    """The words of `/*+ FRESH on_error=skip */` after the first word or before it, in
    capitals."""
    found = _HINTS.match(text)
    return frozenset(re.sub(r"\s*=\s*", "=", found[1]).upper().split() if found else ())


class _Words:
    """Tokens that are taken one by one."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def peek(self) -> Token | None:
        """The next token, which is not taken; None at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def accept(self, *keys: str) -> str:
        """Take the next token if it is one of `keys`; else empty."""
        token = self.peek()
        if token is None or token.key not in keys:
            return ""
        self._at += 1
        return token.key

    def take(self, what: str) -> Token:
        token = self.peek()
        if token is None:
            raise _unreadable(f"{what} is missing")
        self._at += 1
        return token

    def name(self, what: str) -> str:
        """A name, quoted or with hyphens between its words."""
        token = self.take(what)
        if token.kind == NAME:
            return token.text
        if token.kind != WORD:
            raise _unreadable(f"{what} is missing before {token.text[:40]!r}")
        name = token.text
        while self._is_glued("-") and self._at + 1 < len(self._tokens):
            name += f"-{self._tokens[self._at + 1].text}"
            self._at += 2
        return name

    def path(self, what: str, least: int, most: int) -> tuple[str, ...]:
        """Names with points between them."""
        names = [self.name(what)]
        while self.accept("."):
            names.append(self.name(what))
        if not least <= len(names) <= most:
            raise _unreadable(f"{what} has {least} to {most} parts, not {len(names)}")
        return tuple(names)

    def string(self, what: str) -> str:
        token = self.take(what)
        if token.kind != STRING:
            raise _unreadable(f"{what} must be in single quotes")
        return token.text

    def rest(self) -> list[Token]:
        """All that is left."""
        left = self._tokens[self._at :]
        self._at = len(self._tokens)
        return left

    def end(self) -> None:
        if (token := self.peek()) is not None:
            raise _unreadable(f"{token.text[:40]!r} is not understood here")

    def _is_glued(self, key: str) -> bool:
        token = self.peek()
        before = self._tokens[self._at - 1]
        return token is not None and token.key == key and token.at == before.at + len(before.text)


def _show(words: _Words) -> ShowStatement:
    is_extended = bool(words.accept("EXTENDED"))
    what = words.take("What to show").key.lower()
    if what in _NOT_SHOWN:
        reason, hint = _NOT_SHOWN[what]
        raise Refusal(Code.SQL_UNKNOWN, "cloud.unsupported", reason, hint)
    if what not in _SHOWN:
        raise _unreadable(f"SHOW {what[:40] or '...'} is not known: {', '.join(_SHOWN)} are")
    if what == "resources" and words.accept("MATCHING"):
        wanted = words.string("What to search for")
        words.end()
        return ShowStatement(what, (), is_extended, matching=wanted)
    count = _SHOWN[what]
    path: tuple[str, ...] = ()
    if count:
        words.accept("INTO" if what == "insert" else "IN", "FROM")
        path = words.path(f"the {what}' parent", count, count)
    like = words.string("The pattern") if words.accept("LIKE") else None
    conditions: list[ShownCondition] = []
    while words.accept("AND" if conditions else "WHERE"):
        column = words.name("The column")
        operator = _COMPARED.get(words.accept(*_COMPARED))
        if operator is None:
            raise _unreadable(
                "WHERE of SHOW has conditions column = 'value', column <> 'value' or"
                " column LIKE 'pattern', with AND between them"
            )
        conditions.append(ShownCondition(column, operator, words.string("The value")))
    words.end()
    return ShowStatement(what, path, is_extended, like, conditions=tuple(conditions))


def _describe(words: _Words) -> DescribeStatement:
    is_method = bool(words.accept("METHOD"))
    is_extended = bool(words.accept("EXTENDED"))
    count = 4 if is_method else 3
    path = words.path("The method" if is_method else "The resource", count, count)
    words.end()
    return DescribeStatement(path, is_extended)


def _registry(words: _Words) -> RegistryStatement:
    action = words.accept("LIST", "PULL")
    if not action:
        raise _unreadable("REGISTRY is followed by LIST or PULL")
    if action == "LIST":
        provider = words.name("The provider") if words.peek() else ""
        words.end()
        return RegistryStatement("list", provider)
    provider = words.name("The provider")
    version = "".join(token.text for token in words.rest())
    if version and not _VERSION.fullmatch(version):
        raise _unreadable(f"{version[:40]!r} is no version")
    return RegistryStatement("pull", provider, version)


def _exec(words: _Words, *, awaits: bool) -> ExecStatement:
    path = words.path("The method", 4, 4)
    values: dict[str, Any] = {}
    body: dict[str, Any] = {}
    while words.peek() is not None:
        name = words.take("A parameter").text
        if not name.startswith("@") or not words.accept("="):
            raise _unreadable(f"{name[:40]!r} is no parameter: write @name = 'value'")
        value = _value(words)
        if name == "@@json":
            body = _json_object(value)
        elif name.startswith("@@") or name[1:] in values:
            raise _unreadable(f"{name[:40]} is not known, or given twice")
        else:
            values[name[1:]] = value
        following = words.peek()
        is_body = following is not None and following.text == "@@json"
        if following is not None and not words.accept(",") and not is_body:
            raise _unreadable("parameters have a comma between them")
    return ExecStatement(path, values, body, awaits)


def _value(words: _Words) -> Any:
    sign = -1 if words.accept("-") else 1
    token = words.take("A value")
    if token.kind == STRING and sign == 1:
        return token.text
    constants: dict[str, Any] = {"NULL": None, "TRUE": 1, "FALSE": 0}
    if token.key in constants and sign == 1:
        return constants[token.key]
    if re.fullmatch(r"\d{1,40}", token.text):
        return sign * int(token.text)
    if re.fullmatch(r"\d{0,40}\.\d{1,40}|\d{1,40}\.", token.text):
        return sign * float(token.text)
    raise _unreadable(f"{token.text[:40]!r} is no value")


def _json_object(value: Any) -> dict[str, Any]:
    try:
        read: Any = json.loads(value)
    except (ValueError, TypeError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise _unreadable("@@json is no JSON object")
    return read  # pyright: ignore[reportUnknownVariableType]


def _unreadable(reason: str) -> Refusal:
    return Refusal(Code.SQL_UNREADABLE, "cloud.syntax", reason)
