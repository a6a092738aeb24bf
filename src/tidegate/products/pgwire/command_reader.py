"""Reads which texts are commands of a PostgreSQL session, and parts texts into statements. Pure.

Only a command that is read to its last token is one. Everything else is a statement for the gate,
which judges it whole, so that what is not recognized here has no way around.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.model.transactions import Isolation, TransactionModes
from tidegate.products.pgwire.command_tokens import CommandTokens
from tidegate.products.pgwire.copy_command import read_copy
from tidegate.products.pgwire.parsed_commands import (
    Begin,
    Characteristics,
    CloseCursor,
    Command,
    CopyOut,
    Deallocate,
    Declare,
    Discard,
    End,
    Fetch,
    Refused,
    Reset,
    Savepoint,
    SetConfig,
    Setting,
    SetValue,
    Show,
    Unlisten,
    UnlockAll,
)
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import words
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NUMBER, OP, lex

MOST_READ = 102_400
"""Characters of a statement: the gate refuses a longer one."""
MOST_SPLIT = 262_144
"""Characters of a text of several statements."""
_RULES = find("postgres").lexical_rules
_FIRST = (
    "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "SHOW",
    "RESET", "DISCARD", "DEALLOCATE", "CLOSE", "UNLISTEN", "DECLARE", "FETCH", "MOVE", "COPY",
    "SELECT",
)  # fmt: skip


def split(text: str, dialect: str) -> list[str]:
    """The statements of a text, without those that are empty. A text that the dialect's lexer
    refuses, or that is longer than `MOST_SPLIT`, is one statement: the gate says what is wrong."""
    if ";" not in text or len(text) > MOST_SPLIT:
        return [text] if text.strip() else []
    try:
        tokens = lex(text, find(dialect).lexical_rules)
    except Refusal:
        return [text]
    parts: list[str] = []
    begun = 0
    has_tokens = False
    for token in tokens:
        if token.kind == OP and token.key == ";":
            if has_tokens:
                parts.append(text[begun : token.at].strip())
            begun, has_tokens = token.at + 1, False
        else:
            has_tokens = True
    if has_tokens:
        parts.append(text[begun:].strip())
    return parts


_STATEMENTS = (
    "(", "ALTER", "ANALYZE", "CALL", "CHECKPOINT", "CLUSTER", "COMMENT", "CREATE", "DELETE", "DO",
    "DROP", "EXECUTE", "EXPLAIN", "GRANT", "IMPORT", "INSERT", "LISTEN", "LOAD", "LOCK", "MERGE",
    "NOTIFY", "PREPARE", "REASSIGN", "REFRESH", "REINDEX", "REVOKE", "SECURITY", "TABLE",
    "TRUNCATE", "UPDATE", "VACUUM", "VALUES", "WITH",
)  # fmt: skip


def begins_statement(text: str, dialect: str) -> bool:
    """Whether the first word of a text begins a statement, of PostgreSQL or of the dialect; also
    one that is refused here."""
    try:
        tokens = lex(text[:MOST_READ], find(dialect).lexical_rules)
    except Refusal:
        return True  # the gate has said what is wrong
    first = tokens[0].key if tokens else ""
    return first in _STATEMENTS or first in _FIRST or first in find(dialect).roots


def read_command(text: str) -> Command | None:
    """The command that the text is, or None: a statement for the gate."""
    if len(text) > MOST_READ:
        return None
    if not text[:2_000].lstrip().upper().startswith((*_FIRST, "/*", "--")):
        return None
    try:
        tokens = lex(text, _RULES)
    except Refusal:
        return None
    while tokens and tokens[-1].key == ";":
        tokens.pop()
    if not tokens or any(token.key == ";" for token in tokens):
        return None
    reader = CommandTokens(text, tokens)
    word = reader.word()
    read = _READERS.get(word)
    found = None if read is None else read(reader)
    ends_itself = isinstance(found, (Declare, CopyOut, Refused))
    return found if reader.at_end or ends_itself else None


_Read = Callable[[CommandTokens], Command | None]


_ISOLATION: dict[tuple[str, ...], Isolation] = {
    ("SERIALIZABLE",): "serializable",
    ("REPEATABLE", "READ"): "repeatable read",
    ("READ", "COMMITTED"): "read committed",
    ("READ", "UNCOMMITTED"): "read uncommitted",
}


def _isolation(reader: CommandTokens) -> Isolation | None:
    for named, level in _ISOLATION.items():
        if reader.take(*named):
            return level
    return None


def _transaction_modes(reader: CommandTokens) -> TransactionModes | None:
    """The modes up to the end; None if one of them is not known."""
    isolation: Isolation | None = None
    reads_only: bool | None = None
    deferrable: bool | None = None
    while not reader.at_end:
        reader.take(",")
        if reader.take("READ", "ONLY"):
            reads_only = True
        elif reader.take("READ", "WRITE"):
            reads_only = False
        elif reader.take("ISOLATION", "LEVEL"):
            isolation = _isolation(reader)
            if isolation is None:
                return None
        elif reader.take("NOT", "DEFERRABLE"):
            deferrable = False
        elif reader.take("DEFERRABLE"):
            deferrable = True
        else:
            return None
    return TransactionModes(isolation, reads_only, deferrable)


def _begin(reader: CommandTokens) -> Command | None:
    if not reader.take("TRANSACTION"):
        reader.take("WORK")
    modes = _transaction_modes(reader)
    return None if modes is None else Begin(modes)


def _start(reader: CommandTokens) -> Command | None:
    if not reader.tokens[1:2] or reader.tokens[1].key != "TRANSACTION":
        return None
    begin = _begin(reader)
    return begin._replace(tag="START TRANSACTION") if isinstance(begin, Begin) else None


def _end(commit: bool) -> _Read:
    def read(reader: CommandTokens) -> Command | None:
        if not reader.take("WORK"):
            reader.take("TRANSACTION")
        if not commit and reader.take("TO"):
            reader.take("SAVEPOINT")
            name = reader.name()
            return Savepoint("ROLLBACK", name) if name else None
        if reader.take("AND", "NO", "CHAIN"):
            return End(commit)
        return End(commit, chain=reader.take("AND", "CHAIN"))

    return read


def _savepoint(reader: CommandTokens) -> Command | None:
    name = reader.name()
    return Savepoint("SAVEPOINT", name) if name else None


def _release(reader: CommandTokens) -> Command | None:
    reader.take("SAVEPOINT")
    name = reader.name()
    return Savepoint("RELEASE", name) if name else None


def _set(reader: CommandTokens) -> Command | None:
    session = reader.take("SESSION", "CHARACTERISTICS", "AS", "TRANSACTION")
    if session or reader.take("TRANSACTION"):
        modes = _transaction_modes(reader)
        return None if modes is None else Characteristics(session, modes)
    local = reader.take("LOCAL")
    if not local:
        reader.take("SESSION")
    if reader.take("TIME", "ZONE"):
        name = "timezone"
        if reader.take("LOCAL"):
            return SetValue(name, None, local)
        if reader.take("INTERVAL"):
            offset = reader.text_value()
            reader.take("HOUR", "TO", "MINUTE")
            return None if offset is None else SetValue(name, f"INTERVAL '{offset}'", local)
    elif reader.take("NAMES"):
        name = "client_encoding"
        if reader.at_end:
            return SetValue(name, None, local)
    else:
        name = reader.setting()
        if not (reader.take("=") or reader.take("TO")):
            return None
    return _value_of(reader, name, local) if name else None


_LISTS_OF_NAMES = words("""
    search_path temp_tablespaces local_preload_libraries session_preload_libraries
    shared_preload_libraries oauth_validator_libraries
    """)
_LISTS = _LISTS_OF_NAMES | words("""
    createrole_self_grant datestyle debug_io_direct listen_addresses log_connections
    log_destination restrict_nonsystem_relation_kind synchronized_standby_slots
    synchronous_standby_names unix_socket_directories wal_consistency_checking
    """)
"""Settings that take several values. The others take one."""


def _value_of(reader: CommandTokens, name: str, local: bool) -> Command:
    """SET with what follows its `=` or TO."""
    key = name.lower()
    if reader.take("DEFAULT"):
        return SetValue(name, None, local) if reader.at_end else _UNREAD
    values: list[str] = []
    while True:
        value = reader.setting_value(quotes_names=key in _LISTS_OF_NAMES)
        if value is None:
            return _ESCAPES if reader.is_escaped else _UNREAD
        values.append(value)
        if reader.take(","):
            continue
        if not reader.at_end:
            return _UNREAD
        if len(values) > 1 and key not in _LISTS:
            return Refused("22023", f"SET {name[:80]} takes only one argument.", "Give it one.")
        return SetValue(name, ", ".join(values), local)


_UNREAD = Refused(
    "42601",
    "Syntax error in SET: what follows = or TO is not a value.",
    "Write it as in SET name = 'value'.",
)
_ESCAPES = Refused(
    "0A000",
    "A string with escapes is not read as the value of a setting here.",
    "Write it as a plain string, as in SET name = 'value'.",
)


def _show(reader: CommandTokens) -> Command | None:
    if reader.take("TRANSACTION", "ISOLATION", "LEVEL"):
        return Show("transaction_isolation")
    name = "timezone" if reader.take("TIME", "ZONE") else reader.setting()
    return Show(name) if name else None


def _reset(reader: CommandTokens) -> Command | None:
    name = "timezone" if reader.take("TIME", "ZONE") else reader.setting()
    return Reset(name) if name else None


def _discard(reader: CommandTokens) -> Command | None:
    what = reader.word()
    return Discard(what) if what in ("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY") else None


def _deallocate(reader: CommandTokens) -> Command | None:
    reader.take("PREPARE")
    if reader.take("ALL"):
        return Deallocate(None)
    name = reader.name()
    return Deallocate(name) if name else None


def _close(reader: CommandTokens) -> Command | None:
    if reader.take("ALL"):
        return CloseCursor(None)
    name = reader.name()
    return CloseCursor(name) if name else None


def _unlisten(reader: CommandTokens) -> Command | None:
    return Unlisten() if reader.take("*") or reader.name() else None


def _declare(reader: CommandTokens) -> Command | None:
    name = reader.name()
    while reader.take("INSENSITIVE") or reader.take("ASENSITIVE") or reader.take("NO", "SCROLL"):
        pass
    if not name or not reader.take("CURSOR"):
        return None
    hold = reader.take("WITH", "HOLD")
    reader.take("WITHOUT", "HOLD")
    if not reader.take("FOR") or reader.at_end:
        return None
    return Declare(name, reader.rest(), hold)


def _fetch(move: bool) -> _Read:
    def read(reader: CommandTokens) -> Command | None:
        count: int | None = 1
        if reader.take("ALL") or reader.take("FORWARD", "ALL"):
            count = None
        else:
            if not reader.take("NEXT"):
                reader.take("FORWARD")
            if not reader.at_end and reader.tokens[reader.at].kind == NUMBER:
                digits = reader.value() or ""
                if not digits.isdecimal():
                    return None
                count = int(digits)
        if not reader.take("FROM"):
            reader.take("IN")
        name = reader.name()
        return Fetch(name, count, move) if name else None

    return read


def _select(reader: CommandTokens) -> Command | None:
    found: list[Setting] = []
    while True:
        reader.take("PG_CATALOG", ".")
        if reader.take("PG_ADVISORY_UNLOCK_ALL", "(", ")"):
            return None if found else UnlockAll()
        setting = _setting(reader)
        if setting is None:
            return None
        found.append(setting)
        if not reader.take(","):
            return SetConfig(tuple(found))


def _setting(reader: CommandTokens) -> Setting | None:
    if reader.take("CURRENT_SETTING", "("):
        label, name, value, local = "current_setting", reader.text_value(), None, False
    elif reader.take("SET_CONFIG", "("):
        label, name = "set_config", reader.text_value()
        value = reader.text_value() if reader.take(",") else None
        local = reader.take(",", "TRUE")
        if value is None or not (local or reader.take(",", "FALSE")):
            return None
    else:
        return None
    if name is None or not reader.take(")"):
        return None
    if reader.take("AS"):
        label = reader.name()
    return Setting(label, name.lower(), value, local) if label else None


_READERS: dict[str, _Read] = {
    "BEGIN": _begin,
    "START": _start,
    "COMMIT": _end(True),
    "END": _end(True),
    "ROLLBACK": _end(False),
    "ABORT": _end(False),
    "SAVEPOINT": _savepoint,
    "RELEASE": _release,
    "SET": _set,
    "SHOW": _show,
    "RESET": _reset,
    "DISCARD": _discard,
    "DEALLOCATE": _deallocate,
    "CLOSE": _close,
    "UNLISTEN": _unlisten,
    "DECLARE": _declare,
    "FETCH": _fetch(False),
    "MOVE": _fetch(True),
    "SELECT": _select,
    "COPY": read_copy,
}
