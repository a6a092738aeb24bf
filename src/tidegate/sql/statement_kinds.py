"""The kind of a statement by its first word: a query, a change, an EXPLAIN, a PRAGMA, a definition,
or a kind that the word alone determines. A first word that is on no list is unknown.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql.administration import administer
from tidegate.sql.ddl import alter, create, drop
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Finding, Refusal
from tidegate.sql.lex import NAME, NUMBER, OP, PARAM, STRING, WORD, Token
from tidegate.sql.query_statement import StatementEffects, read_query_statement
from tidegate.sql.token_checks import check_tokens, state_refused

_CHANGES = frozenset({Effect.WRITE, Effect.DESTRUCTIVE})
_RUNS = frozenset({"ANALYZE", "ANALYSE"})
_RESPELLED = "change.respelled"
_KEPT = frozenset({_RESPELLED, "text.sequence"})
"""Opinions on changes that hold for an EXPLAIN, too: MariaDB fills a derived table to plan it."""
_PLACED = frozenset({"create", "create.replace", "node.Into"})
_SELECT_ALL = tuple(
    Token(kind, key, key, 0) for kind, key in ((WORD, "SELECT"), (OP, "*"), (WORD, "FROM"))
)
_PIVOTS = frozenset({"PIVOT", "UNPIVOT"})
_TAILS = frozenset({"ORDER", "LIMIT", "OFFSET"})
_MAIN_VERBS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE"})
_VERBS = {
    "explain": "explain",
    "analyze": "explain",
    "create": "ddl",
    "alter": "ddl",
    "drop": "ddl",
    "TRUNCATE": "ddl",
    "RENAME": "ddl",
    "CALL": "exec",
    "EXECUTE": "exec",
    "EXEC": "exec",
    "DO": "exec",
}
"""By the form of the statement, else by its first word."""
_SAYS = {
    Effect.SESSION: "changes the session or its transaction",
    Effect.WRITE: "changes the database",
    Effect.DESTRUCTIVE: "destroys data",
    Effect.ADMIN: "administers the server or reaches outside the database",
}


_EMPTIES = ["WITH", "NO", "DATA"]
"""The end of a REFRESH that leaves a materialized view without rows."""


def classify_statement(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """What one statement does. Raises: Refusal for what cannot be read."""
    root = tokens[0]
    administers = administer(tokens, dialect)
    if administers is not None:
        return administers
    form = dialect.roots.get(root.key)
    if form is None:
        raise Refusal(
            Code.SQL_UNKNOWN,
            "root.unlisted",
            f"Statements that begin with {root.text[:40]!r} are not known to read",
            "Send rows by INSERT." if root.key == "COPY" else None,
        )
    reader = _FORMS.get(form)
    if reader is not None:
        return reader(tokens, dialect)
    effect = Effect[form.upper()]
    if effect is Effect.WRITE and [token.key for token in tokens[-3:]] == _EMPTIES:
        effect = Effect.DESTRUCTIVE
    finding = Finding(effect, f"root.{root.key}", f"{root.key} {_SAYS[effect]}")
    return StatementEffects([finding])


def verb_of(tokens: list[Token], dialect: Dialect) -> str:
    """What the statement does in one word (`model.statements.Judgement.verb`)."""
    key = tokens[0].key
    form = dialect.roots.get(key, "")
    if form == "query" or key == "WITH":
        depth = 0
        for token in tokens:
            depth += (token.key == "(") - (token.key == ")")
            if not depth and token.key in _MAIN_VERBS and token.kind == WORD:
                return token.key.lower()  # after WITH comes the verb
        return "select"
    if form == "change":
        return "insert" if key == "REPLACE" else key.lower()
    return _VERBS.get(form) or _VERBS.get(key) or key.lower()


def _query(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    if tokens[0].key == "TABLE":
        tokens = [*_SELECT_ALL, *tokens[1:]]
    elif tokens[0].key in _PIVOTS:
        tokens = _enclosed(tokens)
    return read_query_statement(tokens, dialect, reading=True)


def _enclosed(tokens: list[Token]) -> list[Token]:
    """DuckDB's PIVOT as a nested query, if an order or a limit follows it: the parser knows these
    after a SELECT alone."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.key == "(") - (token.key == ")")
        if not depth and token.key in _TAILS:
            opening, closing = (Token(OP, key, key, token.at) for key in "()")
            return [*_SELECT_ALL, opening, *tokens[:at], closing, *tokens[at:]]
    return tokens


def _change(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    plainer = _plainer(tokens, dialect)
    replaces = "REPLACE" in [each.key for each in (tokens[:3] if _is_or(tokens) else tokens[:1])]
    reading = read_query_statement(plainer, dialect, reading=False, replaces=replaces)
    opinions = [*reading.opinions]
    if plainer is not tokens:
        opinions.append(Finding(Effect.WRITE, _RESPELLED, "Changes data"))
    if tokens[0].key == "DELETE" and tokens[1:2] and tokens[1].key == "HISTORY":
        opinions.append(
            Finding(Effect.DESTRUCTIVE, "change.history", "DELETE HISTORY removes earlier rows")
        )
    if "FTS5" in dialect.modules and _commands_index(plainer):
        opinions.append(
            Finding(Effect.DESTRUCTIVE, "change.index", "A command to an index may empty it")
        )
    return structs.replace(reading, opinions=opinions)


def _is_or(tokens: list[Token]) -> bool:
    """Whether it is UPDATE OR … or INSERT OR …"""
    return tokens[1:2] != [] and tokens[1].key == "OR"


_KEEPS_INDEX = frozenset({"automerge", "crisismerge", "integrity-check", "optimize", "rebuild"})


def _commands_index(tokens: list[Token]) -> bool:
    """Whether an INSERT gives a column that is called like its table a value: to SQLite's FTS5 this
    is a command, such as `delete-all`."""
    into = next((at for at, token in enumerate(tokens) if token.key == "INTO"), None)
    if tokens[0].key != "INSERT" or into is None:
        return False
    at = into + 1
    while at + 2 < len(tokens) and tokens[at + 1].key == ".":
        at += 2
    name = tokens[at].text.lower() if at < len(tokens) else ""
    commands = False
    for token in tokens[at + 1 :]:
        if token.key in (")", "VALUES", "SELECT", "AS"):
            break
        commands = commands or (token.kind in (WORD, NAME) and token.text.lower() == name)
    values = [token for token in tokens if token.kind in (STRING, PARAM)]
    plain = [token.kind == STRING and token.text.lower() in _KEEPS_INDEX for token in values]
    return commands and not (plain and all(plain))


def _plainer(tokens: list[Token], dialect: Dialect) -> list[Token]:
    """A change as the parser knows it: REPLACE as INSERT, without words that say only how."""
    root, at = tokens[0], 1
    while at < len(tokens) and tokens[at].key in dialect.change_words:
        if (root.key, tokens[at].key) == ("INSERT", "IGNORE"):
            break  # the parser knows that one
        at += 1
    if root.key == "UPDATE" and tokens[1:2] and tokens[1].key == "OR" and dialect.update_or:
        at = 3
    if root.key != "REPLACE":
        return tokens if at == 1 else [root, *tokens[at:]]
    return [root._replace(key="INSERT", text="INSERT"), *tokens[at:]]


def _explain(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    at, runs = explained(tokens, dialect)
    inner = tokens[at:]
    if not inner:
        raise Refusal(Code.SQL_UNREADABLE, "explain.empty", "EXPLAIN has no statement after it")
    form = dialect.roots.get(inner[0].key)
    if form is None and dialect.explains_tables:
        return _named_table(inner)
    if dialect.explains_queries_only and form != "query":
        raise Refusal(Code.SQL_UNKNOWN, "explain.unlisted", "Only queries are explained here")
    if form in ("explain", "analyze"):
        raise Refusal(Code.SQL_UNKNOWN, "explain.nested", "EXPLAIN of an EXPLAIN is not read")
    reading = classify_statement(inner, dialect)
    if runs or dialect.explains_queries_only:
        # What an EXPLAIN that runs it changes is not in its own count of rows.
        touches = tuple([structs.replace(each, nested=True) for each in reading.touches])
        # Only the statement itself was checked.
        return structs.replace(reading, administration=None, touches=touches)
    # Without ANALYZE the statement is planned, not run. Yet PostgreSQL looks where a new table
    # would go, and there and then makes the session's schema for temporary ones.
    kept = [
        finding
        for finding in reading.opinions
        if finding.effect not in _CHANGES
        or finding.rule.startswith("function.")
        or finding.rule in _KEPT
        or (dialect.explain_creates and finding.rule in _PLACED)
    ]
    return StatementEffects(kept, reading.tables, reading.functions, own=reading.own)


def explained(tokens: list[Token], dialect: Dialect) -> tuple[int, bool]:
    """Where the explained statement starts, and whether it is run for it."""
    at, runs = 1, False
    while at < len(tokens):
        key = tokens[at].key
        if key == "(" and at == 1 and dialect.roots.get(tokens[2].key) not in ("query", "change"):
            while tokens[at].key != ")":
                # Whatever its value: DuckDB runs the statement for ANALYZE FALSE, too.
                # And however it is quoted: "analyze" is the same option.
                runs = runs or tokens[at].text.upper() in _RUNS
                at += 1
            at += 1
            continue
        if key not in dialect.explain_words:
            break
        runs = runs or key in _RUNS
        at += 3 if key == "FORMAT" else 1
    return at, runs


def _analyze(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """MariaDB's ANALYZE runs a statement and explains it; before TABLE it gathers statistics."""
    at = 4 if tokens[1:2] and tokens[1].key == "FORMAT" else 1
    inner = tokens[at:]
    if inner and dialect.roots.get(inner[0].key) in ("query", "change") and inner[0].key != "TABLE":
        return classify_statement(inner, dialect)
    return StatementEffects([Finding(Effect.WRITE, "root.ANALYZE", "ANALYZE writes statistics")])


def _named_table(tokens: list[Token]) -> StatementEffects:
    """DESCRIBE of a table by its name, with at most a column or pattern after it."""
    if len(tokens) > 4 or any(token.kind in (NUMBER, STRING) for token in tokens[:1]):
        raise Refusal(Code.SQL_UNKNOWN, "describe.unlisted", "Describes something unknown")
    if any(token.kind not in (WORD, NAME, STRING) and token.key != "." for token in tokens):
        raise Refusal(Code.SQL_UNKNOWN, "describe.unlisted", "Describes something unknown")
    dotted = len(tokens) > 2 and tokens[1].key == "."
    name = f"{tokens[0].text}.{tokens[2].text}" if dotted else tokens[0].text
    return StatementEffects([], {name: None})


def _describe(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """DuckDB's DESCRIBE and SUMMARIZE of a query or a table."""
    inner = tokens[1:]
    if inner and inner[0].key == "TABLE":
        inner = inner[1:]
    if not inner:
        return StatementEffects([])
    if dialect.roots.get(inner[0].key) == "query":
        return _query(inner, dialect)
    return _query([*_SELECT_ALL, *inner], dialect)


def _show(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    words = check_tokens(tokens, dialect, reading=True)
    if words.unlisted or words.opinions or any(token.key == "SELECT" for token in tokens[1:]):
        raise _unlisted_show(tokens)
    if not dialect.shows:
        if len(tokens) in range(2, 7) and all(
            token.kind in (WORD, NAME) or token.key == "." for token in tokens
        ):
            return StatementEffects([])
        raise _unlisted_show(tokens)
    keys = [token.key for token in tokens[1:4]]
    if keys and f"SHOW {keys[0]}" in dialect.statement_state:
        state = state_refused(f"SHOW {keys[0]}")
        raise Refusal(
            Code.SQL_FUNCTION,
            "show.statement_state",
            state.reason,
            "An error comes with its whole text in the answer of its own statement.",
        )
    if dialect.show_describes and _is_private(keys):
        return _describe(tokens, dialect)
    if _is_private(keys):
        raise Refusal(
            Code.POLICY_DENIED,
            "show.private",
            f"SHOW {' '.join(token.text for token in tokens[1:3])[:60]} shows statements of other"
            " callers, or accounts and their rights",
            "Read the tables of the application, or ask the operator, who may see it in the"
            " database itself.",
        )
    if keys and keys[0] in dialect.shows:
        return StatementEffects([])
    if dialect.show_describes:
        return _describe(tokens, dialect)
    raise _unlisted_show(tokens)


def _is_private(keys: list[str]) -> bool:
    """Whether SHOW shows other callers' statements, or the password of an account."""
    private = {"PROCESSLIST", "GRANTS"}
    return "USER" in keys or keys[:1] == ["ENGINE"] or not private.isdisjoint(keys[:2])


def _unlisted_show(tokens: list[Token]) -> Refusal:
    what = " ".join(token.text for token in tokens[1:3])[:60]
    return Refusal(
        Code.SQL_UNKNOWN,
        "show.unlisted",
        f"SHOW {what} is not on the list of what only reads",
        "Query information_schema instead.",
    )


def _pragma(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    rest = tokens[1:]
    if len(rest) > 2 and rest[1].key == ".":
        rest = rest[2:]
    name = rest[0].text.lower() if rest and rest[0].kind in (WORD, NAME) else ""
    value = rest[1:]
    if name in dialect.pragmas and not value:
        return StatementEffects([])
    if name in dialect.argument_pragmas and _is_argument(value, dialect):
        return StatementEffects([])
    raise_to = Finding(
        Effect.ADMIN,
        "pragma.unlisted",
        f"PRAGMA {name} can change the connection or the database",
        hint="Use a pragma that only reads, such as table_info.",
    )
    return StatementEffects([raise_to])


def _is_argument(tokens: list[Token], dialect: Dialect) -> bool:
    """True for `= value` and `(value)` where the value names something in the database."""
    bracketed = len(tokens) == 3 and tokens[0].key == "(" and tokens[2].key == ")"
    assigned = len(tokens) == 2 and tokens[0].key == "=" and not dialect.reads_files
    if not (bracketed or assigned) or tokens[1].kind not in (WORD, NAME, STRING, NUMBER):
        return False
    return not dialect.reads_files or tokens[1].text.replace("_", "").replace(".", "").isalnum()


_FORMS: dict[str, Callable[[list[Token], Dialect], StatementEffects]] = {
    "query": _query,
    "change": _change,
    "explain": _explain,
    "analyze": _analyze,
    "describe": _describe,
    "show": _show,
    "pragma": _pragma,
    "create": create,
    "alter": alter,
    "drop": drop,
}
