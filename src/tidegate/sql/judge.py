"""Judges a text: what it would do to a database of a given dialect, and by which rule.

It checks the raw text, the tokens and the tree, and the highest effect wins. A fourth check, by the
database itself, is the engine's (`Engine.inspect`). Permission is not decided here.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import structs

from tidegate.errors import ERRORS, Code
from tidegate.model.long_work import TakesLong
from tidegate.model.statements import Effect, Judgement
from tidegate.sql.ddl import refuses_transaction
from tidegate.sql.dialects import find
from tidegate.sql.finding import CODES, READS, Finding, Refusal, most_severe
from tidegate.sql.fingerprint import fingerprint
from tidegate.sql.own_functions import full_name_of, refused_in_change, trusting
from tidegate.sql.query_statement import StatementEffects
from tidegate.sql.scan import scan
from tidegate.sql.statement_kinds import classify_statement, verb_of

SMALL = 4_096
"""Characters up to which a text is kept by the thousand; of longer ones only a few are."""

_OUR_HASH = "function.tidegate_hash"
"""The rule on the function of hash masks on SQLite, which callers may not call."""

TOO_DEEP = Finding(
    Effect.UNKNOWN, "tree.depth", "The statement nests too deep to be read", Code.SQL_TOO_DEEP
)
FAILED = Finding(
    Effect.UNKNOWN,
    "judge.failed",
    "The judge failed on the statement, which is a fault of its own",
    Code.SQL_UNREADABLE,
    "Say it with plainer SQL, and report the statement.",
)


def judge(text: str, dialect: str, trusted: tuple[str, ...] = ()) -> Judgement:
    """The judgement of one text, from the cache where it was judged before. Raises nothing: what
    cannot be read has the effect UNKNOWN and a code that says why. But TakesLong, as `Language`.

    `trusted` are functions of users (`schema.name`) that a read may call: `Judgement.trusted`.
    """
    return (_small if len(text) <= SMALL else _large)(text, dialect, trusted)


def judge_uncached(text: str, dialect: str, trusted: tuple[str, ...] = ()) -> Judgement:
    """The judgement of one text, not from the cache."""
    strict = _judged(text, dialect)
    if not trusted:
        return strict
    if strict.effect is Effect.READ:
        return structs.replace(strict, trusted=trusted)
    if strict.code != Code.SQL_FUNCTION.value:
        return strict
    found = _judged(text, dialect, trusted)
    if found.effect is Effect.READ:
        return structs.replace(found, trusted=trusted)
    refused = found.rule.removeprefix("function.")
    known_as = full_name_of(refused, trusting(dialect, trusted))
    if found.own and found.effect is not Effect.UNKNOWN:
        known_as = found.own[0]
    if known_as and found.verb not in _READING_VERBS:
        effects = StatementEffects([], own=(known_as,))
        return _judgement(refused_in_change(known_as), effects, verb=found.verb)
    if known_as:
        hint = f"Write `{known_as}`: the settings of this source allow it by its full name."
        return structs.replace(found, hint=hint, own=(known_as,))
    return structs.replace(found, own=())


_READING_VERBS = frozenset({"select", "values", "explain", "table", "describe", "summarize"})


def _judged(text: str, dialect: str, trusted: tuple[str, ...] = ()) -> Judgement:
    """The judgement, whatever it does, with trusted functions called."""
    try:
        tables = trusting(dialect, trusted) if trusted else find(dialect)
        tokens = scan(text, tables)
        effects = classify_statement(tokens, tables)
        verb = verb_of(tokens, tables)
    except TakesLong:
        raise
    except Refusal as refusal:
        return _judgement(refusal.finding)
    except RecursionError:
        return _judgement(TOO_DEEP)
    except Exception:  # noqa: BLE001 - a fault of ours must not let a statement pass, nor tell more
        return _judgement(FAILED)
    refuses = tables.concurrent_indexes and refuses_transaction(tokens)
    return _judgement(most_severe(effects.opinions), effects, verb, refuses_transaction=refuses)


_NOTHING = StatementEffects([])


def _judgement(
    finding: Finding,
    effects: StatementEffects = _NOTHING,
    verb: str = "",
    *,
    refuses_transaction: bool = False,
) -> Judgement:
    """The judgement by the finding that won. What else the statement does holds as far as it is of
    that effect: `finding` may be more severe than a change of rows."""
    effect = finding.effect
    tables, functions = tuple(effects.tables), tuple(effects.functions)
    if finding is READS:
        return Judgement(
            *(effect, finding.rule, finding.reason),
            tables=tables,
            functions=functions,
            verb=verb,
            own=effects.own,
        )
    code = finding.code or CODES[effect]
    writes = effect is Effect.WRITE
    return Judgement(
        effect,
        finding.rule,
        finding.reason,
        code.value,
        finding.hint or ERRORS[code].hint,
        tables,
        functions,
        unqualified=effects.unqualified and writes,
        verb=verb,
        administration=effects.administration if effect is Effect.ADMIN else None,
        refuses_transaction=refuses_transaction,
        touches=effects.touches if writes else (),
        open_ended=effects.open_ended and writes,
        own=effects.own,
    )


def _judge_small(text: str, dialect: str, trusted: tuple[str, ...]) -> Judgement:
    """By its template where that only reads, or where our own function is all that is refused; else
    by itself, so that reasons name what it says."""
    alike = fingerprint(text)
    if alike != text:
        judgement = _templates(alike, dialect, trusted)
        if judgement.effect is Effect.READ or judgement.rule == _OUR_HASH:
            return judgement
    return judge_uncached(text, dialect, trusted)


_templates = lru_cache(maxsize=512)(judge_uncached)
_small = lru_cache(maxsize=1024)(_judge_small)
_large = lru_cache(maxsize=16)(judge_uncached)
