"""Judges a text: what it would do to a database of a given dialect, and by which rule.

Three ways of looking have a say, the raw text, the words and the tree, and the highest effect wins.
The fourth, the database's own opinion, is the engine's (`Engine.inspect`). Says nothing about
whether anybody may do it.
"""

from __future__ import annotations

from functools import lru_cache

from tidegate.errors import FATES, Code
from tidegate.sql.dialects import find
from tidegate.sql.forms import read
from tidegate.sql.opinion import CODES, READS, Opinion, Refusal, highest
from tidegate.sql.scan import scan
from tidegate.sql.template import template
from tidegate.statements import Effect, Judgement

SMALL = 4_096
"""Characters up to which a text is kept by the thousand; of longer ones only a few are."""

TOO_DEEP = Opinion(
    Effect.UNKNOWN, "tree.depth", "The statement nests too deep to be read", Code.SQL_TOO_DEEP
)
FAILED = Opinion(
    Effect.UNKNOWN,
    "judge.failed",
    "The judge failed on the statement, which is a fault of its own",
    Code.SQL_UNREADABLE,
    "Say it with plainer SQL, and report the statement.",
)


def judge(text: str, dialect: str) -> Judgement:
    """The judgement of one text, from the cache where it was judged before. Raises nothing: what
    cannot be read has the effect UNKNOWN and a code that says why."""
    return _small(text, dialect) if len(text) <= SMALL else _large(text, dialect)


def judge_anew(text: str, dialect: str) -> Judgement:
    """The judgement of one text, not from the cache."""
    try:
        tables = find(dialect)
        reading = read(scan(text, tables), tables)
    except Refusal as refusal:
        return _judgement(refusal.opinion)
    except RecursionError:
        return _judgement(TOO_DEEP)
    except Exception:  # noqa: BLE001 - a fault of ours must not let a statement pass, nor tell more
        return _judgement(FAILED)
    opinion = highest(reading.opinions)
    return _judgement(
        opinion,
        tuple(reading.tables),
        tuple(reading.functions),
        reading.unqualified and opinion.effect is Effect.WRITE,
        reading.returns_rows,
    )


def _judgement(
    opinion: Opinion,
    tables: tuple[str, ...] = (),
    functions: tuple[str, ...] = (),
    unqualified: bool = False,
    returns_rows: bool = True,
) -> Judgement:
    if opinion is READS:
        return Judgement(Effect.READ, opinion.rule, opinion.reason, None, None, tables, functions)
    code = opinion.code or CODES[opinion.effect]
    return Judgement(
        opinion.effect,
        opinion.rule,
        opinion.reason,
        code.value,
        opinion.hint or FATES[code].hint,
        tables,
        functions,
        unqualified,
        returns_rows,
    )


def _judge_small(text: str, dialect: str) -> Judgement:
    """By its template where that only reads; else by itself, so that reasons name what it says."""
    alike = template(text)
    if alike != text:
        judgement = _templates(alike, dialect)
        if judgement.effect is Effect.READ:
            return judgement
    return judge_anew(text, dialect)


_templates = lru_cache(maxsize=512)(judge_anew)
_small = lru_cache(maxsize=1024)(_judge_small)
_large = lru_cache(maxsize=16)(judge_anew)
