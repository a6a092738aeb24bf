"""Decides which names of a database may do more than read, by its catalogue and not by their looks.

A text can call a function that it does not name: by a view, a row security policy, an operator, a
cast, a domain. The catalogue keeps all of these as trees with the oids of what they call. What
leads to a function that is not known to be harmless is a hazard, and a text that names a hazard is
not a read. Harmless are PostgreSQL's own functions and those of extensions if the catalogue calls
them immutable or stable or the judge's tables have them; functions that users wrote never are.
"""

from __future__ import annotations

import re
from collections import defaultdict

import msgspec
from msgspec import structs

from tidegate.engines.postgres.session import Session
from tidegate.engines.postgres.values import Rows
from tidegate.errors import Code
from tidegate.sql.dialects import find
from tidegate.statements import Effect, Judgement

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
    AND x.objid = p.oid AND x.deptype = 'e')
FROM pg_catalog.pg_proc AS p WHERE p.oid >= 16384"""

_OWN_FUNCTIONS = b"""
SELECT oid, proname::text, provolatile::text FROM pg_catalog.pg_proc
WHERE oid < 16384 AND oid = ANY ($1::oid[])"""

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

_SETTINGS = b"SELECT 'pg_catalog.pg_settings'::regclass::oid"
"""The view through which a change sets what SET does, and with it the caller's role."""

_MISLABELLED = frozenset({"isn_weak"})
"""Functions of extensions that call themselves immutable and change a setting of the session."""

_RUNS_SQL = re.compile(r"(?:table|query|cursor|schema|database)_to_xml")


class Hazards(msgspec.Struct, frozen=True):
    """Names, in lower case, that no text may hold; operators that none may use; and names that no
    change may hold, since to change what they stand for is to change settings."""

    names: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    settings: frozenset[str] = frozenset({"pg_settings"})


NONE = Hazards()

CATALOG_RULE = "postgres.catalog"


async def survey(session: Session, timeout_ms: int) -> Hazards:
    """Look through the catalogue. Raises: GateError."""
    views, policies, functions, operators, casts, programs, ((settings,),) = await session.ask(
        *(_VIEWS, _POLICIES, _FUNCTIONS, _OPERATORS, _CASTS, _PROGRAMS, _SETTINGS),
        timeout_ms=timeout_ms,
    )
    calls = _calls(views + policies)
    built_in = {oid for _, called, _ in calls for oid in called if oid < 16384}
    own: Rows = []
    if built_in:
        wanted = "{" + ",".join(map(str, built_in)) + "}"
        (own,) = await session.ask((_OWN_FUNCTIONS, [wanted.encode()]), timeout_ms=timeout_ms)
    hazards = _weigh(calls, functions, own, operators, casts, programs)
    return structs.replace(
        hazards, settings=_behind(calls, {c[0] for c in calls if settings in c[2]}) | NONE.settings
    )


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
) -> Hazards:
    known = find("postgres").functions
    names = {name.lower() for _, name, _, extension in functions if not extension}
    names |= {name.lower() for (name,) in programs}
    acting = {(oid, name) for oid, name, volatility, extension in functions
              if extension and name not in known
              and (volatility == "v" or name in _MISLABELLED)}  # fmt: skip
    # After a dot a function of one argument needs no bracket that would give the call away.
    names |= {name.lower() for _, name in acting}
    bad = {oid for oid, _, _, extension in functions if not extension}
    bad |= {oid for oid, _ in acting}
    bad |= {oid for oid, name, volatility in own
            if (volatility == "v" and name not in known) or _RUNS_SQL.match(name)}  # fmt: skip
    signs = {sign for _, sign, code, built_in in operators if code in bad and not built_in}
    bad |= {oid for oid, _, code, _ in operators if code in bad}
    for function, source, source_name, target, target_name in casts:
        if function in bad:
            ends = ((source, source_name), (target, target_name))
            names |= {name.lower() for oid, name in ends if oid >= 16384}
    names |= _behind(calls, {place for place, called, _ in calls if called & bad})
    return Hazards(frozenset(names), frozenset(signs))


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
    return {name.lower() for name in tainted.values()}


# What a text names.

_LITERAL = re.compile(r"'(?:[^']|'')*'")
_WORD = re.compile(r'"((?:[^"]|"")+)"|([^\W\d][\w$]*)')
_SIGN = re.compile(r"[-+*/<>=~!@#%^&|`?]+")
_PLAIN_LITERALS = re.compile(r"\\|\$|--|/\*")


def opinion(text: str, hazards: Hazards, *, changes: bool = False) -> Judgement | None:
    """What the catalogue has against a text, or against one that changes something; None if
    nothing."""
    if not hazards.names and not hazards.operators and not changes:
        return None
    if not _PLAIN_LITERALS.search(text):
        text = _LITERAL.sub("''", text)
    words = {(quoted.replace('""', '"') or bare).lower() for quoted, bare in _WORD.findall(text)}
    found = sorted(words & hazards.names)
    if changes and not found and words & hazards.settings:
        return Judgement(
            effect=Effect.UNKNOWN,
            rule=CATALOG_RULE,
            reason="A change that names `pg_settings`, or a view of it, may change settings.",
            code=Code.POLICY_DENIED.value,
            hint="Settings are the operator's; read pg_settings in a statement of its own.",
        )
    if not found and hazards.operators:
        found = sorted(set(_SIGN.findall(text)) & hazards.operators)
    if not found:
        return None
    return Judgement(
        effect=Effect.UNKNOWN,
        rule=CATALOG_RULE,
        reason=f"What `{found[0]}` would do is not known: it calls a function that somebody wrote,"
        " or one that may do more than read.",
        code=Code.SQL_FUNCTION.value,
        hint=f"Leave out `{found[0]}`, or ask the operator for a view without such functions.",
        functions=tuple(found),
    )
