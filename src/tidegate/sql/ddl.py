"""Reads CREATE, ALTER and DROP: what kind of object, and whether anything is lost by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql.declared_names import behind_table, defined
from tidegate.sql.dialects.model import Dialect, words
from tidegate.sql.finding import Finding, Refusal, temporary
from tidegate.sql.lex import STRING, Token
from tidegate.sql.normalization import normalize
from tidegate.sql.parse import parse
from tidegate.sql.query_statement import StatementEffects, unlisted
from tidegate.sql.token_checks import check_tokens
from tidegate.sql.tree_checks import Grammar, check_tree

_MODIFIERS = words("""
    CONCURRENTLY EXISTS FULLTEXT GLOBAL IF IGNORE LOCAL MATERIALIZED NOT ONLINE OR PERSISTENT
    RECURSIVE REPLACE SPATIAL TEMP TEMPORARY UNIQUE UNLOGGED
    """)
_DATA = words("TABLE VIEW INDEX SEQUENCE SCHEMA TYPE DOMAIN")
_GOVERNING = words("""
    ACCESS EXTENSION FOREIGN FUNCTION GROUP LANGUAGE LOGFILE OPERATOR OWNED POLICY PROCEDURE
    PUBLICATION ROLE RULE SECRET SERVER SUBSCRIPTION TABLESPACE TRIGGER USER
    """)
_WHOLES = words("DATABASE SCHEMA SYSTEM")
_WORDS_OF_CLUSTER = words("( ) VERBOSE")
_GUARDS = words("OWNER SECURITY TRIGGER RULE REPLICA POLICY TABLESPACE ENCRYPTION")


def refuses_transaction(tokens: list[Token]) -> bool:
    """Whether PostgreSQL runs a definition in no transaction: of an index CONCURRENTLY, REINDEX of
    more than a table, CLUSTER of everything, DETACH PARTITION ... CONCURRENTLY."""
    keys = [token.key for token in tokens[:200]]
    root, rest = keys[0], keys[1:]
    if root in ("CREATE", "DROP"):
        words = rest[1:] if rest[:1] == ["UNIQUE"] else rest
        return words[:2] == ["INDEX", "CONCURRENTLY"]
    if root == "REINDEX":
        return "CONCURRENTLY" in rest or not _WHOLES.isdisjoint(rest)
    if root == "CLUSTER":
        return _WORDS_OF_CLUSTER.issuperset(rest)
    return root == "ALTER" and "DETACH" in rest and rest[-1] == "CONCURRENTLY"


def create(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """CREATE: of data structures a write, of a table in place of another one destructive, of
    anything that runs code or grants a right administration."""
    keys = list(_words(tokens))
    subject = next((key for key in keys if key not in _MODIFIERS), "")
    if _is_temporary(tokens, keys, subject, dialect):
        raise temporary(f"A temporary {(subject or 'object').lower()}")
    if subject in ("ALGORITHM", "SQL") and dialect.view_options:
        subject = _view(keys) or subject
    if subject == "VIRTUAL" and not dialect.modules.isdisjoint(_module(keys)):
        name = next((token.text for token in tokens[3:] if token.key not in _MODIFIERS), "")
        finding = Finding(Effect.WRITE, "create", "Creates a virtual table")
        return StatementEffects([finding], {name: None})
    if subject not in _DATA:
        return _administers("create", subject)
    if subject == "TABLE" and _reaches_outside(tokens, dialect):
        return _administers("create", "TABLE with such options")
    if not dialect.code_clauses.isdisjoint(keys) and _names_code(tokens, dialect):
        return _administers("create", f"{subject} with code")
    if _runs_prepared(tokens):
        raise Refusal(
            Code.SQL_UNKNOWN,
            "create.execute",
            "A table of what a prepared statement gives is not made: it cannot be read here",
            "Write the query itself.",
        )
    if subject != "VIEW" and "REPLACE" in keys[: keys.index(subject)]:
        reason = f"Replaces a {subject.lower()}"
        return _defines(tokens, dialect, Effect.DESTRUCTIVE, "create.replace", reason)
    return _defines(tokens, dialect, Effect.WRITE, "create", f"Creates a {subject.lower()}")


def _is_temporary(tokens: list[Token], keys: list[str], subject: str, dialect: Dialect) -> bool:
    """Whether what is made ends with its session, by a word before its kind or by its schema. A
    GLOBAL TEMPORARY table of other databases stays, as a definition."""
    before = keys[: keys.index(subject)] if subject else keys
    if not _TEMPORARY.isdisjoint(before):
        return "GLOBAL" not in before or not dialect.keeps_global_temporary
    if not dialect.temporary_schemas or not subject:
        return False
    at = next(place for place, token in enumerate(tokens) if token.key == subject) + 1
    while at < len(tokens) and tokens[at].key in _BEFORE_ITS_NAME:
        at += 1
    name, *after = tokens[at : at + 2] or tokens[:1]
    schema = _NUMBERED.sub("", name.text.lower())
    return schema in dialect.temporary_schemas and [token.key for token in after] == ["."]


_TEMPORARY = words("TEMP TEMPORARY")
_BEFORE_ITS_NAME = words("CONCURRENTLY EXISTS IF NOT")
_NUMBERED = re.compile(r"_\d+$")


def _runs_prepared(tokens: list[Token]) -> bool:
    """Whether a table is made of what EXECUTE gives."""
    outside = [token.key for _, token in _outside(tokens)]
    at = outside.index("AS") if "AS" in outside else len(outside)
    return outside[at + 1 : at + 2] == ["EXECUTE"]


def alter(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """ALTER: a write, destructive where it drops something, administration where it changes who
    may do what."""
    keys = list(_words(tokens))
    subject = next((key for key in keys if key not in _MODIFIERS), "")
    if subject not in _DATA or not _GUARDS.isdisjoint(keys):
        return _administers("alter", subject)
    if "DROP" in keys:
        return _defines(tokens, dialect, Effect.DESTRUCTIVE, "alter.drop", "ALTER ... DROP")
    if subject == "TYPE" and "ATTRIBUTE" in keys and "TYPE" in keys[2:]:
        reason = "ALTER TYPE ... TYPE may lose data"
        return _defines(tokens, dialect, Effect.DESTRUCTIVE, "alter.rows", reason)
    if subject == "TABLE":
        if _reaches_outside(tokens, dialect):
            return _administers("alter", "TABLE with such options")
        loss = _loses_rows(tokens, dialect) if "IGNORE" not in keys[:2] else "IGNORE"
        if loss:
            reason = f"ALTER TABLE ... {loss} may lose data"
            return _defines(tokens, dialect, Effect.DESTRUCTIVE, "alter.rows", reason)
    return _defines(tokens, dialect, Effect.WRITE, "alter", f"Alters a {subject.lower()}")


_KEEPS_ROWS = words("""
    ADD ALGORITHM ALTER ANALYZE ATTACH AUTO_INCREMENT AVG_ROW_LENGTH CHANGE CHARACTER CHARSET CHECK
    CHECKSUM COLLATE COMMENT CONVERT DEFAULT DETACH DISABLE ENABLE FORCE INHERIT KEY_BLOCK_SIZE LOCK
    MAX_ROWS MIN_ROWS MODIFY NO OPTIMIZE ORDER PACK_KEYS REBUILD RENAME REPAIR RESET
    ROW_FORMAT SET STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES VALIDATE WITH WITHOUT
    """)
"""First words of the parts of an ALTER TABLE that keep all rows, as far as is known."""

_KEEPS_VALUES = words("LONGTEXT STRING TEXT VARCHAR VARYING")
"""Types of columns that hold what any other type holds, if no length is given."""

_BEFORE_A_COLUMN = words("ADD ALTER AFTER CHANGE COLUMN EXISTS MODIFY RENAME TO")


def _loses_rows(tokens: list[Token], dialect: Dialect) -> str:
    """The first part of an ALTER TABLE that is not known to keep all rows and values; or empty."""
    starts = True
    for before, token in _outside(tokens[behind_table(tokens) :]):
        if starts and token.key not in _KEEPS_ROWS:
            return token.text[:40]
        starts = token.key == ","
        if token.key == "ENGINE" and dialect.table_engines and before not in _BEFORE_A_COLUMN:
            return "ENGINE"
        if (before, token.key) == ("SET", "UNLOGGED"):
            return "SET UNLOGGED"
    parts = _parts(tokens[behind_table(tokens) :])
    return next((loss for part in parts if (loss := _changes_type(part))), "")


def _parts(tokens: list[Token]) -> Iterator[list[Token]]:
    """The parts between the commas outside of brackets."""
    part: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token.key == "(") - (token.key == ")")
        if token.key == "," and not depth:
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _changes_type(part: list[Token]) -> str:
    """The words by which a part of an ALTER TABLE gives a column a type or characters that may hold
    less than those before: databases round, cut and replace such values without an error."""
    first = part[0].key if part else ""
    keys = [token.key for token in part]
    if first == "ALTER" and "TYPE" in keys[2:]:
        at, words = keys.index("TYPE", 2) + 1, "TYPE"
    elif first in ("MODIFY", "CHANGE"):
        at, words = 1, first
        while keys[at : at + 1] and keys[at] in ("COLUMN", "IF", "EXISTS"):
            at += 1
        at += 1 if first == "MODIFY" else 2
    elif keys[:2] == ["CONVERT", "TO"]:
        return "" if part[-1].text.strip("'\"").lower() == "utf8mb4" else "CONVERT TO"
    else:
        return ""
    if "USING" in keys[at:]:
        return f"{words} ... USING"
    if keys[at : at + 2] == ["CHARACTER", "VARYING"]:
        at += 1
    keeps = keys[at : at + 1] and keys[at] in _KEEPS_VALUES and keys[at + 1 : at + 2] != ["("]
    return "" if keeps else words


def _outside(tokens: list[Token]) -> Iterator[tuple[str, Token]]:
    """The tokens outside of brackets, each with the key of the one before."""
    depth, before = 0, ""
    for token in tokens:
        depth -= token.key == ")"
        if not depth:
            yield before, token
        depth += token.key == "("
        before = token.key


def _reaches_outside(tokens: list[Token], dialect: Dialect) -> bool:
    """Whether the options of a table name a directory, or an engine that is not known to keep its
    rows in the database's own files."""
    if not dialect.table_engines:
        return False
    keys = [token.key for token in tokens]
    if any(pair in _DIRECTORIES for pair in pairwise(keys)):
        return True
    options = [token for before, token in _outside(tokens) if before not in _BEFORE_A_COLUMN]
    for option, after in pairwise(options):
        if option.key in _ELSEWHERE and (after.key == "=" or after.kind == STRING):
            return True
    for number, option in enumerate(options):
        if option.key == "ENGINE" and number + 1 < len(options):
            value = options[number + 1]
            if value.key == "=" and number + 2 < len(options):
                value = options[number + 2]
            if value.text.upper() not in dialect.table_engines:
                return True
    return False


def _names_code(tokens: list[Token], dialect: Dialect) -> bool:
    """Whether a definition, up to the query in it, names code that will run."""
    for before, token in _outside(tokens):
        if before in _BEFORE_A_NAME:
            continue
        if token.key in ("AS", "SELECT"):
            return False
        if token.key in dialect.code_clauses:
            return True
    return False


_BEFORE_A_NAME = words("DOMAIN EXISTS INDEX ON SCHEMA SEQUENCE TABLE TYPE VIEW") | {"."}
_DIRECTORIES = (("DATA", "DIRECTORY"), ("INDEX", "DIRECTORY"))
_ELSEWHERE = words("CONNECTION FILE_NAME OPTION_LIST TABLESPACE UNION WRAPPER")


def drop(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """DROP: destructive, administration where it drops code or rights."""
    subject = next((key for key in _words(tokens) if key not in _MODIFIERS), "")
    if subject in _GOVERNING:
        return _administers("drop", subject)
    return _defines(tokens, dialect, Effect.DESTRUCTIVE, "drop", f"Drops a {subject.lower()}")


def _view(keys: list[str]) -> str:
    """VIEW, if words that say how MariaDB makes one lead to it; whose rights it has is not one."""
    rest = [key for key in keys if key not in _MODIFIERS]
    if rest[:2] == ["ALGORITHM", "="]:
        rest = rest[3:]
    if rest[:3] == ["SQL", "SECURITY", "INVOKER"]:
        rest = rest[3:]
    return "VIEW" if rest[:1] == ["VIEW"] else ""


def _module(keys: list[str]) -> list[str]:
    """The name of the module of SQLite's virtual table, which follows the first USING."""
    return keys[keys.index("USING") + 1 :][:1] if "USING" in keys else []


def _words(tokens: list[Token]) -> Iterator[str]:
    """The keywords after the first, without what follows a dot."""
    return (token.key for before, token in pairwise(tokens) if token.key and before.key != ".")


def _administers(form: str, subject: str) -> StatementEffects:
    what = f"{form.upper()} {subject}".strip()
    finding = Finding(
        Effect.ADMIN, f"{form}.{subject.lower() or 'unlisted'}", f"{what} administers the database"
    )
    return StatementEffects([finding])


def _defines(
    tokens: list[Token], dialect: Dialect, effect: Effect, rule: str, reason: str
) -> StatementEffects:
    """A definition, with what it calls: the parser need not know every clause of it, but every
    name with a bracket must be on the list or declared."""
    words = check_tokens(tokens, dialect, reading=False)
    grammar = Grammar([], {}, {}, False)
    try:
        text, names = normalize(tokens, dialect)
        grammar = check_tree(parse(text, dialect.parser, len(tokens)), names, dialect)
    except Refusal:
        pass
    # What a view calls is called when it is read.
    is_view = any(token.key == "VIEW" for token in tokens)
    changing: frozenset[str] = frozenset() if is_view else dialect.changing_functions
    found = unlisted(words, grammar, changing, defined(tokens, dialect))
    placed = {finding.rule for finding in found if finding.effect is Effect.WRITE}
    found += [
        finding
        for finding in grammar.opinions
        if finding.rule.startswith(_HARMFUL) and finding.rule not in placed
    ]
    opinions = [Finding(effect, rule, reason), *words.opinions, *found]
    return StatementEffects(opinions, grammar.tables, words.functions)


_HARMFUL = ("function.", "table.")
