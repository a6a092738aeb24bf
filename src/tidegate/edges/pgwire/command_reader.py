"""Reads which texts are commands of a PostgreSQL session, and parts texts into statements. Pure.

Only a command that is read to its last token is one. Everything else is a statement for the gate,
which judges it whole, so that what is not recognized here has no way around.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.edges.pgwire.commands import (
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
from tidegate.model.transactions import Isolation, TransactionModes
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, NUMBER, OP, STRING, WORD, Token, lex

MOST_READ = 102_400
"""Characters of a statement: the gate refuses a longer one."""
MOST_SPLIT = 1_048_576
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
    reader = _Reader(text, tokens)
    word = reader.word()
    read = _READERS.get(word)
    found = None if read is None else read(reader)
    ends_itself = isinstance(found, (Declare, CopyOut, Refused))
    return found if reader.at_end or ends_itself else None


class _Reader:
    """Goes through the tokens. What does not fit gives None or False, and is not passed."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.tokens)

    def word(self) -> str:
        """The next token's keyword, passed; empty if it is none."""
        if self.at_end or self.tokens[self.at].kind != WORD:
            return ""
        self.at += 1
        return self.tokens[self.at - 1].key

    def take(self, *keys: str) -> bool:
        """Pass these keywords or operators, if all of them come now."""
        coming = self.tokens[self.at : self.at + len(keys)]
        if [token.key for token in coming] != list(keys):
            return False
        self.at += len(keys)
        return True

    def name(self) -> str:
        """A name, folded as PostgreSQL folds it; empty if there is none."""
        if self.at_end or self.tokens[self.at].kind not in (WORD, NAME):
            return ""
        token = self.tokens[self.at]
        self.at += 1
        return token.text.lower() if token.kind == WORD else token.text

    def setting(self) -> str:
        """The name of a setting, with dots in it if an extension's; empty if there is none."""
        name = self.name()
        while name and self.take("."):
            name += "." + self.name()
        return name

    def value(self) -> str | None:
        """A string, a number with its sign, or a word; None if there is none."""
        sign = "-" if self.take("-") else ""
        if self.at_end or self.tokens[self.at].kind not in (STRING, NUMBER, WORD, NAME):
            return None
        self.at += 1
        return sign + self.tokens[self.at - 1].text

    def text_value(self) -> str | None:
        """A string; None if there is none."""
        if self.at_end or self.tokens[self.at].kind != STRING:
            return None
        return self.value()

    def rest(self) -> str:
        """The text from here on."""
        return "" if self.at_end else self.text[self.tokens[self.at].at :].rstrip("; \t\r\n")


_Read = Callable[[_Reader], Command | None]


_ISOLATION: dict[tuple[str, ...], Isolation] = {
    ("SERIALIZABLE",): "serializable",
    ("REPEATABLE", "READ"): "repeatable read",
    ("READ", "COMMITTED"): "read committed",
    ("READ", "UNCOMMITTED"): "read uncommitted",
}


def _isolation(reader: _Reader) -> Isolation | None:
    for words, level in _ISOLATION.items():
        if reader.take(*words):
            return level
    return None


def _transaction_modes(reader: _Reader) -> TransactionModes | None:
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


def _begin(reader: _Reader) -> Command | None:
    if not reader.take("TRANSACTION"):
        reader.take("WORK")
    modes = _transaction_modes(reader)
    return None if modes is None else Begin(modes)


def _start(reader: _Reader) -> Command | None:
    return _begin(reader) if reader.tokens[1:2] and reader.tokens[1].key == "TRANSACTION" else None


def _end(commit: bool) -> _Read:
    def read(reader: _Reader) -> Command | None:
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


def _savepoint(reader: _Reader) -> Command | None:
    name = reader.name()
    return Savepoint("SAVEPOINT", name) if name else None


def _release(reader: _Reader) -> Command | None:
    reader.take("SAVEPOINT")
    name = reader.name()
    return Savepoint("RELEASE", name) if name else None


def _set(reader: _Reader) -> Command | None:
    session = reader.take("SESSION", "CHARACTERISTICS", "AS", "TRANSACTION")
    if session or reader.take("TRANSACTION"):
        modes = _transaction_modes(reader)
        return None if modes is None else Characteristics(session, modes)
    local = reader.take("LOCAL")
    if not local:
        reader.take("SESSION")
    if reader.take("TIME", "ZONE"):
        name = "timezone"
    elif reader.take("NAMES"):
        name = "client_encoding"
    else:
        name = reader.setting()
        if not (reader.take("=") or reader.take("TO")):
            return None
    if not name:
        return None
    if reader.take("DEFAULT"):
        return SetValue(name, None, local)
    values: list[str] = []
    while True:
        value = reader.value()
        if value is None:
            return None
        values.append(value)
        if not reader.take(","):
            return SetValue(name, ", ".join(values), local)


def _show(reader: _Reader) -> Command | None:
    if reader.take("TRANSACTION", "ISOLATION", "LEVEL"):
        return Show("transaction_isolation")
    name = "timezone" if reader.take("TIME", "ZONE") else reader.setting()
    return Show(name) if name else None


def _reset(reader: _Reader) -> Command | None:
    name = "timezone" if reader.take("TIME", "ZONE") else reader.setting()
    return Reset(name) if name else None


def _discard(reader: _Reader) -> Command | None:
    what = reader.word()
    return Discard(what) if what in ("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY") else None


def _deallocate(reader: _Reader) -> Command | None:
    reader.take("PREPARE")
    if reader.take("ALL"):
        return Deallocate(None)
    name = reader.name()
    return Deallocate(name) if name else None


def _close(reader: _Reader) -> Command | None:
    if reader.take("ALL"):
        return CloseCursor(None)
    name = reader.name()
    return CloseCursor(name) if name else None


def _unlisten(reader: _Reader) -> Command | None:
    return Unlisten() if reader.take("*") or reader.name() else None


def _declare(reader: _Reader) -> Command | None:
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
    def read(reader: _Reader) -> Command | None:
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


def _select(reader: _Reader) -> Command | None:
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


def _setting(reader: _Reader) -> Setting | None:
    if reader.take("CURRENT_SETTING", "("):
        label, name, value = "current_setting", reader.text_value(), None
    elif reader.take("SET_CONFIG", "("):
        label, name = "set_config", reader.text_value()
        value = reader.text_value() if reader.take(",") else None
        if value is None or not reader.take(",", "FALSE"):
            return None
    else:
        return None
    if name is None or not reader.take(")"):
        return None
    if reader.take("AS"):
        label = reader.name()
    return Setting(label, name.lower(), value) if label else None


def _copy(reader: _Reader) -> Command | None:
    """COPY { table [(column, …)] | (query) } TO STDOUT [[WITH] (option, …)]. COPY FROM, and what
    cannot be read, are left to the gate, which refuses them by name."""
    if reader.take("("):
        inner = _within_brackets(reader)
        if inner is None:
            return None
    else:
        begun = reader.at
        while reader.name() and reader.take("."):
            pass
        if reader.at == begun:
            return None
        table = reader.text[reader.tokens[begun].at : _end_of(reader)]
        columns = "*"
        if reader.take("("):
            listed = _within_brackets(reader)
            if listed is None:
                return None
            columns = listed
        inner = f"SELECT {columns} FROM {table}"
    if not reader.take("TO", "STDOUT"):
        return None
    reader.take("WITH")
    options = _copy_options(reader)
    if options is None:
        return None
    return _copy_out(inner, options)


def _copy_out(inner: str, options: dict[str, str]) -> Command:
    """The command with these options, or why not."""
    form = options.pop("format", "text").lower()
    if form not in ("text", "csv", "binary"):
        message = f'COPY format "{form[:40]}" not recognized.'
        return Refused("22023", message, "Use text, csv or binary.")
    if options.pop("encoding", "utf8").lower() not in ("utf8", "utf-8"):
        return Refused("0A000", "COPY writes UTF8 alone here.", "Leave ENCODING out.")
    if form == "binary":
        if options:
            names = ", ".join(options).upper()[:80]
            message = f"COPY in binary format takes no {names}."
            return Refused("42601", message, "Leave it out.")
        return CopyOut(inner, "binary", False, "", "")
    header = options.pop("header", "false").lower() in ("", "true", "on", "1")
    delimiter = options.pop("delimiter", "," if form == "csv" else "\t")
    null = options.pop("null", "" if form == "csv" else "\\N")
    if options:
        names = ", ".join(options).upper()[:80]
        message = f"COPY takes no {names} here."
        return Refused("0A000", message, "Use FORMAT, HEADER, DELIMITER and NULL.")
    if len(delimiter.encode()) != 1:
        return Refused("0A000", "A delimiter of COPY is one ASCII character.", "Use another one.")
    return CopyOut(inner, "csv" if form == "csv" else "text", header, delimiter, null)


def _copy_options(reader: _Reader) -> dict[str, str] | None:
    """The options in brackets, or CSV and HEADER as before PostgreSQL 9.0; None if they cannot be
    read."""
    found: dict[str, str] = {}
    if reader.take("("):
        while True:
            name = reader.name()
            if not name or name in found:
                return None
            has_value = not reader.at_end and reader.tokens[reader.at].key not in (",", ")")
            found[name] = (reader.value() or "") if has_value else ""
            if reader.take(")"):
                return found if reader.at_end else None
            if not reader.take(","):
                return None
    while not reader.at_end:
        if reader.take("CSV"):
            found["format"] = "csv"
        elif reader.take("HEADER"):
            found["header"] = "true"
        elif reader.take("BINARY"):
            found["format"] = "binary"
        else:
            return None
    return found


def _within_brackets(reader: _Reader) -> str | None:
    """The text up to the bracket that closes the one just passed, which is passed as well."""
    begun, depth = reader.at, 1
    while not reader.at_end:
        key = reader.tokens[reader.at].key
        depth += (key == "(") - (key == ")")
        reader.at += 1
        if depth == 0:
            first = reader.tokens[begun].at
            return reader.text[first : reader.tokens[reader.at - 1].at].strip() or None
    return None


def _end_of(reader: _Reader) -> int:
    """Where the next token begins, or the text ends."""
    return len(reader.text) if reader.at_end else reader.tokens[reader.at].at


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
    "COPY": _copy,
}
