"""The effect of a statement by the type that DuckDB's own parser gives it. Runs nothing.

A SELECT may still change something, by a function or a CTE: the planner shows this (`explained`).

Allowed types are listed, with their effects; a type that is not listed is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import duckdb
import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect, Judgement
from tidegate.products.duckdb.dialect import DIALECT
from tidegate.products.duckdb.engine.errors import writes
from tidegate.products.duckdb.engine.messages import UNPLANNED
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import lex

_quote = find("duckdb").quote

EFFECTS = {
    "SELECT": Effect.READ,
    "EXPLAIN": Effect.READ,
    "MULTI": Effect.READ,
    "INSERT": Effect.WRITE,
    "UPDATE": Effect.WRITE,
    "DELETE": Effect.WRITE,
    "MERGE_INTO": Effect.WRITE,
    "CREATE": Effect.WRITE,
    "CREATE_FUNC": Effect.WRITE,
    "ALTER": Effect.WRITE,
    "ANALYZE": Effect.WRITE,
    "VACUUM": Effect.WRITE,
    "DROP": Effect.DESTRUCTIVE,
}
"""By statement type. MULTI is a PIVOT, which DuckDB splits up."""

REFUSED = {
    **dict.fromkeys(
        ("SET", "VARIABLE_SET", "TRANSACTION", "PREPARE", "EXECUTE"),
        Effect.SESSION,
    ),
    **dict.fromkeys(
        ("ATTACH", "DETACH", "COPY", "COPY_DATABASE", "EXPORT", "EXTENSION", "LOAD"),
        Effect.ADMIN,
    ),
}
"""Types that are always refused: the gate manages sessions and files. Unlisted are UNKNOWN."""

_NAME = re.compile(r"\w+")
_PRAGMA = re.compile(r"\s*PRAGMA\s+(\w+)", re.IGNORECASE)


class ParsedStatement:
    """One statement as DuckDB's parser has it. `parameters` are its placeholders' names."""

    __slots__ = ("judgement", "kind", "parameters", "text")

    def __init__(self, text: str, kind: str, parameters: frozenset[str]) -> None:
        self.text = text
        self.kind = kind
        self.parameters = parameters
        self.judgement = _judge(text, kind)

    @property
    def returns(self) -> bool:
        """Whether its result is rows, not a count."""
        if self.kind in ("INSERT", "UPDATE", "DELETE", "MERGE_INTO"):
            return _has_keyword(self.text, b"returning")
        return self.judgement.effect is Effect.READ


@lru_cache(maxsize=256)
def read(text: str) -> ParsedStatement:
    """The one statement of a text.

    Raises: TidegateError SQL_EMPTY, SQL_MULTIPLE, SQL_UNREADABLE; duckdb.Error if it cannot be
    parsed.
    """
    if "\0" in text:
        raise TidegateError(Code.SQL_UNREADABLE, "The statement holds a NUL character.")
    try:
        statements = duckdb.extract_statements(text)
        if not statements:
            raise TidegateError(Code.SQL_EMPTY, "The text holds no statement.")
        if len(statements) > 1:
            raise TidegateError(Code.SQL_MULTIPLE, "The text holds more than one statement.")
        only = statements[0]
        return ParsedStatement(text, only.type.name, frozenset(only.named_parameters))
    except (UnicodeEncodeError, TypeError) as error:  # which of them depends on the version
        raise TidegateError(Code.SQL_UNREADABLE, "The statement holds a lone surrogate.") from error
    except ValueError:  # a type that the driver has no name for
        return ParsedStatement(text, "UNKNOWN", frozenset())


def explained(reading: ParsedStatement, cursor: duckdb.DuckDBPyConnection) -> Judgement:
    """The judgement, raised if DuckDB will not plan the query where nothing may be written."""
    judgement = reading.judgement
    if reading.kind == "MULTI":
        return _pivoted(reading, cursor)
    if reading.kind not in ("SELECT", "EXPLAIN"):
        return judgement
    text = _query(reading.text)
    if not text:
        return judgement
    try:
        cursor.execute(f"EXPLAIN {text}", [None] * len(reading.parameters) or None)
    except duckdb.Error as error:
        if not writes(error):
            return msgspec.structs.replace(judgement, rule=UNPLANNED)  # running it will tell
        return _writes(judgement, "DuckDB's planner sees that the query writes.")
    return judgement


def _writes(judgement: Judgement, reason: str) -> Judgement:
    return msgspec.structs.replace(
        judgement, effect=Effect.WRITE, rule="duckdb.planner", reason=reason
    )


_FUNCTIONS = (
    "SELECT internal, database_name, schema_name, function_name FROM system.main.duckdb_functions()"
)
_OTHERS = frozenset({"system", "temp"})


def check_own(cursor: duckdb.DuckDBPyConnection, own: Sequence[str]) -> None:
    """See that trusted functions of users are meant where such are named: DuckDB searches for a
    name in several places, and what precedes it may be a value. Raises: TidegateError SQL_FUNCTION
    if there is another of the name; duckdb.Error."""
    # Compared here: a macro could take the place of any function or operator there.
    known = cursor.execute(_FUNCTIONS).fetchall() if own else []
    for name in own:
        schema, _, bare = name.lower().partition(".")
        for internal, database, found_in, function in known:
            if function.lower() == bare and (
                internal or database in _OTHERS or found_in.lower() != schema
            ):
                raise TidegateError(
                    Code.SQL_FUNCTION,
                    f"`{name}` may be called here, but there is another function of this name, and"
                    " DuckDB could take that one.",
                    hint="Ask the operator to give the function a name of its own.",
                    details={"rule": f"function.{name}"},
                )


_MADE = """
SELECT schema_name, view_name, true FROM system.main.duckdb_views() WHERE NOT internal
UNION SELECT schema_name, function_name, false FROM system.main.duckdb_functions()
WHERE NOT internal
"""


def _pivoted(reading: ParsedStatement, cursor: duckdb.DuckDBPyConnection) -> Judgement:
    """The judgement of a PIVOT, which DuckDB cannot plan without running a part of it: the
    views and macros that it names must not write."""
    folded = reading.text.lower()
    words = set(_NAME.findall(folded))
    for schema, name, is_view in cursor.execute(_MADE).fetchall():
        known_as = str(name).lower()
        plain = _NAME.fullmatch(known_as) is not None
        if known_as not in (words if plain else folded):
            continue
        if not is_view:
            return _writes(reading.judgement, f"What {name} does in a PIVOT is not known.")
        place = f"{_quote(schema)}.{_quote(name)}"
        try:
            cursor.execute(f"EXPLAIN FROM {place}")
        except duckdb.Error:
            return _writes(reading.judgement, f"What the view {name} does is not known.")
    return reading.judgement


def _query(text: str) -> str:
    """The query, without semicolons before it; of an EXPLAIN, which may run it, the query that it
    explains. Empty if there is none."""
    try:
        tokens = lex(text, DIALECT.lexical_rules)
    except Refusal:
        return text  # the judge refuses what it cannot read
    while tokens and tokens[0].key == ";":
        del tokens[0]
    if not tokens or tokens[0].key != "EXPLAIN":
        return text[tokens[0].at :] if tokens else ""
    at = 1
    options = len(tokens) > 2 and tokens[1].key == "("
    if options and DIALECT.roots.get(tokens[2].key) not in _QUERIES:
        at = next((k for k, token in enumerate(tokens) if token.key == ")"), len(tokens)) + 1
    while at < len(tokens) and tokens[at].key == "ANALYZE":
        at += 1
    if at >= len(tokens) or DIALECT.roots.get(tokens[at].key) not in _QUERIES:
        return ""
    return text[tokens[at].at :]


_QUERIES = frozenset({"query", "describe"})


def body(text: str) -> str:
    """The text without the semicolons and comments after its statement."""
    content = text.encode()
    end = len(content)
    for offset, kind in reversed(duckdb.tokenize(text)):
        if kind is not duckdb.token_type.comment and content[offset : offset + 1] != b";":
            break
        end = offset
    return content[:end].decode()


def _judge(text: str, kind: str) -> Judgement:
    effect = EFFECTS.get(kind)
    if kind == "PRAGMA":
        effect = Effect.READ if _pragma_reads(text) else None
    if kind == "MULTI" and not _has_keyword(text, b"pivot"):
        effect = None
    if effect is None:
        effect = REFUSED.get(kind, Effect.UNKNOWN)
        return Judgement(
            effect,
            "duckdb.statement_type",
            f"DuckDB may not run a statement of the type {kind} here.",
            Code.POLICY_DENIED.value,
            "Send one SELECT, or one statement that changes data.",
        )
    return Judgement(
        effect,
        "duckdb.statement_type",
        "DuckDB's parser sees only a read."
        if effect is Effect.READ
        else f"DuckDB's parser sees an effect: {effect.label}.",
    )


def _pragma_reads(text: str) -> bool:
    found = _PRAGMA.match(text)
    return found is not None and found[1].lower() in DIALECT.pragmas | DIALECT.argument_pragmas


def _has_keyword(text: str, word: bytes) -> bool:
    content = text.encode()
    return any(
        kind is duckdb.token_type.keyword and content[offset : offset + len(word)].lower() == word
        for offset, kind in duckdb.tokenize(text)
    )
