"""Statements that administer a database and that a person may approve, one by one: a closed list.

GRANT and REVOKE, accounts, routines and triggers, CALL, VACUUM, COPY TO STDOUT. What reaches
files, programs or the network is refused in every form that a text can show, also in the body of a
routine, where each function must be on the dialect's list. What an existing role or procedure can
do does not show in a text: that is for the person to judge. What is not read here keeps its own
judgement, which refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from itertools import pairwise

from tidegate.model.statements import Administration, Effect
from tidegate.sql.dialects.model import Dialect, words
from tidegate.sql.finding import Finding, Refusal
from tidegate.sql.lex import NAME, NUMBER, OP, PARAM, STRING, WORD, Token, lex
from tidegate.sql.query_statement import StatementEffects, read_query_statement
from tidegate.sql.token_checks import check_tokens
from tidegate.sql.tree_checks import is_restricted

_SELECT = Token(WORD, "SELECT", "SELECT", 0)
_NAMES = (WORD, NAME)

_ROLES = words("GROUP ROLE USER")
_ROUTINES = words("FUNCTION MACRO PROCEDURE")
_MODIFIERS = words("CONSTRAINT OR REPLACE")
_EXISTENCE = words("EXISTS IF NOT")

_NOT_IN_CODE = words("""
    ALTER ATTACH BACKUP BINLOG CACHE CALL CHANGE CLONE COPY CREATE DETACH DROP DUMPFILE EXECUTE
    FLUSH GLOBAL GRANT IMPORT INFILE INSTALL KILL LANGUAGE LISTEN LOAD NOTIFY OUTFILE PERSIST
    PERSIST_ONLY PREPARE PROGRAM PURGE REASSIGN REPLICA RESET REVOKE SHUTDOWN SLAVE SONAME TRUNCATE
    UNINSTALL VACUUM XA
    """)
"""Words that code may not have in any dialect: dynamic SQL, further definitions, files,
programs, the server's settings."""

_KINDS_IN_CODE = frozenset({"query", "change", "describe", "explain", "show", "session"})
"""Kinds of statements that code may hold (`Dialect.roots`)."""

_ALSO_IN_CODE = words("CHECK COMMENT SECURITY")
"""Words that begin statements of other kinds, and are in ordinary code as well: attributes of
routines, and WITH CHECK OPTION."""


def not_in_code(dialect: Dialect) -> frozenset[str]:
    """The words that code may not have: those listed, and whatever begins a statement of this
    dialect that is neither a query, nor a change of rows, nor about the session."""
    others = {word for word, kind in dialect.roots.items() if kind not in _KINDS_IN_CODE}
    return _NOT_IN_CODE | (others - _ALSO_IN_CODE)


_BODY_WORDS = words("ELSEIF ELSIF EXIT IF PERFORM RAISE RETURN RETURNS UNTIL WHEN WHILE")
"""Words of procedural code that may precede a bracket and call nothing."""

_ROLE_OPTIONS = words("BYPASSRLS CREATEROLE REPLICATION RESET SET SUPERUSER")
"""Options that lift a role above its privileges, or give it settings of its own."""

_RIGHTS_ON = words("FOREIGN LANGUAGE LARGE PARAMETER TABLESPACE")
"""What PostgreSQL's GRANT may not be about: it leads out of the database."""

_PRIVILEGES = words("""
    ALL ALTER CREATE DATABASES DELETE DROP EVENT EXECUTE INDEX INSERT LOCK PRIVILEGES REFERENCES
    ROUTINE SELECT SHOW TABLES TEMPORARY TRIGGER UPDATE USAGE VIEW
    """)
"""The words of MySQL's privileges that stay within a database."""

OUTSIDE_HINT = "Leave it out, or ask the operator to run the statement."


class _Outside(Exception):
    """The statement is not one that a person can approve here; says why."""


def administer(tokens: list[Token], dialect: Dialect) -> StatementEffects | None:
    """The reading of a statement that administers the database, with its `administration` if a
    person may approve it; None if it is not one of those listed here. Raises: Refusal."""
    if not dialect.administration:
        return None
    form = _form(tokens, dialect)
    if form is None:
        return None
    kind, read = form
    try:
        return read(tokens, dialect)
    except _Outside as why:
        finding = Finding(
            Effect.ADMIN,
            f"admin.{kind}",
            f"{why}, and the gate never runs such a statement",
            hint=OUTSIDE_HINT,
        )
        return StatementEffects([finding])


_Read = Callable[[list[Token], Dialect], StatementEffects]


def _form(tokens: list[Token], dialect: Dialect) -> tuple[str, _Read] | None:
    """The kind of administration, and what reads it, by the first words."""
    root = tokens[0].key
    subject = next((t.key for t in tokens[1:] if t.key not in _MODIFIERS), "")
    kind, read = _ROOTS.get(root, ("", None))
    if root in ("CREATE", "ALTER", "DROP", "RENAME"):
        if subject in _ROLES and (root != "RENAME" or subject == "USER"):
            kind, read = "account", _account
        elif root in ("CREATE", "DROP") and subject in _ROUTINES:
            kind, read = "routine", _routine if root == "CREATE" else _drop
        elif root in ("CREATE", "DROP") and subject == "TRIGGER":
            kind, read = "trigger", _trigger if root == "CREATE" else _drop
    if read is None or kind not in dialect.administration:
        return None
    return kind, read


def _reading(
    kind: str,
    reason: str,
    administration: Administration,
    tables: dict[str, None] | None = None,
) -> StatementEffects:
    return StatementEffects(
        [Finding(Effect.ADMIN, f"admin.{kind}", reason)],
        tables or {},
        administration=administration,
    )


# Maintenance.


def _vacuum(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """VACUUM, of everything or of tables; not INTO a file."""
    if any(token.key == "INTO" for token in tokens):
        raise _Outside("VACUUM INTO writes a file")
    _check_kinds(tokens, (WORD, NAME, NUMBER), ".,()")
    if dialect.in_files and len(tokens) > 1 and [t.key for t in tokens[1:]] != ["MAIN"]:
        raise _Outside("VACUUM of another database rewrites another file")
    tables = dict.fromkeys(name for name in _listed(tokens[1:]) if name.upper() not in _HOW)
    reason = "Rewrites or cleans up tables; changes no data"
    administration = Administration(shows=False, in_transaction=False)
    return _reading("maintenance", reason, administration, tables)


_HOW = words("ANALYZE ANALYSE FREEZE FULL MAIN VERBOSE")


def _listed(tokens: list[Token]) -> Iterator[str]:
    """The names outside of brackets, with their dots."""
    depth, parts = 0, list[str]()
    for before, token in zip([Token(OP, ",", ",", 0), *tokens], tokens, strict=False):
        depth += (token.key == "(") - (token.key == ")")
        if depth or token.kind not in _NAMES:
            continue
        if before.key == "." and parts:
            parts[-1] = f"{parts[-1]}.{token.text}"
        else:
            parts.append(token.text)
    yield from parts


# Rights and accounts.


def _rights(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """GRANT and REVOKE of privileges and roles."""
    _check_kinds(tokens, (WORD, NAME, STRING, PARAM, NUMBER), ".,()*")
    _check_names(tokens, dialect)
    grants = tokens[0].key == "GRANT"
    keys = [token.key for token in tokens]
    if "PROXY" in keys:
        raise _Outside("PROXY lets one account act as another")
    if grants and "ON" in keys:
        at = keys.index("ON")
        if dialect.definitions_commit:
            _check_mysql_rights(tokens[1:at], tokens[at + 1 :], dialect)
        elif tokens[at + 1 : at + 2] and keys[at + 1] in _RIGHTS_ON:
            raise _Outside(f"A right on {keys[at + 1]} reaches beyond the database")
    what = "Grants rights" if grants else "Takes rights away"
    return _reading(
        "rights", what, Administration(shows=grants, in_transaction=not dialect.definitions_commit)
    )


def _check_mysql_rights(privileges: list[Token], rest: list[Token], dialect: Dialect) -> None:
    """Refuse privileges of the whole server, and those on its own databases."""
    depth = 0
    for token in privileges:
        depth += (token.key == "(") - (token.key == ")")
        if not depth and token.kind in _NAMES and token.key not in _PRIVILEGES:
            raise _Outside(f"The privilege {token.text[:40]} applies to the whole server")
    target = rest[1:] if rest and rest[0].key in ("TABLE", "FUNCTION", "PROCEDURE") else rest
    dotted = len(target) > 2 and target[1].key == "."
    place = target[0] if dotted else None
    if place is None:
        if target and target[0].key == "*":
            return  # all tables of the source's own database
        parts = (target[0].text,) if target else ()
    elif place.key == "*":
        if [token.key for token in privileges] == ["USAGE"]:
            return
        raise _Outside("A privilege ON *.* applies to the whole server")
    else:
        if _may_be_system(place.text, dialect):
            raise _Outside(f"The pattern {place.text[:40]} covers the server's own databases")
        parts = (place.text, "any" if target[2].key == "*" else target[2].text)
    if parts and is_restricted(parts, dialect):
        raise _Outside(f"{'.'.join(parts)[:80]} holds the server's internal state")


def _may_be_system(pattern: str, dialect: Dialect) -> bool:
    """Whether a name in GRANT, where % and _ are wildcards, covers a database of the server's.
    Names of accounts' databases are compared without regard to case, which covers all servers."""
    plain = pattern.lower().replace("\\_", "\0").replace("\\%", "\1")
    found = re.escape(plain).replace("%", ".*").replace("_", ".")
    expression = re.compile(found.replace("\0", "_").replace("\1", "%"))
    return any(expression.fullmatch(name) for name in dialect.system_databases)


def _account(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """CREATE, ALTER, DROP and RENAME of accounts and roles, less what lifts an account above the
    rules of privileges."""
    keys = [token.key for token in tokens]
    if "MAPPING" in keys[:5]:
        raise _Outside("A user mapping is about another server")
    _check_names(tokens, dialect)
    _check_kinds(
        tokens, (WORD, NAME, STRING, PARAM, NUMBER), ".,()" if dialect.definitions_commit else ".,"
    )
    for at, token in enumerate(tokens):
        if token.key == "(" and tokens[at - 1].key != "PASSWORD":
            raise _Outside("An account's definition calls a function")
        if not dialect.definitions_commit and token.key in _ROLE_OPTIONS:
            raise _Outside(
                f"{token.key} lifts an account above its privileges, or changes its settings"
            )
    drops = keys[0] == "DROP"
    what = {"CREATE": "Creates", "ALTER": "Changes", "DROP": "Drops", "RENAME": "Renames"}[keys[0]]
    return _reading(
        "account",
        f"{what} an account or role",
        Administration(shows=not drops, drops=drops, in_transaction=not dialect.definitions_commit),
    )


def _check_names(tokens: Collection[Token], dialect: Dialect) -> None:
    """Refuse the server's own roles and functions, some of which reach files and programs."""
    for token in tokens:
        named = token.kind in (*_NAMES, STRING)
        if named and token.text.lower().startswith(dialect.server_prefixes):
            raise _Outside(f"{token.text[:80]} is a part of the server and may reach its files")


def _check_kinds(tokens: list[Token], kinds: Collection[str], marks: str) -> None:
    """Refuse what the statement's grammar has no room for."""
    for token in tokens:
        if token.kind not in kinds and not (token.kind == OP and token.key in marks):
            raise _Outside(f"{token.text[:40]!r} has no place in this statement")


# Code.


def _routine(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """CREATE FUNCTION and PROCEDURE in SQL or the database's own procedural language."""
    at = next(n for n, token in enumerate(tokens) if token.key in _ROUTINES)
    name = _end_of_name(tokens, at + 1)
    keys = [token.key for token in tokens]
    # What is listed by name and read as the database's own must stay the database's own.
    _check_names(tokens[at + 1 : name], dialect)
    if len(tokens[at + 1 : name]) > 2 and tokens[name - 3].text.lower() in dialect.function_schemas:
        raise _Outside(f"{tokens[name - 3].text[:40]} holds the database's own functions")
    _check_attributes(tokens, dialect)
    permitted = {name}
    for place in range(1, len(tokens)):
        if keys[place] == "TABLE" and keys[place - 1] == "RETURNS":
            permitted.add(place + 1)
    _check_code(tokens[at:], dialect, {place - at for place in permitted}, attributes=True)
    for before, token in pairwise(tokens):
        if token.kind == STRING and before.kind == STRING:
            raise _Outside("A string that is continued by another is not read as code")
        if token.kind == STRING and before.key == "AS":
            _check_body(token.text, dialect)
    what = "Creates or replaces" if "REPLACE" in keys[:at] else "Creates"
    return _reading(
        "routine",
        f"{what} a {keys[at].lower()}, which others may run",
        Administration(in_transaction=not dialect.definitions_commit),
    )


def _check_attributes(tokens: list[Token], dialect: Dialect) -> None:
    """Refuse other languages, code in libraries, and rights and settings of another account."""
    for token, after in zip(tokens, [*tokens[1:], Token("", "", "", 0)], strict=True):
        if token.key == "LANGUAGE" and after.text.upper() not in dialect.routine_languages:
            raise _Outside(f"The language {after.text[:40]} is not one of {_listing(dialect)}")
        if token.key in ("SONAME", "SUPPORT", "TRANSFORM"):
            raise _Outside(f"{token.key} loads code from elsewhere")
        if token.key == "DEFINER" and after.key == "=":
            raise _Outside("DEFINER gives the code another account's rights")
        if token.key == "TEMP" or token.key == "TEMPORARY":
            raise _Outside("Every statement has a session of its own, so what is temporary is lost")
        if token.key == "SET" and after.text.upper() in _NOT_SET:
            raise _Outside(
                f"SET {after.text.upper()} changes whose rights the code has, or the server"
            )


_NOT_SET = words(
    "DEFAULT GLOBAL LOCAL PASSWORD PERSIST PERSIST_ONLY RESOURCE ROLE SESSION SESSION_AUTHORIZATION"
)
"""Quoted as well: to PostgreSQL the name of a setting is an ordinary name."""


def _listing(dialect: Dialect) -> str:
    return " and ".join(sorted(dialect.routine_languages)) or "those that the gate knows"


def _trigger(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """CREATE TRIGGER, with its body or with the function that it calls."""
    at = next(n for n, token in enumerate(tokens) if token.key == "TRIGGER")
    keys = [token.key for token in tokens]
    _check_attributes(tokens, dialect)
    calls = next(
        (
            n
            for n in range(at, len(tokens) - 1)
            if keys[n] == "EXECUTE" and keys[n + 1] in ("FUNCTION", "PROCEDURE")
        ),
        None,
    )
    code = tokens[at:]
    permitted: set[int] = set()
    if calls is not None:
        # The function exists: the person decides whether it may run on every change.
        end = _end_of_name(tokens, calls + 2)
        _check_names(tokens[calls + 2 : end], dialect)
        permitted.add(end - at)
        code = [
            *tokens[at:calls],
            tokens[calls]._replace(key="", text="EXECUTE"),
            *tokens[calls + 1 :],
        ]
    _check_code(code, dialect, permitted)
    table = next((n for n in range(at, len(tokens) - 1) if keys[n] == "ON"), None)
    tables: dict[str, None] = {}
    if table is not None:
        end = _end_of_name(tokens, table + 1)
        tables[".".join(token.text for token in tokens[table + 1 : end : 2])] = None
    return _reading(
        "trigger",
        "Creates a trigger, which runs with every change of its table",
        Administration(in_transaction=not dialect.definitions_commit),
        tables,
    )


def _drop(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """DROP FUNCTION, PROCEDURE and TRIGGER."""
    _check_kinds(tokens, (WORD, NAME, NUMBER), ".,()[]")
    _check_names(tokens[1:], dialect)
    kind = next(t.key for t in tokens[1:] if t.key not in _MODIFIERS)
    return _reading(
        "trigger" if kind == "TRIGGER" else "routine",
        f"Drops a {kind.lower()}",
        Administration(shows=False, drops=True, in_transaction=not dialect.definitions_commit),
    )


def _check_body(text: str, dialect: Dialect) -> None:
    """Check the code that a routine has as a string."""
    try:
        tokens = lex(text, dialect.lexical_rules)
    except Refusal:
        raise _Outside("The body cannot be read") from None
    _check_attributes(tokens, dialect)
    _check_code(tokens, dialect, set())


def _check_code(
    tokens: list[Token], dialect: Dialect, permitted: set[int], *, attributes: bool = False
) -> None:
    """Refuse code with anything but queries, changes and the flow of control. Fails closed: a bare
    name that is one of the words is refused, too. `permitted` are the brackets before which a name
    is no call. With `attributes` the code is a whole definition, whose language was checked."""
    previous = Token("", "", "", 0)
    refused = not_in_code(dialect)
    for token in tokens:
        named = previous.key == "." or (attributes and token.key == "LANGUAGE")
        if token.kind == WORD and token.key in refused and not named:
            raise _Outside(f"The code holds {token.key}")
        if token.text.lower().startswith(("@@global", "@@persist")):
            raise _Outside("The code changes the server's settings")
        if token.kind == STRING and previous.key == "DO":
            raise _Outside("The code holds a DO block")
        previous = token
    for parts in _chains(tokens):
        if parts[-1].lower() in dialect.settings_tables:
            raise _Outside(f"The code may change settings by {parts[-1]}")
        if is_restricted(parts, dialect):
            raise _Outside(f"{'.'.join(parts)[:80]} holds secrets, internal state, or is a file")
    checked = check_tokens(tokens, dialect, reading=False)
    worse = [opinion for opinion in checked.opinions if opinion.effect > Effect.DESTRUCTIVE]
    if worse:
        raise _Outside(worse[0].reason)
    for name, places in checked.unlisted.items():
        for place in places:
            if place in permitted or _is_target(tokens, place):
                continue
            if tokens[place - 1].key in _BODY_WORDS:
                continue
            raise _Outside(f"The code calls {name[:60]}, which is not on the list of functions")


def _is_target(tokens: list[Token], bracket: int) -> bool:
    """Whether the name before the bracket is the table of an INSERT INTO, with its columns."""
    at = bracket - 1
    while at >= 2 and tokens[at - 1].key == ".":
        at -= 2
    return at >= 2 and tokens[at - 1].key == "INTO" and tokens[at - 2].key in ("INSERT", "REPLACE")


def _chains(tokens: list[Token]) -> Iterator[tuple[str, ...]]:
    """Every name with the names before its dots."""
    parts: list[str] = []
    for number, token in enumerate(tokens):
        if token.kind not in _NAMES:
            continue
        if number and tokens[number - 1].key == "." and parts:
            parts.append(token.text)
        else:
            parts = [token.text]
        following = tokens[number + 1].key if number + 1 < len(tokens) else ""
        if following != ".":
            yield tuple(parts)


def _end_of_name(tokens: list[Token], at: int) -> int:
    """The number of the token after a name with its dots. Raises: _Outside."""
    while at < len(tokens) and tokens[at].key in _EXISTENCE:
        at += 1
    if at >= len(tokens) or tokens[at].kind not in _NAMES:
        raise _Outside("The statement names nothing")
    while at + 2 < len(tokens) and tokens[at + 1].key == ".":
        at += 2
    return at + 1


# Calls and copies.


def _call(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """CALL of a procedure, with arguments that only read."""
    end = _end_of_name(tokens, 1)
    parts = tuple([token.text for token in tokens[1:end:2]])
    _check_names(tokens[1:end], dialect)
    if len(parts) > 1 and is_restricted(parts, dialect):
        raise _Outside(f"{'.'.join(parts)[:80]} belongs to the server")
    rest = tokens[end:]
    if rest and (rest[0].key != "(" or rest[-1].key != ")"):
        raise _Outside("CALL has more than a procedure and its arguments")
    reading = StatementEffects([])
    if len(rest) > 2:
        reading = _query([_SELECT, *_positional(rest[1:-1])], dialect)
    return _reading(
        "call",
        f"Runs the procedure {'.'.join(parts)[:80]}, whose effect the gate does not know",
        Administration(in_transaction=not dialect.procedures_commit),
        reading.tables,
    )


def _positional(tokens: list[Token]) -> list[Token]:
    """Arguments without the names that `name => value` gives them."""
    kept: list[Token] = []
    for token in tokens:
        if token.key == "=>" and kept and kept[-1].kind in _NAMES:
            kept.pop()
        else:
            kept.append(token)
    return kept


def _copy(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """COPY of a table or a query to the caller; not to a file or a program, and not from one."""
    keys = [token.key for token in tokens]
    depth, to = 0, -1
    for number, key in enumerate(keys):
        depth += (key == "(") - (key == ")")
        if not depth and key in ("TO", "FROM"):
            to = number
            break
    if to < 0 or keys[to : to + 2] != ["TO", "STDOUT"]:
        raise _Outside("COPY reaches a file, a program or the client's input")
    _check_kinds(tokens[to + 2 :], (WORD, NAME, STRING, NUMBER), ",()*")
    if {"PROGRAM", "BINARY"} & {token.text.upper() for token in tokens[to:]}:
        raise _Outside("COPY in this form sends binary data or starts a program")
    source = tokens[1:to]
    if source and source[0].key == "(" and source[-1].key == ")":
        reading = _query(source[1:-1], dialect)
    else:
        end = _end_of_name(tokens, 1)
        columns = tokens[end:to]
        _check_kinds(columns, _NAMES, ",()")
        if columns and (columns[0].key, columns[-1].key) != ("(", ")"):
            raise _Outside("COPY names more than a table and its columns")
        what = columns[1:-1] if columns else [Token(OP, "*", "*", 0)]
        reading = _query([_SELECT, *what, Token(WORD, "FROM", "FROM", 0), *tokens[1:end]], dialect)
    return _reading(
        "copy",
        "Sends a table or the result of a query as text",
        Administration(runs_query=True),
        reading.tables,
    )


def _query(tokens: list[Token], dialect: Dialect) -> StatementEffects:
    """The reading of a query inside. Raises: _Outside if it does more than read; Refusal."""
    if not tokens or dialect.roots.get(tokens[0].key) != "query" or tokens[0].key == "TABLE":
        raise _Outside("What COPY or CALL reads is not a query")
    reading = read_query_statement(tokens, dialect, reading=True)
    if reading.opinions:
        raise _Outside(reading.opinions[0].reason)
    return reading


_ROOTS: dict[str, tuple[str, _Read | None]] = {
    "CALL": ("call", _call),
    "COPY": ("copy", _copy),
    "GRANT": ("rights", _rights),
    "REVOKE": ("rights", _rights),
    "VACUUM": ("maintenance", _vacuum),
}
