"""Where a statement that changes something has a name before a bracket that is no call: the names
of what is defined, of access methods and indexes, and words that only a definition has.

Reads tokens, because the parser does not know every clause of a definition. Each place is one
where the database's grammar has no room for an expression; what is not found here is a call.
"""

from __future__ import annotations

from tidegate.sql.dialects.model import Dialect, words
from tidegate.sql.lex import NAME, NUMBER, WORD, Token

_NAMES = (WORD, NAME)
_TARGETS = words("TABLE VIEW")
_SKIPPED = words("IF NOT EXISTS ONLY")
_METHODS = words("ART BLOOM BRIN BTREE GIN GIST HASH HNSW IVFFLAT RTREE SPGIST")
_LEADING = words("ADD FOREIGN PRIMARY")
_RESERVED = words("DEFAULT UNIQUE")
"""Names of no function in any of the dialects."""

_BEHIND: dict[str, frozenset[str]] = {
    "COLUMNS": words("LIST RANGE"),
    "HASH": words("BY"),
    "IDENTITY": words("AS"),
    "INCLUDE": words(")"),
    "INHERITS": words(")"),
    "KEY": words("BY"),
    "LIST": words("BY"),
    "RANGE": words("BY AS"),
    "THAN": words("LESS"),
    "TO": words(")"),
}
"""Words that belong to a definition only after one of these."""

_QUERIES = words("FROM PIVOT SELECT TABLE UNPIVOT VALUES WITH")


def defined(tokens: list[Token], dialect: Dialect) -> set[int]:
    """The numbers of the brackets in CREATE, ALTER or DROP before which a name is not called. Ends
    where the definition's query begins: there names are calls as anywhere."""
    found: set[int] = set()
    target = _target(tokens)
    for at in range(2, len(tokens)):
        key = tokens[at].key
        before = tokens[at - 1]
        if key == "SELECT" or (key in _QUERIES and _begins_query(tokens, at)):
            break
        if key != "(" or before.kind not in _NAMES:
            continue
        index = _is_index(tokens, at, dialect)
        if index or at - 1 == target or _is_place(tokens, at, dialect):
            found.add(at)
        if dialect.index_words and (index or (at - 1 == target and tokens[1].key != "TABLE")):
            found |= _prefixes(tokens, at)
    return found


def inserted(tokens: list[Token]) -> set[int]:
    """The numbers of the brackets after the table of `INSERT INTO table (...)`, and of `THEN
    INSERT (columns) VALUES` in MERGE: no calls."""
    merges = any(token.key == "MERGE" for token in tokens)
    found: set[int] = set()
    for at, token in enumerate(tokens):
        if token.key == "INTO" and at and tokens[at - 1].key == "INSERT":
            end = at + 1
            while end + 2 < len(tokens) and tokens[end + 1].key == ".":
                end += 2
            found.add(end + 1)
        elif merges and token.key == "(" and at > 1:
            if (tokens[at - 2].key, tokens[at - 1].key) != ("THEN", "INSERT"):
                continue
            end = _closing(tokens, at) + 1
            if end < len(tokens) and tokens[end].key in ("VALUES", "OVERRIDING"):
                found.add(at)
    return found


def behind_table(tokens: list[Token]) -> int:
    """The number of the first token after the name of the table that is altered, and after how
    long MariaDB waits for it."""
    at = next((n for n, token in enumerate(tokens) if token.key == "TABLE"), len(tokens)) + 1
    while at < len(tokens) and tokens[at].key in ("IF", "EXISTS", "ONLY"):
        at += 1
    while at + 2 < len(tokens) and tokens[at + 1].key == ".":
        at += 2
    at += 1
    words = [token.key for token in tokens[at : at + 1]]
    if words in (["*"], ["NOWAIT"]):
        at += 1
    elif words == ["WAIT"]:
        at += 2
    return at


def _begins_query(tokens: list[Token], at: int) -> bool:
    while tokens[at - 1].key == "(":
        at -= 1
    return tokens[at - 1].key == "AS"


def _target(tokens: list[Token]) -> int:
    """The number of the last token of the name of what is defined, of an index that of its table;
    -1 if there is none."""
    at = next((n for n, token in enumerate(tokens) if token.key in _TARGETS | {"INDEX"}), -1)
    if at < 0 or tokens[0].key != "CREATE":
        return -1
    if tokens[at].key == "INDEX":
        at = next((n for n, token in enumerate(tokens) if token.key == "ON" and n > at), -1)
        if at < 0 or any(token.key == "(" for token in tokens[:at]):
            return -1
    at += 1
    while at < len(tokens) and tokens[at].key in _SKIPPED:
        at += 1
    while at + 2 < len(tokens) and tokens[at + 1].key == ".":
        at += 2
    return at


def _is_place(tokens: list[Token], at: int, dialect: Dialect) -> bool:
    """True if the name before the bracket at `at` is where nothing can be called."""
    name, before = tokens[at - 1], tokens[at - 2].key
    if before == "REFERENCES":
        return True
    if before == ".":
        return at > 3 and tokens[at - 4].key == "REFERENCES"
    if name.kind != WORD:
        return False
    if name.key in _RESERVED or name.key in dialect.definition_words:
        return True
    if before == "USING" and name.key in _METHODS:
        return tokens[0].key == "CREATE" or tokens[at - 3].key == "EXCLUDE"
    if before == "FOR" and tokens[at - 3].key == "PERIOD":
        return True
    return before in _BEHIND.get(name.key, frozenset())


def _is_index(tokens: list[Token], at: int, dialect: Dialect) -> bool:
    """True for `INDEX (`, `KEY IF NOT EXISTS name USING BTREE (` and the like, where the first word
    is reserved."""
    first = at - 1
    if tokens[first].key in _METHODS and tokens[first - 1].key == "USING":
        first -= 2
    if tokens[first].key not in dialect.index_words:
        first -= 1
        while tokens[first].key in ("IF", "NOT", "EXISTS"):
            first -= 1
    if tokens[first].key not in dialect.index_words:
        return False
    while tokens[first].key in _LEADING or tokens[first].key in dialect.index_words:
        first -= 1
    if tokens[first - 1].key == "CONSTRAINT":
        return tokens[first - 2].key in ("(", ",", "ADD")
    # As a column's attribute, `a int KEY DEFAULT (f(1))`, it has no list.
    return tokens[first].key in ("(", ",") or tokens[first + 1].key in ("ADD", "CONSTRAINT")


def _prefixes(tokens: list[Token], at: int) -> set[int]:
    """The brackets around the length of what an index holds: `(a(10), b(20) DESC)`. Only that can
    be there; an expression needs its own brackets."""
    depth, end = 0, _closing(tokens, at)
    found: set[int] = set()
    for place in range(at, end):
        if depth == 1 and tokens[place].key == "(" and tokens[place - 1].kind in _NAMES:
            begins = tokens[place - 2].key == "," or place - 2 == at
            if begins and tokens[place + 1].kind == NUMBER and tokens[place + 2].key == ")":
                found.add(place)
        depth += (tokens[place].key == "(") - (tokens[place].key == ")")
    return found


def _closing(tokens: list[Token], at: int) -> int:
    """The number of the bracket that closes the one at `at`."""
    depth = 0
    for number in range(at, len(tokens)):
        depth += (tokens[number].key == "(") - (tokens[number].key == ")")
        if not depth:
            return number
    return len(tokens)
