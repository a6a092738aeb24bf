"""Cards: a question to a person as JSON, with all that its answer hangs on. Pure.

Nothing is shortened. What is invisible or turns text around is shown as a mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import structs

from tidegate.approvals.approvals import QUESTION_TTL_S
from tidegate.approvals.render import alike, limit_text, marked, reason_of_rule
from tidegate.approvals.sentence import IN_CONSOLE, sentence_of
from tidegate.model.source_settings import source_settings
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun
from tidegate.sql.dialects import DIALECTS
from tidegate.sql.highlighting import highlight
from tidegate.store.records import ApprovedRun, PendingApproval

COLORS = 12
"""The colors that sources have by their names; after them come those that were chosen."""
CHOSEN_COLORS = next(each.words[1:] for each in source_settings() if each.name == "color")
NOTED_S = 60.0
LONGEST_RUN_S = 3_600.0
"""How long after its grant was used a call is noted as running, at most, and how long it runs."""
MOST_COLORED = 16_384
"""Characters of the longest statement that is shown in colors: reading its tokens takes time."""
_NO_REQUESTS = ("The requests are not shown: they could hold what is hidden from you.",)
_NO_REASON = "The reason is not shown: it could quote what is hidden from you."
Row = tuple[str | None, ...]
_ENDED = frozenset({"used", "denied", "expired"})


class Rights(msgspec.Struct, frozen=True):
    """What the reader of a card may do, and why not. `rows_hidden` says why it sees no rows of the
    dry run; if it does, `masks` are the columns whose values it does not see. `hides_statement`: it
    does not see the statement. `undone`: what the call changed was put back."""

    allow: bool
    deny: bool
    undo: bool = False
    minutes: int = 0
    passphrase: bool = True
    why_not: str = ""
    undone: bool = False
    rows_hidden: str = ""
    masks: frozenset[str] = frozenset()
    hides_statement: bool = False


def card_of(
    question: PendingApproval, rights: Rights, source: Source | None, now: float
) -> dict[str, Any]:
    """The card of a question as JSON values."""
    subject = question.subject
    is_open = question.state == "pending"
    return {
        "id": question.id,
        "digest": "" if rights.hides_statement else question.digest,
        "state": question.state,
        "asked_at": question.asked_at,
        "askers": question.askers,
        "caller": {
            "name": subject.actor_name,
            "id": question.actor,
            "client": subject.client,
            "in_console": subject.surface == IN_CONSOLE,
        },
        "source": source_fields(subject.source, source),
        "surface": subject.surface,
        "tool": subject.tool,
        "sentence": sentence_of(question),
        "agent_reason": "" if rights.hides_statement else subject.agent_reason,
        "effect": subject.effect,
        "why": reason_of_rule(subject.rule),
        "reason": subject.reason,
        "statement": _statement(question, rights, source),
        "params": None if rights.hides_statement else subject.params,
        "withheld": subject.withheld or rights.hides_statement,
        "tables": list(subject.tables),
        "database": subject.database,
        "schema": subject.schema,
        "unqualified": subject.unqualified,
        "outside_transaction": subject.outside_transaction,
        "dry_run": None if rights.rows_hidden else _dry_run(question.dry_run, rights.masks),
        "dry_run_hidden": rights.rows_hidden,
        "undo": _undo(question),
        "limit": _limit(question),
        "irreversible": subject.irreversible,
        "waiting": {"until": _waits_until(question, now)},
        "expires_at": question.asked_at + QUESTION_TTL_S if is_open else question.until,
        "decided_at": question.decided_at,
        "decided_by": question.decided_by,
        "decision_reason": question.reason,
        "ended_at": question.ended_at,
        "grant": _grant(question),
        "run": _without_words(_run(question, now, undone=rights.undone), rights),
        "refused": _without_words(msgspec.to_builtins(question.refused), rights),
        "may": {
            "allow": rights.allow and is_open,
            "deny": rights.deny and is_open,
            "minutes": rights.minutes if rights.allow and is_open else 0,
            "revoke": rights.deny and question.state == "allowed",
            "undo": rights.undo,
            "passphrase": rights.passphrase,
            "why_not": rights.why_not,
        },
    }


def _waits_until(question: PendingApproval, now: float) -> float | None:
    """Until when the caller waits for the answer. One in the console waits as long as the question
    does, and what is kept is renewed while it does."""
    waits = question.waits_until
    if question.state not in ("pending", "allowed") or waits is None or waits <= now:
        return None
    return question.asked_at + QUESTION_TTL_S if question.subject.surface == IN_CONSOLE else waits


def _without_words(ending: dict[str, Any] | None, rights: Rights) -> dict[str, Any] | None:
    """What became of a call, to this reader: errors of databases name values of the statement."""
    if ending is None or not rights.hides_statement:
        return ending
    return {**ending, "message": ""}


def _limit(question: PendingApproval) -> str:
    """How many rows the change may be about; empty if nothing limits them."""
    most = question.subject.max_rows_changed
    return "" if most is None else limit_text(most, question.subject.uncounted)


def source_fields(name: str, source: Source | None) -> dict[str, Any]:
    """A source as people see it everywhere: its name, its group, and the number of its color. That
    is one that was chosen, or else by its name always the same."""
    chosen = "auto" if source is None else source.color
    if chosen == "auto":
        number = sha256(name.encode()).digest()[0] % COLORS
    else:
        number = COLORS + CHOSEN_COLORS.index(chosen)
    return {"name": name, "color": number, "group": "" if source is None else source.group}


def is_settled(question: PendingApproval, now: float) -> bool:
    """Whether nothing more becomes of a question."""
    run = run_of(question, now)
    return question.state in _ENDED and (run is None or run.state != "running")


def run_of(question: PendingApproval, now: float) -> ApprovedRun | None:
    """What became of the call that used a grant. Where the server that ran it has ended, no one
    will note that any more: after a while it is not known."""
    run = question.run
    if run is None and question.state == "used":
        run = ApprovedRun("running", question.ended_at or question.decided_at or now, "")
        return _lost(run) if now - run.at > NOTED_S else None
    if run is not None and run.state == "running" and now - run.at > LONGEST_RUN_S:
        return _lost(run)
    return run


def _lost(run: ApprovedRun) -> ApprovedRun:
    message = "The server ended before it was noted. Activity and the database say more."
    return structs.replace(run, state="unknown", message=message)


def _statement(
    question: PendingApproval, rights: Rights, source: Source | None
) -> Sequence[tuple[str, str]] | msgspec.Raw:
    if rights.hides_statement:
        return [("mark", "The statement is shown to approvers only, as the source hides columns.")]
    return _parts(question.subject.statement, "" if source is None else source.dialect)


@lru_cache(maxsize=64)
def _parts(text: str, dialect: str) -> msgspec.Raw:
    """The parts of a statement as JSON, kept: every page that is open shows the same."""
    colored = dialect in DIALECTS and len(text) <= MOST_COLORED
    parts = highlight(text, dialect) if colored else [("plain", text)]
    return msgspec.Raw(msgspec.json.encode(list(marked_parts(parts))))


def marked_parts(parts: list[Any]) -> Iterator[tuple[str, str]]:
    """Parts of a statement with what is invisible as marks of its own."""
    for kind, text in parts:
        for is_mark, piece in marked(text):
            yield ("mark" if is_mark else kind), piece


def _dry_run(dry_run: DryRun | None, masks: frozenset[str]) -> dict[str, Any] | None:
    if dry_run is None:
        return None
    masked = [column for column in dry_run.columns if alike(column) in masks]
    if masks:
        fails = dry_run.affected is None
        state = dry_run.state
        dry_run = structs.replace(
            dry_run,
            before=_without(dry_run.before, dry_run.columns, masks),
            after=_without(dry_run.after, dry_run.columns, masks),
            requests=_NO_REQUESTS if dry_run.requests else (),
            reason=_NO_REASON if fails and dry_run.reason else dry_run.reason,
            state=state and structs.replace(state, rows=_without(state.rows, state.columns, masks)),
        )
    shown = msgspec.to_builtins(dry_run)
    del shown["separable_under"]
    return {**shown, "masked": masked}


def _without(
    rows: Sequence[Row | None], columns: Sequence[str], masks: frozenset[str]
) -> tuple[Row | None, ...]:
    seen = [alike(column) not in masks for column in columns]

    def shown(row: Row) -> Row:
        return tuple([value if is_seen else None for value, is_seen in zip(row, seen, strict=True)])

    return tuple([None if row is None else shown(row) for row in rows])


def _undo(question: PendingApproval) -> dict[str, Any]:
    reversible = question.subject.reversible
    if reversible is not None:
        return msgspec.to_builtins(reversible)
    reason = ""
    if question.subject.effect != "read":
        reason = f"{question.subject.source} keeps no changes (its setting `undo` is off)"
    return {"possible": False, "reason": reason, "triggers": []}


def _run(question: PendingApproval, now: float, *, undone: bool) -> dict[str, Any] | None:
    run = run_of(question, now)
    return None if run is None else {**msgspec.to_builtins(run), "undone": undone}


def _grant(question: PendingApproval) -> dict[str, Any] | None:
    if question.until is None:
        return None
    return {"until": question.until, "uses": question.uses, "most_uses": question.most_uses}
