"""Judges a statement by its syntax tree: which tables it names, and whether every node is known to
read. Nodes are judged by an allow-list; one that is on no list makes the effect unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.errors import Code
from tidegate.model.statements import Effect, TouchedTable
from tidegate.sql.dialects.common import SYNTAX
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.dialects.nodes import CHANGING, FUNCTIONS, READING
from tidegate.sql.finding import Finding
from tidegate.sql.normalization import TEXT
from tidegate.sql.open_conditions import is_open
from tidegate.sql.own_functions import STAND_IN
from tidegate.sql.token_checks import function_refused
from tidegate.sql.touched_tables import touched_tables
from tidegate.sql.whole_tables import changes_every_row

if TYPE_CHECKING:
    from sqlglot.expressions.core import Expression


_OF_ROWS = frozenset({"Delete", "Update", "Insert", "Merge"})


class Grammar(NamedTuple):
    """The result of checking the syntax tree of one statement.

    `declared` counts, by name, the places where a name with a bracket is no call: column lists of
    CTEs, of aliases and of insert targets. `unqualified` marks a change of every row, `open_ended`
    one that may be.
    """

    opinions: list[Finding]
    tables: dict[str, None]
    declared: dict[str, int]
    unqualified: bool
    touches: tuple[TouchedTable, ...] = ()
    open_ended: bool = False


def check_tree(
    tree: Expression,
    names: dict[str, str],
    dialect: Dialect,
    *,
    exact_numbers: bool = False,
    replaces: bool = False,
) -> Grammar:
    """Walk the tree once. `names` maps placeholders back to the names that they replace.
    `exact_numbers`: each number is in the tree as it was written. `replaces`: it is a REPLACE."""
    grammar = Grammar([], {}, {}, False)
    unqualified = open_ended = False
    touches: list[TouchedTable] = []
    ctes: set[str] = set()
    tables: list[Any] = []
    for node in tree.walk():
        kind = type(node).__name__
        looker = _LOOKERS.get(kind)
        if looker is not None:
            looker(node, grammar, names, dialect)
        elif kind == "Table":
            tables.append(node)
        elif kind == "CTE":
            ctes.add(_name_of(node, names, dialect))
        if kind in READING:
            continue
        change = CHANGING.get(kind)
        if change is None:
            grammar.opinions.append(_unlisted(kind, node))
            continue
        grammar.opinions.append(
            Finding(Effect[change.upper()], f"node.{kind}", f"Holds {_article(kind)}")
        )
        if kind in _OF_ROWS and type(node.parent).__name__ != "When":
            unqualified |= changes_every_row(node, dialect, exact_numbers=exact_numbers)
            open_ended |= is_open(node, names, replaces=replaces)
            touches += touched_tables(node, names, dialect, replaces=replaces)
    for table in tables:
        _table(table, grammar, names, dialect, ctes)
    return grammar._replace(
        unqualified=unqualified, touches=tuple(touches), open_ended=unqualified or open_ended
    )


def _table(
    node: Any, grammar: Grammar, names: dict[str, str], dialect: Dialect, ctes: set[str]
) -> None:
    """Note a table's name, and refuse those that hold secrets or are files."""
    parts = [names.get(name, name) for name in _parts(node)]
    if not parts:
        return
    name = ".".join(parts)
    folded = _folded(node, names, dialect)
    if _is_secret(folded, dialect):
        grammar.opinions.append(
            Finding(
                Effect.ADMIN,
                "table.secret",
                f"{name} holds secrets or the server's internal state",
                hint="Read the tables of the application.",
            )
        )
    elif _is_target(node) and _is_system(folded, dialect):
        grammar.opinions.append(
            Finding(
                Effect.ADMIN,
                "table.system",
                f"{name} is the server's own: a change of it can give rights and replace functions",
                hint="Change the tables of the application; with their schema, if they are called"
                " like those of the server.",
            )
        )
    elif dialect.reads_files and (TEXT in parts or _is_file(folded)):
        grammar.opinions.append(
            Finding(
                Effect.ADMIN,
                "table.file",
                f"The database would read {name!r} as a file",
                hint="Name a table of this database.",
            )
        )
    kind = type(node.this).__name__
    if kind in FUNCTIONS:
        if is_table_with_arguments(node, dialect, names):
            grammar.tables[name] = None
            _declare(node.this.name, grammar, names)
        elif node.this.name.lower() in dialect.table_functions:
            grammar.tables.update((argument.name, None) for argument in node.this.expressions)
    elif kind != "Identifier" or len(parts) > 1 or not _is_query(node, ctes, names, dialect):
        grammar.tables[name] = None


def is_table_with_arguments(node: Any, dialect: Dialect, names: dict[str, str]) -> bool:
    """Whether a table's node is a call of what is no function of the dialect, and so a table that
    is read with arguments."""
    called = node.this
    if not dialect.tables_take_arguments or type(called).__name__ != "Anonymous":
        return False
    written: str = called.name
    name = names.get(written, written).lower()
    return not any(
        name in listed
        for listed in (
            dialect.functions,
            dialect.bare_functions,
            dialect.table_functions,
            dialect.outside_tables,
        )
    )


def _folded(node: Any, names: dict[str, str], dialect: Dialect) -> str:
    """A table's name as those of the server's own are compared: PostgreSQL's are in lower case, so
    that `"PG_CLASS"` is another one."""
    keeps = dialect.is_postgres and not dialect.folds_quoted
    parts: list[str] = []
    for part in node.parts:
        name: str = part.name
        if name:
            written = names.get(name, name)
            parts.append(written if keeps and part.args.get("quoted") else written.lower())
    return ".".join(parts)


_SYSTEM_SCHEMAS = frozenset({"information_schema", "pg_catalog"})


def _is_system(name: str, dialect: Dialect) -> bool:
    """Whether a table, in lower case, is one of the server's own, which an account with all rights
    may change like any other."""
    schema, dot, bare = name.rpartition(".")
    schema = schema.rpartition(".")[2]
    if not dot:
        return bool(dialect.system_prefix) and bare.startswith(dialect.system_prefix)
    if schema in _SYSTEM_SCHEMAS:
        return True
    if dialect.system_prefix and schema.startswith(dialect.system_prefix):
        return True
    return bool(dialect.secrets) and _secrets(dialect.secrets).fullmatch(name) is not None


def is_restricted(parts: Sequence[str], dialect: Dialect) -> bool:
    """True if a table of this name holds secrets or may be a file."""
    folded = ".".join(parts).lower()
    return _is_secret(folded, dialect) or (
        dialect.reads_files and (TEXT in parts or _is_file(folded))
    )


def is_secret(parts: Sequence[str], dialect: Dialect) -> bool:
    """Whether a table of this name holds secrets or the server's internal state."""
    return _is_secret(".".join(parts).lower(), dialect)


def _is_query(table: Any, ctes: set[str], names: dict[str, str], dialect: Dialect) -> bool:
    """True if a bare name in a table's place is that of a common table expression in sight there:
    one of a query around it, or named before the one that it is in."""
    name = _known_as(table.this, names, dialect)
    if name not in ctes or _is_target(table):
        return False
    within, node = table, table.parent
    while node is not None:
        kind = type(node).__name__
        with_ = node if kind == "With" else node.args.get("with_")
        if with_ is not None and with_ is not within:
            # SQLite alone lets a query refer to itself, and to later ones, without RECURSIVE.
            everywhere = kind != "With" or node.args.get("recursive") or dialect.ctes_see_all
            for cte in with_.expressions:
                if cte is within and not everywhere:
                    break
                if _name_of(cte, names, dialect) == name:
                    return True
        within, node = node, node.parent
    return False


def _is_target(table: Any) -> bool:
    """True for the table that a change is of: it is a table of the database in any case."""
    parent = table.parent
    if type(parent).__name__ == "Schema":
        table, parent = parent, parent.parent
    return type(parent).__name__ in CHANGING and parent.this is table


def _name_of(cte: Any, names: dict[str, str], dialect: Dialect) -> str:
    alias = cte.args.get("alias")
    identifier = alias.this if alias is not None else None
    return "" if identifier is None else _known_as(identifier, names, dialect)


def _known_as(identifier: Any, names: dict[str, str], dialect: Dialect) -> str:
    """What a name is compared as: quoted ones as they are, where the dialect has it so."""
    name: str = identifier.name
    written = names.get(name, name)
    quoted = identifier.args.get("quoted") and not dialect.lexical_rules.names_fold
    return written if quoted else written.lower()


def _parts(node: Any) -> list[str]:
    return [part.name for part in node.parts if part.name]


def _alias(node: Any, grammar: Grammar, names: dict[str, str], dialect: Dialect) -> None:
    if node.args.get("columns"):
        _declare(node.name, grammar, names)


def _schema(node: Any, grammar: Grammar, names: dict[str, str], dialect: Dialect) -> None:
    target = node.this
    if target is not None:
        _declare(target.alias or target.name, grammar, names)


def _index(node: Any, grammar: Grammar, names: dict[str, str], dialect: Dialect) -> None:
    table = node.args.get("table")
    if table is not None:
        _declare(table.name, grammar, names)


def _declare(name: str, grammar: Grammar, names: dict[str, str]) -> None:
    name = names.get(name, name).lower()
    grammar.declared[name] = grammar.declared.get(name, 0) + 1


def _anonymous(node: Any, grammar: Grammar, names: dict[str, str], dialect: Dialect) -> None:
    """The parser sees a call that it has no node for: the name must be listed here as well."""
    name: str = node.name
    if name.upper() in SYNTAX or (dialect.trusted and name.upper() == STAND_IN):
        return
    if type(node.parent).__name__ == "Table" and is_table_with_arguments(
        node.parent, dialect, names
    ):
        return
    folded = names.get(name, name).lower()
    if (
        folded not in dialect.functions
        and folded not in dialect.bare_functions
        and folded not in dialect.table_functions
        and folded not in dialect.changing_functions  # whether it may the words decide
    ):
        grammar.opinions.append(function_refused(folded))


def _description(node: Any, grammar: Grammar, names: dict[str, str], dialect: Dialect) -> None:
    """DuckDB's DESCRIBE and SUMMARIZE within a query: of a table or a query, nothing else. To
    PostgreSQL they are names."""
    kind = type(node.this).__name__
    if not dialect.describes_in_queries or kind not in ("Table", "Select", "Subquery", "Union"):
        grammar.opinions.append(_unlisted(type(node).__name__, node))


_LOOKERS = {
    "Describe": _description,
    "Summarize": _description,
    "TableAlias": _alias,
    "Schema": _schema,
    "Index": _index,
    "Anonymous": _anonymous,
    "AnonymousAggFunc": _anonymous,
}

_FILE_NAMES = re.compile(
    r".*[/\\:*?\[\]].*|.*\.(?:csv|tsv|txt|json|jsonl|ndjson|parquet|xlsx|arrow|feather|avro|orc"
    r"|db|duckdb|sqlite|gz|zst|bz2|zip|log)",
    re.DOTALL,
)


def _is_file(name: str) -> bool:
    return _FILE_NAMES.fullmatch(name) is not None


def _is_secret(name: str, dialect: Dialect) -> bool:
    """True if a table, by its own name or with its schema, is one that holds secrets."""
    secret = _secrets(dialect.secrets)
    parts = name.split(".")
    known = [parts[-1], ".".join(parts[-2:])]
    if dialect.is_postgres and len(parts) > 1 and parts[-2] != dialect.system_schema:
        del known[0]  # a user's table, whose name means nothing
    for known_as in known:
        if known_as in dialect.admitted:
            return False
        if secret.match(known_as):
            return True
    return False


@cache
def _secrets(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns))


def _unlisted(kind: str, node: Any) -> Finding:
    what = f"{node.name!r}" if kind == "Command" and node.name else kind
    return Finding(
        Effect.UNKNOWN,
        f"node.{kind}",
        f"Holds something that is not known to read: {what}",
        Code.SQL_UNKNOWN,
        "Say it with plainer SQL.",
    )


def _article(kind: str) -> str:
    word = {"Into": "INTO", "Lock": "row lock"}.get(kind, kind.upper())
    return f"{'an' if word[0] in 'AEIOU' else 'a'} {word}"
