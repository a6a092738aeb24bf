"""What a text may do: the judge's reading, the server's own and its catalog, joined.

The server prepares the text, which runs nothing, and says how many columns it would give. What
only reads gives at least one; an INTO OUTFILE, also one in an executable comment, gives none, nor
do SET, CALL, LOCK, DDL. Prepared in a read-only session, a change is refused there already. The few
that give columns and do more (CHECK, ANALYZE, HELP) are known by their first word.

A view may call a stored function, and a stored function may do what its definer may, also in a
read-only session: write files, take locks, set global variables. So each view's definition, as the
server keeps it, is judged like a statement, and the views it reads as well. The result holds for
some seconds. The judge's list of functions is of names that some server has built in. Where another
server lacks one, or the name is qualified, a stored function may be meant: it is refused, unless
the source's setting `functions` names it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import msgspec
from msgspec import structs

from tidegate.engines.common.running_statement import BorrowedConnection
from tidegate.engines.common.server_session import encode_statement
from tidegate.errors import Code, TidegateError
from tidegate.model.decisions import Permit
from tidegate.model.sources import Identity
from tidegate.model.statements import Effect, Judgement
from tidegate.products.mysql.engine import catalog
from tidegate.products.mysql.engine.connection import MysqlSession
from tidegate.products.mysql.engine.errors import ServerError
from tidegate.products.mysql.engine.transaction import sets_variables
from tidegate.sql import dialects
from tidegate.sql.dialects.model import words
from tidegate.sql.finding import Refusal
from tidegate.sql.fingerprint import fingerprint
from tidegate.sql.judge import judge
from tidegate.sql.lex import NAME, WORD, lex
from tidegate.sql.tree_checks import is_secret

FRESH_S = 5.0
MOST_DEPTH = 16
_MOST_KEPT = 4096

Place = tuple[str, str]
Names = tuple[tuple[str, ...], tuple[str, ...], str | None, tuple[str, ...]]


class Look(NamedTuple):
    """What was found until when: `objection` to what is read, and the names of called functions
    that stored ones have as well."""

    until: float
    objection: str | None = None
    stored: tuple[str, ...] = ()


class Views:
    """What is known of the tables and views of one server."""

    def __init__(self) -> None:
        self._definitions: dict[Place, tuple[float, str | None]] = {}
        self._stored: tuple[float, frozenset[str]] = (0.0, frozenset())
        self._answers: dict[Names, Look] = {}

    def recall(self, read: Judgement, database: str | None) -> Look | None:
        """What is known of a statement; None if that must be read."""
        if not read.tables and not read.functions:
            return _NOTHING
        known = self._answers.get(_names(read, database))
        return None if known is None or known.until <= time.monotonic() else known

    async def look(self, session: MysqlSession, read: Judgement, database: str | None) -> Look:
        """Why a statement that seems to read may do more. Raises: ServerError, TidegateError."""
        until = time.monotonic() + FRESH_S
        stored = await self._stored_functions(session, read.functions)
        objection = await self._look(session, read.tables, database, read.trusted)
        if len(self._answers) > _MOST_KEPT:
            self._answers.clear()
        found = self._answers[_names(read, database)] = Look(until, objection, stored)
        return found

    async def _stored_functions(
        self, session: MysqlSession, functions: tuple[str, ...]
    ) -> tuple[str, ...]:
        if not functions:
            return ()
        until, stored = self._stored
        if until < time.monotonic():
            rows = await session.query_internal(catalog.STORED_FUNCTIONS)
            stored = frozenset(str(row[0]).lower() for row in rows)
            self._stored = (time.monotonic() + FRESH_S, stored)
        return tuple([function for function in functions if function.lower() in stored])

    async def _look(
        self,
        session: MysqlSession,
        tables: tuple[str, ...],
        database: str | None,
        trusted: tuple[str, ...],
    ) -> str | None:
        seen: set[Place] = set()
        wanted = _places(tables, database)
        for _ in range(MOST_DEPTH):
            wanted -= seen
            if not wanted:
                return None
            await self._learn(session, wanted)
            seen |= wanted
            inner: set[Place] = set()
            for schema, name in wanted:
                definition = self._definitions[schema, name][1]
                if definition is None:
                    continue
                if not definition:
                    return (
                        f"The view {name} keeps from this account what it does; "
                        "with the privilege SHOW VIEW on it, the gate could see."
                    )
                judgement = judge(_in_full(definition, schema, trusted), "mysql", trusted)
                if judgement.effect > Effect.READ:
                    return f"The view {name} may do more than read: {judgement.reason}"
                for function in judgement.functions:
                    if f"`{function.lower()}`(" in definition.lower():
                        return f"The view {name} calls the stored function {function}."
                inner |= _places(judgement.tables, schema)
            wanted = inner
        return "The views are nested too deeply to be checked."

    def forget(self) -> None:
        """Definitions may have changed."""
        self._definitions.clear()
        self._answers.clear()
        self._stored = (0.0, frozenset())

    async def _learn(self, session: MysqlSession, wanted: set[Place]) -> None:
        now = time.monotonic()
        stale = [
            place
            for place in wanted
            if place not in self._definitions or self._definitions[place][0] < now
        ]
        if not stale:
            return
        if len(self._definitions) > _MOST_KEPT:
            self._definitions.clear()
            stale = list(wanted)
        found = {
            (str(schema), str(name)): str(text or "")
            for schema, name, text in await session.query_internal(catalog.views(stale))
        }
        for place in stale:
            self._definitions[place] = (now + FRESH_S, found.get(place))


_NOTHING = Look(0.0)
_SHORT_CALL = re.compile(r"(?<!\.)`([^`]+)`\(")


def _in_full(definition: str, schema: str, trusted: tuple[str, ...]) -> str:
    """A view's definition with trusted functions called by their full names. The server writes a
    stored function in backticks, one of its own without, and leaves out the view's own database."""
    if not trusted:
        return definition
    known = {name.lower() for name in trusted}

    def full(call: re.Match[str]) -> str:
        named = f"{schema}.{call[1]}".lower() in known
        return f"`{schema}`.{call[0]}" if named else call[0]

    return _SHORT_CALL.sub(full, definition)


_EVERYWHERE = words("cast char_length coalesce concat if instr lower sha2 substr substring upper")
"""Functions that every server has built in. Masks are made of these."""


def _means_stored(text: str, names: tuple[str, ...]) -> str:
    """The first of the names by which a text may call a stored function; empty if each is surely
    the server's own: a bare word with its bracket right after it. With a space between, or in
    quotes, some of these words are names like any other."""
    doubtful = [name for name in names if name.lower() not in _EVERYWHERE]
    if doubtful:
        return doubtful[0]
    sought = {name.upper() for name in names}
    direct: set[str] = set()
    try:
        tokens = lex(text, _LEXICAL_RULES)
    except Refusal:
        return names[0]
    for token, after in pairwise(tokens):
        if after.key == "(" and token.kind in (WORD, NAME) and token.text.upper() in sought:
            if token.kind != WORD or text[token.at : after.at].upper() != token.key:
                return token.text
            direct.add(token.key)
    return next((name for name in names if name.upper() not in direct), "")


_LEXICAL_RULES = dialects.find("mysql").lexical_rules


def _names(read: Judgement, database: str | None) -> Names:
    """What the answer to a statement depends on."""
    return read.tables, read.functions, database, read.trusted


def check_names(tables: Iterable[str], database: str | None) -> None:
    """Refuse what a name without its database means where that is the server's own. Raises:
    TidegateError POLICY_DENIED."""
    if database is None or database.lower() != "information_schema":
        return
    for table in tables:
        if "." not in table and is_secret(("information_schema", table), dialects.find("mysql")):
            raise TidegateError(
                Code.POLICY_DENIED,
                f"{table} in `{database}` holds secrets or the server's internal state.",
                hint="Read the tables of the application.",
                details={"rule": "table.secret"},
            )


def _places(tables: Iterable[str], database: str | None) -> set[Place]:
    """Where a table may be: its name may hold a dot, or be qualified."""
    places: set[Place] = set()
    for table in tables:
        schema, dot, name = table.partition(".")
        if dot and schema not in catalog.SYSTEM:
            places.add((schema, name))
        if database is not None:
            places.add((database, table))
    return places


READING_WORDS = frozenset(
    {"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC"}
)

POOLED_WORDS = frozenset(
    """
    BEGIN START COMMIT ROLLBACK SAVEPOINT RELEASE LOCK UNLOCK XA PREPARE EXECUTE DEALLOCATE HANDLER
    USE DELIMITER
    """.split()  # noqa: SIM905 - a paragraph of words is easier to read and to change
)
"""What a caller may not do whatever its permit: a session is everyone's, one statement long."""

RULE = "mysql.prepare"


_KEPT_TEXT = 8192
_NOT_FOR_PREPARING = 1295
_READ_ONLY = frozenset({1290, 1792, 1836})
_BEFORE = re.compile(
    r"(?:\s|\(|#[^\n]*(?:\n|$)|--(?:[^\S\n][^\n]*)?(?:\n|$)|/\*(?![!M]).*?\*/)*", re.DOTALL
)
_WORD = re.compile(r"[A-Za-z]+")
_ANALYZED = re.compile(
    r"ANALYZE\s+(?:FORMAT\s*=\s*(?:JSON|TRADITIONAL)\s+)?(?:SELECT|WITH)\b", re.IGNORECASE
)


class Prepared(msgspec.Struct, frozen=True):
    """What the server says of a text; `error` is why it could not be prepared, and `changes` that
    it was refused since sessions are read-only."""

    effect: Effect
    reason: str
    error: ServerError | None = None
    changes: bool = False


_READS = Prepared(Effect.READ, "The server sees a statement that gives rows.")


def first_word(text: str) -> str:
    """The statement's first word in capitals; empty if it begins with anything else."""
    before = _BEFORE.match(text)
    word = _WORD.match(text, before.end() if before else 0)
    return word[0].upper() if word else ""


def _analyzes_read(text: str) -> bool:
    """Whether MariaDB is asked to run a query and to show its plan with what was counted. ANALYZE
    of a table or of a change begins alike."""
    before = _BEFORE.match(text)
    return _ANALYZED.match(text, before.end() if before else 0) is not None


async def prepare(session: MysqlSession, text: str, encoded: bytes) -> Prepared:
    """What a text is. Raises: TidegateError SOURCE_UNREACHABLE."""
    try:
        statement, columns, _ = await session.line.prepare(encoded)
    except ServerError as error:
        if error.number in _READ_ONLY:
            return Prepared(Effect.WRITE, "The server sees a change in it.", changes=True)
        if error.number == _NOT_FOR_PREPARING:
            return Prepared(Effect.WRITE, "The server sees a statement that it does not prepare.")
        return Prepared(Effect.UNKNOWN, "The server cannot prepare it.", error)
    session.line.forget(statement)
    if columns and (first_word(text) in READING_WORDS or _analyzes_read(text)):
        return _READS
    return Prepared(Effect.WRITE, "The server sees a statement that does more than give rows.")


class PreparedCache:
    """Texts that were found to read in a database, and so need not be prepared again."""

    def __init__(self) -> None:
        self._reading: dict[tuple[str, str | None], None] = {}

    def get(self, key: tuple[str, str | None]) -> Prepared | None:
        """The study of a text that is known to read."""
        return _READS if key in self._reading else None

    def put(self, key: tuple[str, str | None], found: Prepared) -> None:
        """Keep what reads, if it is not too long."""
        if found.effect is Effect.READ and len(key[0]) <= _KEPT_TEXT:
            while len(self._reading) >= _MOST_KEPT:
                del self._reading[next(iter(self._reading))]
            self._reading[key] = None


def as_judgement(found: Prepared) -> Judgement:
    """The study as an opinion on a statement."""
    code = None if found.effect is Effect.READ else Code.POLICY_READ_ONLY.value
    return Judgement(found.effect, RULE, found.reason, code)


VIEW_RULE = "mysql.view"

_MOST_ROLES = 256

STUDY_MS = 10_000
"""The time limit of having a text prepared."""


class Inspector:
    """What is thought of texts that run in `home`, the source's own database, or in another."""

    def __init__(self, home: str | None) -> None:
        self._home = home
        self._studies = PreparedCache()
        self._views: dict[str | None, Views] = {}

    async def inspect(
        self, text: str, read: Judgement, borrowed: BorrowedConnection[MysqlSession]
    ) -> Judgement | None:
        """The server's opinion of a text that was judged as `read`; None on what it cannot prepare.
        Raises: TidegateError."""
        found = await self._study(text, encode_statement(text), None, borrowed, None)
        if found.effect is Effect.UNKNOWN:
            return None
        opinion = as_judgement(found)
        if found.changes and read.trusted and not read.own and read.verb == "select":
            # Through a view. What a caller calls itself the gate refuses.
            opinion = structs.replace(
                opinion,
                effect=Effect.UNKNOWN,
                reason="A view calls a function that changes data, and functions of users are for"
                " reads.",
                code=Code.SQL_FUNCTION.value,
                hint="Leave the view out; send the change itself as a statement.",
                own=read.trusted,
            )
        if found.effect is Effect.READ and read.effect is Effect.READ:
            objection = await self._objection(text, read, None, borrowed, None)
            if objection is not None:
                return structs.replace(
                    opinion,
                    effect=Effect.UNKNOWN,
                    rule=VIEW_RULE,
                    reason=objection,
                    code=Code.SQL_FUNCTION.value,
                    tables=read.tables,
                )
        return structs.replace(opinion, tables=read.tables, functions=read.functions)

    async def check_read(
        self,
        text: str,
        encoded: bytes,
        read: Judgement,
        database: str | None,
        borrowed: BorrowedConnection[MysqlSession],
        identity: Identity | None,
        *,
        explains: bool,
    ) -> bool:
        """Refuse what neither we nor the server take for a read. Raises: TidegateError.

        Returns False for the explanation of a change, which the server gives only where a change
        would be allowed: in a transaction that is rolled back.
        """
        _check_one_statement(read)
        found = await self._study(text, encoded, database, borrowed, identity)
        if found.error is not None:
            raise found.error
        if found.effect is Effect.READ and read.effect is Effect.READ:
            objection = await self._objection(text, read, database, borrowed, identity)
            if objection is not None:
                raise TidegateError(Code.SQL_FUNCTION, objection, details={"rule": VIEW_RULE})
            return True
        if explains and found.changes and read.effect is Effect.READ and not read.own:
            return False
        worse = read if read.effect > Effect.READ else as_judgement(found)
        function = worse.code == Code.SQL_FUNCTION.value
        raise TidegateError(
            Code.SQL_FUNCTION if function else Code.POLICY_READ_ONLY,
            worse.reason,
            hint=worse.hint,
            details={"effect": worse.effect.label, "rule": worse.rule},
        )

    def forget(self) -> None:
        """Something was changed: views may say something else now."""
        self._views.clear()

    async def _study(
        self,
        text: str,
        encoded: bytes,
        database: str | None,
        borrowed: BorrowedConnection[MysqlSession],
        identity: Identity | None,
    ) -> Prepared:
        """What the server says of a text, of texts that differ in plain values only once."""
        alike = (fingerprint(text), database)
        found = self._studies.get(alike)
        if found is None:
            async with borrowed as session:
                await session.run_as(identity)
                await session.begin(STUDY_MS, database)
                found = await prepare(session, text, encoded)
            self._studies.put(alike, found)
        return found

    async def _objection(
        self,
        text: str,
        read: Judgement,
        database: str | None,
        borrowed: BorrowedConnection[MysqlSession],
        identity: Identity | None,
    ) -> str | None:
        """Why what seems to read may do more, as far as the server's catalog shows. It shows
        each role what that may see. Where stored functions are trusted, it is also found out
        whether a view calls one."""
        home = database or self._home
        role = None if identity is None else identity.role
        if len(self._views) > _MOST_ROLES:
            self._views.clear()
        views = self._views.setdefault(role, Views())
        found = views.recall(read, home)
        strictly = structs.replace(read, trusted=()) if read.trusted and not read.own else None
        asks = strictly is not None and views.recall(strictly, home) is None
        if found is None or asks:
            async with borrowed as session:
                await session.run_as(identity)
                found = await views.look(session, read, home)
                if strictly is not None and asks:
                    await views.look(session, strictly, home)
        stored = _means_stored(text, found.stored) if found.stored else ""
        if stored:
            return f"The function {stored} is a stored one, and may do more than read."
        return found.objection

    def calls_trusted(
        self, read: Judgement, database: str | None, identity: Identity | None
    ) -> bool:
        """Whether a statement that `check_read` has just let pass, and for which functions are
        trusted, calls one, itself or by a view; True where that is not known any more."""
        if read.own:
            return True
        views = self._views.get(None if identity is None else identity.role)
        if views is None:
            return True
        found = views.recall(structs.replace(read, trusted=()), database or self._home)
        return found is None or found.objection is not None


def check_change(text: str, read: Judgement, permit: Permit) -> None:
    """Refuse what no permit allows, and what is more than this one does. Raises: TidegateError."""
    _check_one_statement(read)
    word = first_word(text)
    if word in POOLED_WORDS:
        raise TidegateError(
            Code.POLICY_DENIED,
            f"{word} is about a session, and here every statement has its own.",
            hint="Send the statement alone; a change is committed when it has ended.",
        )
    if permit.identity is not None and (
        read.effect in (Effect.SESSION, Effect.UNKNOWN) or sets_variables(text)
    ):
        raise TidegateError(
            Code.POLICY_DENIED,
            "The session's role and variables identify the caller, so no statement may set them.",
            hint="Leave out SET, := and INTO @variable.",
            details={"rule": "source.run_as"},
        )
    if permit.effect < read.effect < Effect.UNKNOWN:
        details = {"effect": read.effect.label, "rule": read.rule}
        raise TidegateError(Code.POLICY_DENIED, read.reason, hint=read.hint, details=details)


def _check_one_statement(read: Judgement) -> None:
    """Raises: TidegateError SQL_EMPTY, SQL_MULTIPLE."""
    if read.code in (Code.SQL_EMPTY.value, Code.SQL_MULTIPLE.value):
        raise TidegateError(Code(read.code), read.reason, hint=read.hint)
