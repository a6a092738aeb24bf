"""Finds which names of a database may do more than read, by its catalog and not by their looks.

A text can call a function that it does not name: by a view, a row security policy, an operator, a
cast, a domain. The catalog keeps all of these as trees with the oids of what they call. What
leads to a function that is not known to be harmless is unsafe, and a text that names it is not a
read. Harmless are PostgreSQL's own functions and those of extensions if the catalog calls them
immutable or stable or the judge's tables have them; functions that users wrote never are. Those
that the source's setting `functions` names count as harmless for statements that only read, and
only where no other function can be meant by such a name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from time import monotonic

import msgspec
from msgspec import structs

from tidegate.engines.postgres.connection import PostgresSession
from tidegate.engines.postgres.schema_state import NAMES_STATE, RULES_STATE, SNAPSHOT
from tidegate.engines.postgres.transaction import Tuning
from tidegate.engines.postgres.types import Rows
from tidegate.errors import Code
from tidegate.judging_thread import compute
from tidegate.model.statements import Effect, Judgement
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, OP, STRING, WORD, Token, lex
from tidegate.sql.own_functions import own_call, trusting
from tidegate.sql.session_texts import is_users_own

_TREE = r":(?:funcid|opfuncid|aggfnoid|winfnoid|elemfuncid|opno|relid) [1-9]\d*"

_CALLS = f"""ARRAY(SELECT DISTINCT m[1] FROM pg_catalog.regexp_matches(
  %s, '({_TREE})', 'g') AS m)"""

_VIEWS = f"""
SELECT c.oid, c.relname::text, {_CALLS % "r.ev_action::text"}
FROM pg_catalog.pg_rewrite AS r JOIN pg_catalog.pg_class AS c ON c.oid = r.ev_class
WHERE c.oid >= 16384 AND c.relkind = 'v' AND NOT EXISTS (
  SELECT FROM pg_catalog.pg_depend AS x WHERE x.classid = 'pg_catalog.pg_class'::regclass
    AND x.objid = c.oid AND x.deptype = 'e')""".encode()

_POLICIES = f"""
SELECT c.oid, c.relname::text, {_CALLS % "p.polqual::text"}
FROM pg_catalog.pg_policy AS p JOIN pg_catalog.pg_class AS c ON c.oid = p.polrelid
WHERE p.polqual IS NOT NULL
UNION ALL
SELECT t.oid, t.typname::text, {_CALLS % "k.conbin::text"}
FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_type AS t ON t.oid = k.contypid
WHERE k.contypid >= 16384 AND k.contype = 'c'""".encode()

_FUNCTIONS = b"""
SELECT p.oid, p.proname::text, p.provolatile::text, EXISTS (
  SELECT FROM pg_catalog.pg_depend AS x WHERE x.classid = 'pg_catalog.pg_proc'::regclass
    AND x.objid = p.oid AND x.deptype = 'e'), p.pronamespace = 11
FROM pg_catalog.pg_proc AS p WHERE p.oid >= 16384"""

_OWN_FUNCTIONS = b"""
SELECT oid, proname::text, provolatile::text FROM pg_catalog.pg_proc
WHERE oid < 16384 AND oid = ANY ($1::oid[])"""

_NAMED_ALIKE = b"""
SELECT p.oid, p.proname::text, n.nspname::text, p.oid < 16384, EXISTS (
  SELECT FROM pg_catalog.pg_depend AS x WHERE x.classid = 'pg_catalog.pg_proc'::regclass
    AND x.objid = p.oid AND x.deptype = 'e')
FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
WHERE p.proname = ANY ($1::pg_catalog.text[])"""

_OPERATORS = b"""
SELECT o.oid, o.oprname::text, o.oprcode::oid, EXISTS (
  SELECT FROM pg_catalog.pg_operator AS b WHERE b.oprname = o.oprname AND b.oid < 16384)
FROM pg_catalog.pg_operator AS o WHERE o.oid >= 16384"""

_CASTS = b"""
SELECT c.castfunc, s.oid, s.typname::text, t.oid, t.typname::text
FROM pg_catalog.pg_cast AS c JOIN pg_catalog.pg_type AS s ON s.oid = c.castsource
JOIN pg_catalog.pg_type AS t ON t.oid = c.casttarget
WHERE c.oid >= 16384 AND c.castfunc <> 0"""

_PROGRAMS = b"""
SELECT c.relname::text FROM pg_catalog.pg_foreign_table AS f
JOIN pg_catalog.pg_class AS c ON c.oid = f.ftrelid
WHERE EXISTS (SELECT FROM pg_catalog.unnest(f.ftoptions) AS o WHERE o LIKE 'program=%')"""

_KEEPERS = b"'^pg_(stat_statements|stat_monitor|stat_plans|store_plans|show_plans|qualstats)'"
"""What extensions that keep statements call their views and functions."""

_SESSIONS = b"""
SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n
  ON n.oid = c.relnamespace
WHERE (n.nspname = 'pg_catalog' AND c.relname IN ('pg_prepared_statements', 'pg_stat_activity'))
  OR c.relname ~ %b
UNION ALL
SELECT p.oid FROM pg_catalog.pg_proc AS p
WHERE p.proname IN ('pg_stat_get_activity', 'pg_stat_get_backend_activity')
  OR p.proname ~ %b""" % (_KEEPERS, _KEEPERS)
"""Views and functions that show the statements of other callers."""

_COPIES = _VIEWS.replace(b"relkind = 'v'", b"relkind = 'm'")
"""Materialized views, which call nothing when they are read, and hold what they read before."""

FIRST_OWN = 16384
"""The first oid that is not the server's own (FirstNormalObjectId of its sources)."""

SETTINGS = frozenset(
    {"pg_settings", "pg_stat_activity", "pg_stat_get_activity", "pg_stat_get_backend_activity"}
)
"""The server's own that no change may name: to change the first is to change settings, and the
others show the statements of other callers, which a change could copy."""

_MISLABELLED = frozenset({"isn_weak"})
"""Functions of extensions that call themselves immutable and change a setting of the session."""

_HANDLES_SQL = re.compile(r"(?:table|query|cursor|schema|database)_to_xml|pg_prepared_statement$")


class UnsafeObjects(msgspec.Struct, frozen=True):
    """Objects of one database that may do more than read.

    `names`: names, case-folded, that no text may hold. `operators`: signs that none may use.
    `settings`: names that no change may hold beside `SETTINGS`: those of views of any of the
    server's own tables, since to change these is to change settings or rights.
    `unnamed`: oids of functions and operators that a text can lead to without a name or a sign of
    theirs, by a cast or by a sign that PostgreSQL has too. If there are any, the server itself is
    asked to which functions a text leads.
    `in_catalog`: those of `names` that are functions in `pg_catalog` itself, where users have none
    as a rule: a call of any other that names that schema is PostgreSQL's own.
    `sessions`: names of views, also materialized ones, that show what other callers run.
    `trusted`: functions of users (`schema.name`) that may be called by this name.
    """

    names: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    settings: frozenset[str] = frozenset()
    unnamed: frozenset[int] = frozenset()
    in_catalog: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    trusted: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no text that changes nothing can name any of them."""
        return not self.names and not self.operators and not self.sessions


NONE = UnsafeObjects()

CATALOG_RULE = "postgres.catalog"


async def survey(
    session: PostgresSession, timeout_ms: int, functions: tuple[str, ...] = ()
) -> tuple[UnsafeObjects, UnsafeObjects]:
    """Look through the catalog: what is unsafe, and what is if `functions` of users are trusted.
    Raises: TidegateError."""
    (
        views,
        policies,
        written,
        operators,
        casts,
        programs,
        sessions,
        copies,
    ) = await session.ask(
        *(_VIEWS, _POLICIES, _FUNCTIONS, _OPERATORS, _CASTS, _PROGRAMS, _SESSIONS, _COPIES),
        timeout_ms=timeout_ms,
    )
    calls = _calls(views + policies)
    built_in = {oid for _, called, _ in calls for oid in called if oid < 16384}
    own: Rows = []
    if built_in:
        wanted = "{" + ",".join(map(str, built_in)) + "}"
        (own,) = await session.ask((_OWN_FUNCTIONS, [wanted.encode()]), timeout_ms=timeout_ms)
    seen, shown = _calls(views + copies), {oid for (oid,) in sessions}
    views_of_server = _behind(calls, {c[0] for c in calls if any(oid < FIRST_OWN for oid in c[2])})
    views_of_sessions = _behind(seen, {c[0] for c in seen if not shown.isdisjoint(c[1] | c[2])})

    def weighed(rows: Rows) -> UnsafeObjects:
        return structs.replace(
            _weigh(calls, rows, own, operators, casts, programs),
            sessions=views_of_sessions,
            settings=frozenset(views_of_server),
        )

    strict = weighed(written)
    if not functions:
        return strict, strict
    wanted = msgspec.json.encode(sorted({each.partition(".")[2] for each in functions}))
    named = b"{" + wanted[1:-1] + b"}"
    (alike,) = await session.ask((_NAMED_ALIKE, [named]), timeout_ms=timeout_ms)
    trusted, doubtful, oids = _trusted(alike, functions)
    trusting = weighed([row for row in written if row[0] not in oids])
    return strict, structs.replace(trusting, names=trusting.names | doubtful, trusted=trusted)


def _trusted(
    alike: Rows, functions: tuple[str, ...]
) -> tuple[tuple[str, ...], frozenset[str], set[int]]:
    """The functions that can be called by their full names, the names, case-folded, by which
    another one could be meant, and the oids of the functions. `alike` are all of such names."""
    known = find("postgres").functions
    wanted, others = set(functions), set[str]()
    doubtful: set[str] = set()
    oids: set[int] = set()
    for oid, name, schema, built_in, of_extension in alike:
        full = f"{schema}.{name}"
        if full in wanted and not built_in and not of_extension:
            oids.add(oid)
        elif not (built_in and name in known):
            doubtful.add(name.casefold())
            others.add(full)
    return tuple(sorted(wanted - others)), frozenset(doubtful), oids


def _calls(trees: Rows) -> list[tuple[tuple[int, str], set[int], set[int]]]:
    """((oid, name), what its tree calls, the tables and views it reads)."""
    calls: list[tuple[tuple[int, str], set[int], set[int]]] = []
    for oid, name, nodes in trees:
        called: set[int] = set()
        read: set[int] = set()
        for node in nodes:
            field, _, number = node[1:].partition(" ")
            (read if field == "relid" else called).add(int(number))
        calls.append(((oid, name), called, read))
    return calls


def _weigh(
    calls: list[tuple[tuple[int, str], set[int], set[int]]],
    functions: Rows,
    own: Rows,
    operators: Rows,
    casts: Rows,
    programs: Rows,
) -> UnsafeObjects:
    known = find("postgres").functions
    names = {name.casefold() for _, name, _, extension, _ in functions if not extension}
    in_catalog = {name.casefold() for _, name, *_, inside in functions if inside}
    names |= {name.casefold() for (name,) in programs}
    acting = {(oid, name) for oid, name, volatility, extension, _ in functions
              if extension and name not in known
              and (volatility == "v" or name in _MISLABELLED)}  # fmt: skip
    # After a dot a function of one argument needs no bracket that would give the call away.
    names |= {name.casefold() for _, name in acting}
    bad = {oid for oid, _, _, extension, _ in functions if not extension}
    bad |= {oid for oid, _ in acting}
    bad |= {oid for oid, name, volatility in own
            if (volatility == "v" and name not in known) or _HANDLES_SQL.match(name)}  # fmt: skip
    signs = {sign for _, sign, code, built_in in operators if code in bad and not built_in}
    hidden = any(code in bad and built_in for _, _, code, built_in in operators)
    hidden |= any(function in bad for function, *_ in casts)
    bad |= {oid for oid, _, code, _ in operators if code in bad}
    for function, source, source_name, target, target_name in casts:
        if function in bad:
            ends = ((source, source_name), (target, target_name))
            names |= {name.casefold() for oid, name in ends if oid >= 16384}
    names |= _behind(calls, {place for place, called, _ in calls if called & bad})
    return UnsafeObjects(
        frozenset(names),
        frozenset(signs),
        unnamed=frozenset(bad) if hidden else frozenset(),
        in_catalog=frozenset(in_catalog),
    )


def _behind(
    calls: list[tuple[tuple[int, str], set[int], set[int]]], bad: set[tuple[int, str]]
) -> set[str]:
    """The names of what is bad, and of what reads it."""
    readers: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for place, _, read in calls:
        for relation in read:
            readers[relation].append(place)
    tainted = dict(bad)
    rest = list(tainted)
    while rest:
        for oid, name in readers[rest.pop()]:
            if oid not in tainted:
                tainted[oid] = name
                rest.append(oid)
    return {name.casefold() for name in tainted.values()}


# What a text names.

_WORD_IN_BODY = re.compile(r'"((?:[^"]|"")+)"|([^\W\d][\w$]*)')

NAME_BYTES = 63
"""PostgreSQL cuts longer names to this, in the encoding of the database."""

_LEAST_CUT_BYTES = 40
"""No name that was cut is shorter than this in UTF-8, whatever the encoding of the database."""


def opinion(text: str, unsafe_objects: UnsafeObjects, *, changes: bool) -> Judgement | None:
    """The catalog's objection to a text, or to one that changes something; None if it has none.

    Names and operators are those that the lexer finds, as in PostgreSQL 4.1 "Lexical Structure".
    """
    if unsafe_objects.is_empty and not changes:
        return None
    try:
        names, signs, own = _names_and_signs(text, unsafe_objects)
    except Refusal as refusal:
        finding = refusal.finding
        return Judgement(
            effect=Effect.UNKNOWN,
            rule=finding.rule,
            reason=f"{finding.reason}.",
            code=(finding.code or Code.SQL_UNREADABLE).value,
            hint=finding.hint,
        )
    found = sorted(_matches(names, unsafe_objects.names))
    if changes and not found and (own & SETTINGS or _matches(names, unsafe_objects.settings)):
        return _denied(
            "A change that names `pg_settings`, `pg_stat_activity`, or a view of one of the"
            " server's own tables, may change settings or rights, or copy other callers'"
            " statements.",
            "Only the operator changes those; read the view in a separate statement.",
        )
    shown = sorted(_matches(names, unsafe_objects.sessions))
    if shown and not found:
        return _denied(
            f"`{shown[0]}` shows statements of other callers, which share the account of this"
            " source.",
            "Read pg_stat_activity itself: it shows who is connected, in which state and since"
            " when.",
        )
    if not found:
        found = sorted(signs & unsafe_objects.operators)
    return _objection(found[0], tuple(found)) if found else None


def _names_and_signs(
    text: str, unsafe_objects: UnsafeObjects
) -> tuple[set[str], set[str], set[str]]:
    """The names, case-folded, and the operators of a text, without those of PostgreSQL's own
    functions that are called with their schema, as masks do, and of trusted ones that are; and the
    names that may be those of the server's own views. Raises: Refusal."""
    names: set[str] = set()
    own: set[str] = set()
    signs: set[str] = set()
    dialect = find("postgres")
    tokens = lex(text, dialect.lexical_rules)
    if unsafe_objects.trusted:
        dialect = trusting("postgres", unsafe_objects.trusted)
    for at, token in enumerate(tokens):
        if token.kind in (WORD, NAME):
            name = token.text.casefold()
            if _is_trusted_call(tokens, at, dialect):
                continue
            if name in unsafe_objects.in_catalog or not _is_own_call(tokens, at):
                names.add(name)
            if not is_users_own(tokens, at, dialect):
                own.add(name)
        elif token.kind == OP:
            signs.add(token.text)
        elif token.kind == STRING and text.startswith("$", token.at):
            # The body of a function or of DO: its names count as if they were outside.
            for quoted, bare in _WORD_IN_BODY.findall(token.text):
                names.add((quoted.replace('""', '"') or bare).casefold())
                own.add((quoted.replace('""', '"') or bare).casefold())
    return names, signs, own


def _is_trusted_call(tokens: list[Token], at: int, dialect: Dialect) -> bool:
    """Whether a name is that of a trusted function which is called with its schema."""
    if not dialect.trusted or at + 1 >= len(tokens) or tokens[at + 1].key != "(":
        return False
    called, first = own_call(tokens, at + 1, dialect)
    return bool(called) and first < at


def _is_own_call(tokens: Sequence[Token], at: int) -> bool:
    """Whether a name is that of a call in the schema `pg_catalog`: `pg_catalog.length(`."""
    if at < 2 or at + 1 >= len(tokens) or tokens[at + 1].key != "(":
        return False
    schema, dot = tokens[at - 2], tokens[at - 1]
    plain = schema.key == "PG_CATALOG" or (schema.kind == NAME and schema.text == "pg_catalog")
    return plain and dot.key == "." and (at < 3 or tokens[at - 3].key != ".")


def _matches(names: set[str], unsafe: frozenset[str]) -> set[str]:
    """The unsafe names that are among `names`, or that a long one of them is cut to."""
    matches = names & unsafe
    for name in names:
        if len(name) > _LEAST_CUT_BYTES // 4 and len(name.encode()) > NAME_BYTES:
            matches |= {
                cut
                for cut in unsafe
                if name.startswith(cut) and len(cut.encode()) >= _LEAST_CUT_BYTES
            }
    return matches


def _denied(reason: str, hint: str) -> Judgement:
    return Judgement(
        effect=Effect.UNKNOWN,
        rule=CATALOG_RULE,
        reason=reason,
        code=Code.POLICY_DENIED.value,
        hint=hint,
    )


def _objection(name: str, functions: tuple[str, ...]) -> Judgement:
    return Judgement(
        effect=Effect.UNKNOWN,
        rule=CATALOG_RULE,
        reason=f"The effect of `{name}` is not known: it calls a function that a user wrote,"
        " or one that may do more than read.",
        code=Code.SQL_FUNCTION.value,
        hint=f"Leave out `{name}`, or ask the operator for a view without such functions.",
        functions=functions,
    )


# What the server says a text leads to.

MAX_TREE_BYTES = 4 * 2**20

_OID = re.compile(rb"(?<!\d)[1-9]\d{4,9}(?!\d)")

_UNNAMED = Judgement(
    effect=Effect.UNKNOWN,
    rule=CATALOG_RULE,
    reason="The statement calls, by an operator or a cast, a function that a user wrote.",
    code=Code.SQL_FUNCTION.value,
    hint="Compare or cast columns of PostgreSQL's own types only, such as one column of a row.",
)


def leads_to(tree: bytes | None, oids: frozenset[int]) -> bool:
    """Whether an analysed statement, as `PostgresSession.analysed` gives it, may call one of
    the oids.

    Every long number of the tree counts as an oid, so this never misses one.
    """
    if tree is None or len(tree) > MAX_TREE_BYTES:
        return True
    return any(int(number) in oids for number in _OID.findall(tree))


FRESH_S = 2.0
"""How long the catalog is trusted. What we write ourselves is noticed at once."""

MAX_TEXTS = 1_024
LONG_TEXT = 16_384


class _Weighed:
    """Unsafe objects, and the opinions of texts by them."""

    __slots__ = ("analysed", "is_empty", "objects", "opinions")

    def __init__(self, objects: UnsafeObjects) -> None:
        self.objects = objects
        self.is_empty = objects.is_empty
        self.opinions: dict[str, Judgement | None] = {}
        self.analysed: dict[tuple[str, bytes | None], bool] = {}


class CatalogSafetyCache:
    """The unsafe objects of one database, and the opinions of texts by them. `functions` are those
    of users that the source's setting trusts (`Judgement.trusted`)."""

    def __init__(self, functions: tuple[str, ...] = ()) -> None:
        self._functions = functions
        self._strict = self._trusting = _Weighed(NONE)
        self._moment: str | None = None
        self._same_until: str | None = None
        """The last snapshot in which the rules were seen to be those of `_state`."""
        self._state: str | None = None
        self.names_state: str | None = None
        """As `NAMES_STATE` was when it was last read."""
        self.moving = False
        """Whether others write all the time, so that each transaction has another snapshot."""
        self._until = 0.0

    def _by(self, judgement: Judgement) -> _Weighed:
        """By what a statement is checked: trusted functions are so in a read alone."""
        trusts = judgement.trusted and judgement.trusted == self._functions
        return self._trusting if trusts and judgement.effect is Effect.READ else self._strict

    @property
    def is_due(self) -> bool:
        """Whether the catalog must be read again before anything is judged."""
        return monotonic() >= self._until

    @property
    def seen(self) -> tuple[str, str] | None:
        """The snapshot and the state of the catalog by which texts are judged."""
        if self._same_until is None or self._state is None:
            return None
        return self._same_until, self._state

    def note(self, moment: str, state: str) -> None:
        """A later snapshot has the same state."""
        if state == self._state:
            self._same_until = moment

    def wake(self) -> None:
        """Something was written: look again."""
        self._until = 0.0

    async def look(self, session: PostgresSession, timeout_ms: int) -> None:
        """See whether the catalog has changed, and survey it if it has. Raises: TidegateError."""
        until = monotonic() + FRESH_S
        ((moment,),) = await session.query_internal(SNAPSHOT)
        if moment != self._moment:
            ((state,),), ((self.names_state,),) = await session.ask(
                RULES_STATE, NAMES_STATE, timeout_ms=timeout_ms
            )
            if state != self._state:
                strict, trusting = await survey(session, timeout_ms, self._functions)
                self._strict = self._trusting = _Weighed(strict)
                if self._functions:
                    self._trusting = _Weighed(trusting)
                self._state = state
            self._moment = self._same_until = moment
        self._until = until

    def needs_analysis(self, judgement: Judgement) -> bool:
        """Whether names and signs are not enough here: see `UnsafeObjects.unnamed`."""
        return bool(self._by(judgement).objects.unnamed)

    async def analysed(
        self,
        session: PostgresSession,
        text: str,
        judgement: Judgement,
        schema: bytes | None,
        timeout_ms: int,
        tuning: Tuning = (),
    ) -> Judgement:
        """`joined`, and the server's own list of the functions that the text leads to, with
        names looked up on the search path `schema`. Raises: TidegateError if it cannot be parsed.
        """
        known = await self.joined(text, judgement)
        if known.effect >= Effect.UNKNOWN:
            return known
        weighed = self._by(judgement)
        unsafe = weighed.analysed.get((text, schema))
        if unsafe is None:
            tree = await session.analysed(text.encode(), schema, timeout_ms, tuning)
            unsafe = leads_to(tree, weighed.objects.unnamed)
            if len(text) <= LONG_TEXT:
                if len(weighed.analysed) >= MAX_TEXTS:
                    weighed.analysed.clear()
                weighed.analysed[text, schema] = unsafe
        return _UNNAMED if unsafe else known

    def known(self, text: str, judgement: Judgement) -> Judgement | None:
        """`joined`, if that is known already and nothing has to be asked before; else None."""
        strict = self._strict
        weighed = self._by(judgement) if judgement.trusted else strict
        if monotonic() >= self._until or weighed.objects.unnamed:
            return None
        if strict.is_empty and judgement.effect <= Effect.READ and weighed is strict:
            return judgement  # as `opinion` says of every text that changes nothing
        if text not in weighed.opinions or text not in strict.opinions:
            return None
        return self._join(judgement, weighed.opinions[text], strict.opinions[text])

    async def joined(self, text: str, judgement: Judgement) -> Judgement:
        """The higher of the text's judgement and the catalog's opinion of it; a read that calls
        functions only because they are trusted names them in `own`."""
        while True:
            strict, weighed = self._strict, self._by(judgement)
            stricter = against = await _opinion(strict, text, judgement)
            if weighed is not strict:
                against = await _opinion(weighed, text, judgement)
            if strict is self._strict:
                return self._join(judgement, against, stricter)
            # else the catalog has changed meanwhile

    def _join(
        self, judgement: Judgement, against: Judgement | None, stricter: Judgement | None
    ) -> Judgement:
        if against is not None and against.effect > judgement.effect:
            return against
        if judgement.own or self._by(judgement) is self._strict:
            return judgement
        if stricter is not None:
            return structs.replace(judgement, own=stricter.functions)
        if self._strict.objects.unnamed:
            return structs.replace(judgement, own=judgement.trusted)  # by an operator or a cast
        return judgement


async def _opinion(weighed: _Weighed, text: str, judgement: Judgement) -> Judgement | None:
    """The opinion of a text, kept if that is not long."""
    opinions = weighed.opinions
    if text in opinions:
        return opinions[text]
    changes = judgement.effect > Effect.READ
    against = await compute(text, opinion, text, weighed.objects, changes=changes)
    if len(text) <= LONG_TEXT:
        if len(opinions) >= MAX_TEXTS:
            opinions.clear()
        opinions[text] = against
    return against
