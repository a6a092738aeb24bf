"""Judges a statement by its tokens: which functions it calls, and which sequences of words mean a
change. Reads tokens only, so it sees what a parser might take for something else.
"""

from __future__ import annotations

from itertools import pairwise

from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql.dialects.common import (
    AFTER,
    OPERAND_BEGINS,
    OPERAND_FOLLOWS,
    SYNTAX,
    VERBS,
)
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Finding, temporary
from tidegate.sql.lex import NAME, OP, PARAM, STRING, WORD, Token
from tidegate.sql.own_functions import own_call

_NOTHING = Token("", "", "", 0)
_LOCKS = frozenset({("NO", "KEY"), ("KEY", "SHARE")})
_SOURCES = frozenset({"FROM", "JOIN", "TABLE", "DESCRIBE", "SUMMARIZE"})
_CLOSING = frozenset(")]}")
_COUNTED = frozenset({"FIRST", "NEXT", "TOP"})
_FIELDS = frozenset({"DAY", "HOUR", "MINUTE"})
_SIMPLE_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Words:
    """The result of checking the words of one statement.

    `functions` are the names called, in order; `unlisted` holds, by name, the tokens at which what
    is not on the dialect's list has a bracket: it may yet turn out to be no call. `own` are the
    functions of users that are called and trusted, with the first token and the bracket of each.
    """

    __slots__ = ("functions", "opinions", "own", "unlisted")

    def __init__(self) -> None:
        self.opinions: list[Finding] = []
        self.functions: dict[str, None] = {}
        self.own: dict[tuple[int, int], str] = {}
        self.unlisted: dict[str, list[int]] = {}


def check_tokens(tokens: list[Token], dialect: Dialect, *, reading: bool) -> Words:
    """Go over the tokens once. `reading` says that the statement's first word promises a read."""
    words = Words()
    before = previous = _NOTHING
    for index, token in enumerate(tokens):
        key = token.key
        if key == "(":
            if previous.kind == WORD or previous.kind == NAME:
                _call(words, tokens, index, dialect)
            elif previous.kind == STRING and before.key != "IN":
                words.opinions.append(_unknown("text.called_string", "A string is called"))
        elif previous.key == ".":
            if (
                dialect.attributes
                and _folded(token, dialect) in dialect.attributes
                and not _is_own(tokens, index, dialect)
            ):
                words.opinions.append(function_refused(token.text.lower()))
        elif token.kind == WORD and reading:
            named = previous.key == "AS" and before.key != "."
            if not named and (key in VERBS or key in dialect.reserved_verbs):
                _verb(words, tokens, index, previous, dialect)
        elif token.kind == PARAM and token.text[:2] == "@@" and dialect.statement_state:
            _variable(words, token, tokens[index + 1 : index + 3], dialect)
        elif token.kind == PARAM and dialect.remotes and _is_remote(token, previous):
            words.opinions.append(_unknown("text.remote", f"{token.text} may be another database"))
        elif token.kind == STRING and dialect.reads_files and previous.key in _SOURCES:
            words.opinions.append(_file(token.text))
        if key == ":=" and dialect.assigns:
            words.opinions.append(
                Finding(Effect.SESSION, "text.assignment", "Assigns a variable of the session")
            )
        before, previous = previous, token
    return words


def _call(words: Words, tokens: list[Token], index: int, dialect: Dialect) -> None:
    """Note the name before the bracket at `index`, unless it is a keyword there."""
    token = tokens[index - 1]
    before = tokens[index - 2] if index > 1 else _NOTHING
    if dialect.remotes and [after.key for after in tokens[index + 1 : index + 3]] == ["+", ")"]:
        return  # Oracle's mark of an outer join: no argument of any call
    if token.kind == WORD and before.key != ".":
        if token.key in SYNTAX or token.key in dialect.keywords:
            return
        if token.key in dialect.infix and _ends_operand(tokens, index - 2):
            return
        if token.key == "MATERIALIZED" and before.key == "NOT" and tokens[index - 3].key == "AS":
            return
        if token.key == "SECOND" and before.key == "TO" and tokens[index - 3].key in _FIELDS:
            return
        if token.key == "COLUMNS" and index > 3 and tokens[index - 3].key == "AS":
            return  # of JSON_TABLE, after the name of its path or of what is passed
        if token.key == "CONFLICT" and _is_conflict_target(tokens, index):
            return
        places = AFTER.get(token.key)
        if places is not None and before.key in places and not _multiplies(tokens, index - 2):
            return
    if dialect.trusted:
        own, first = own_call(tokens, index, dialect)
        if own:
            words.own[first, index] = own
            return
    name = _folded(token, dialect)
    if before.key == "." and not dialect.methods:
        schema = tokens[index - 3] if index > 2 else _NOTHING
        if _folded(schema, dialect) not in dialect.function_schemas:
            words.unlisted.setdefault(name, []).append(index)
            return
    if (
        name in dialect.functions
        or (name in dialect.bare_functions and tokens[index + 1].key == ")")
        or (name in dialect.table_functions and _names_a_table(tokens, index))
    ):
        words.functions[name] = None
        if name in dialect.statement_state:
            words.opinions.append(state_refused(name))
    else:
        words.unlisted.setdefault(name, []).append(index)


def _is_own(tokens: list[Token], index: int, dialect: Dialect) -> bool:
    """Whether the name at `index` is that of a trusted function which is called."""
    if not dialect.trusted or index + 1 >= len(tokens) or tokens[index + 1].key != "(":
        return False
    return bool(own_call(tokens, index + 1, dialect)[0])


def _is_conflict_target(tokens: list[Token], index: int) -> bool:
    """True if the bracket at `index` is that of `ON CONFLICT (...) DO`: the last of an INSERT. Any
    other may be a call of a user's function `conflict` in the condition of a join."""
    if tokens[index - 2].key != "ON" or ("INSERT", "INTO") not in (
        (token.key, after.key) for token, after in pairwise(tokens[:index])
    ):
        return False
    depth, ends = 0, False
    for before, token in pairwise(tokens[index:]):
        depth += (before.key in ("(", "[")) - (before.key in (")", "]"))
        if before.key == "CONFLICT" and token.key == "(":
            return False
        ends = ends or (depth == 0 and token.key == "DO")
    return ends


def _multiplies(tokens: list[Token], at: int) -> bool:
    """True if the token is a `*` between two operands, not that of all columns."""
    return tokens[at].key == "*" and at > 0 and _is_operand(tokens[at - 1])


def _is_remote(token: Token, previous: Token) -> bool:
    """True for `@link` after a name: a table of the database that Oracle calls by this."""
    if token.text[0] != "@":
        return False
    return previous.kind == NAME or (_is_operand(previous) and previous.key not in _COUNTED)


def _is_operand(token: Token) -> bool:
    """True if an infix operator can follow the token."""
    if token.kind == OP:
        return token.key in _CLOSING
    return token.key == "NOT" or (
        token.kind != "" and token.key not in SYNTAX and token.key not in OPERAND_FOLLOWS
    )


def _ends_operand(tokens: list[Token], at: int) -> bool:
    """True if an operand ends with the token, and no other word can do but an infix one. Of words
    without an operator between them every second is one: `a COLLATE b`, `a AT TIME ZONE b`."""
    if at >= 0 and tokens[at].key == "NOT":
        at -= 1
    count = 0
    while at >= 0 and tokens[at].kind == WORD and tokens[at].key not in _NO_OPERANDS:
        if tokens[at].key in _TYPE_ENDS:
            return True
        count += 1
        at -= 1
    ended = at >= 0 and (
        tokens[at].key in _CLOSING if tokens[at].kind in (OP, WORD) else tokens[at].kind != ""
    )
    return ended == (count % 2 == 0)


_NO_OPERANDS = SYNTAX | OPERAND_FOLLOWS | OPERAND_BEGINS
_TYPE_ENDS = frozenset({"PRECISION", "VARYING"})


def _names_a_table(tokens: list[Token], index: int) -> bool:
    """True if the only argument of the call at `index` is a string with a simple name."""
    argument, closing = tokens[index + 1], tokens[index + 2]
    return argument.kind == STRING and closing.key == ")" and _SIMPLE_NAME.issuperset(argument.text)


_OF_SESSION = frozenset({"TEMP", "TEMPORARY", "LOCAL"})


def _verb(words: Words, tokens: list[Token], index: int, previous: Token, dialect: Dialect) -> None:
    """Check a word that can begin or hide a change, in a statement that promises a read."""
    key = tokens[index].key
    following = tokens[index + 1] if index + 1 < len(tokens) else _NOTHING
    if key == "INTO" and not dialect.selects_into and following.key == "NAME":
        return  # of UNPIVOT; DuckDB has no SELECT ... INTO
    if key == "INTO" and (following.key in _OF_SESSION or following.text.startswith("@")):
        raise temporary("A table or variable of SELECT ... INTO")
    if key == "INTO":
        words.opinions.append(
            Finding(Effect.WRITE, "text.into", "SELECT ... INTO writes its result somewhere")
        )
    elif key == "FOR":
        last = tokens[index + 2].key if index + 2 < len(tokens) else ""
        if following.key in {"UPDATE", "SHARE"} or (following.key, last) in _LOCKS:
            words.opinions.append(_locks())
    elif key == "LOCK":
        if following.key == "IN":
            words.opinions.append(_locks())
    elif key == "NEXT":
        if following.key == "VALUE":
            words.opinions.append(
                Finding(Effect.WRITE, "text.sequence", "NEXT VALUE FOR advances a sequence")
            )
    elif index and following.key != "(" and _begins_change(key, previous, following):
        words.opinions.append(
            Finding(Effect.WRITE, f"text.{key.lower()}", f"Holds {key}, which changes data")
        )
    elif index and key in dialect.reserved_verbs and following.key != "(":
        words.opinions.append(
            _unknown(f"text.{key.lower()}", f"{key} inside a statement may begin another one")
        )


def _begins_change(key: str, previous: Token, following: Token) -> bool:
    if key == "DELETE":
        return following.key == "FROM" or previous.key == "("
    if key == "INSERT" or key == "MERGE":
        return following.key in {"INTO", "OR", "IGNORE", "OVERWRITE"} or previous.key == "("
    return key == "UPDATE" and previous.key == "(" and following.kind in (WORD, NAME)


def _folded(token: Token, dialect: Dialect) -> str:
    """The name that a token means: bare words fold, quoted names as the dialect has it.
    Only ASCII folds: a letter that merely lowers to one must not pass for a listed name."""
    if token.key:
        return token.key.lower()
    if token.text.isascii() and dialect.lexical_rules.names_fold:
        return token.text.lower()
    return token.text


def function_refused(name: str) -> Finding:
    """The opinion on a call of something that is not on the dialect's list."""
    return Finding(
        Effect.UNKNOWN,
        f"function.{name}",
        f"The function {name} is not on the list of functions that only read",
        Code.SQL_FUNCTION,
        "Leave it out, or use a built-in function that only reads.",
    )


def state_refused(name: str) -> Finding:
    """The opinion on what tells of an earlier statement, which was anybody's."""
    return Finding(
        Effect.UNKNOWN,
        f"function.{name}",
        f"{name} tells of the statement before on the same connection, and connections are shared:"
        " that was any caller's",
        Code.SQL_FUNCTION,
        "A change tells how many rows it changed, and RETURNING gives what it stored.",
    )


def _variable(words: Words, token: Token, following: list[Token], dialect: Dialect) -> None:
    """Note a variable of the server that tells of an earlier statement, however it is written."""
    written = token.text
    if following and (written.endswith(".") or following[0].key == "."):
        written = following[0 if written.endswith(".") else -1].text
    name = "@@" + written.lower().replace("`", "").rpartition(".")[2].removeprefix("@@")
    if name in dialect.statement_state:
        words.opinions.append(state_refused(name))


def _locks() -> Finding:
    return Finding(Effect.WRITE, "text.lock", "Locks the rows it reads")


def _unknown(rule: str, reason: str) -> Finding:
    return Finding(Effect.UNKNOWN, rule, reason, Code.SQL_UNKNOWN)


def _file(name: str) -> Finding:
    return Finding(
        Effect.ADMIN,
        "table.file",
        f"Reads {name!r} as a file, outside the database",
        hint="Name a table of this database.",
    )
