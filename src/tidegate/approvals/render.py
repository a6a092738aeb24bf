"""How a question reads to the person who answers it: everything the answer hangs on, as text.

The statement is the caller's: nothing in it may look like our words or be invisible.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from msgspec import structs

from tidegate.model.changes import Reversibility
from tidegate.model.statements import DryRun, NewState
from tidegate.secrets.redaction import MASK
from tidegate.store.records import PendingApproval

_MARGIN = "  | "
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})


def describe(question: PendingApproval) -> str:
    """The question in several lines, for the operator."""
    dry_run = question.dry_run
    if dry_run is None or not dry_run.requests:
        return "\n".join([*_lines(question), *_dry_run(dry_run)])
    return "\n".join([*_lines(question), *_requests(dry_run), *_new_state(dry_run.state)])


def describe_at_client(question: PendingApproval) -> str:
    """The question for a person at the caller's own client. The caller could read it there, so it
    tells of rows only what the caller may see."""
    dry_run = question.dry_run
    if question.subject.guarded:
        shown = ["Dry run:   not shown here; the operator of the gate can see it."]
    else:
        shown = [*_dry_run(None if dry_run is None else _without_withheld(dry_run))]
        if dry_run is not None and dry_run.withheld:
            names = ", ".join(visible(name) for name in dry_run.withheld)
            shown.append(f"{_MARGIN}Masked for the caller, and not shown here: {names}.")
    return "\n".join([*_lines(question), *shown])


def _without_withheld(dry_run: DryRun) -> DryRun:
    if not dry_run.withheld:
        return dry_run
    if dry_run.affected is None:
        return DryRun(reason="the operator of the gate can see why.")
    withheld = {alike(column) for column in dry_run.withheld}
    places = [
        place for place, column in enumerate(dry_run.columns) if alike(column) not in withheld
    ]

    def kept(row: tuple[str | None, ...] | None) -> tuple[str | None, ...] | None:
        return None if row is None else tuple([row[place] for place in places])

    return structs.replace(
        dry_run,
        columns=tuple([dry_run.columns[place] for place in places]),
        before=tuple([kept(row) for row in dry_run.before]),
        after=tuple([kept(row) for row in dry_run.after]),
    )


def alike(column: str) -> str:
    """A column's name to compare by: settings may write it in another case, or with - for _."""
    return column.replace("-", "_").casefold()


def _lines(question: PendingApproval) -> list[str]:
    subject = question.subject
    lines = [
        f"Source:    {visible(subject.source)}{_place(question)}",
        f"Caller:    {visible(subject.actor_name)} ({visible(question.actor)})"
        + (f", {visible(subject.client)}" if subject.client else ""),
        f"Through:   {visible(subject.tool)} ({subject.surface})",
        f"Effect:    {subject.effect}: {visible(subject.reason)}",
        f"Tables:    {', '.join(map(visible, subject.tables)) or 'none is named'}",
        f"Asked for: {_WHY.get(subject.rule, subject.rule)}",
        "Statement:",
        *(_MARGIN + visible(line) for line in subject.statement.splitlines()),
    ]
    if subject.agent_reason:
        lines.insert(2, f"It says:   {visible(subject.agent_reason)}")
    if subject.params is not None:
        lines.append(f"Parameters: {visible(subject.params)}")
    if subject.withheld:
        lines.append("*** replaces what may be a secret; the statement runs with the real value.")
    if subject.unqualified:
        lines.append("It may change every row of a table.")
    if subject.outside_transaction:
        lines.append("It runs outside a transaction: what it has done stays if it fails.")
    if subject.max_rows_changed is not None:
        lines.append(f"Limit:     {limit_text(subject.max_rows_changed, subject.uncounted)}")
    if subject.reversible is not None:
        lines.append(f"Undo:      {_reversible(subject.reversible)}")
    return lines


def limit_text(most: int, uncounted: str) -> str:
    """How many rows a change may be about, and which of them count."""
    followers = "those that triggers and foreign keys change"
    counted = f"not counted: {visible(uncounted)}" if uncounted else f"{followers} count as well"
    return f"at most {most:,} rows: a change of more is rolled back ({counted})."


def _reversible(found: Reversibility) -> str:
    if not found.possible:
        return f"it cannot be taken back, because {visible(found.reason)}."
    words = "it can be taken back."
    if found.triggers:
        names = ", ".join(map(visible, found.triggers))
        words += f" These triggers would fire again then: {names}."
    return f"{words} {visible(found.reason)}".rstrip()


_WHY = {
    "source.agents": 'the source asks about every call of an agent (agents = "ask")',
    "source.approval_for": "the source asks a person (approval_for)",
    "source.statements": "the mode asks a person about statements of this class",
    "source.max_rows_changed": "the rows of a change are limited, and not all can be counted",
    "source.max_plan_cost": "the database expects it to cost more than max_plan_cost",
    "source.max_plan_rows": "the database expects more rows than max_plan_rows",
    "sql.irreversible": "it cannot be undone",
    "sql.administration": "it administers the database (access = admin)",
}


def reason_of_rule(rule: str) -> str:
    """Why the rule of that name asks a person."""
    return _WHY.get(rule, rule)


def marked(text: str) -> Iterator[tuple[bool, str]]:
    """The pieces of a text, each with whether it is a mark: for a character that hides or reorders
    others, except line ends and tabs, and for what may be a secret."""
    plain: list[str] = []
    for piece in re.split(rf"({re.escape(MASK)})", text):
        if piece == MASK:
            yield from _plain(plain)
            yield True, MASK
            continue
        for char in piece:
            if unicodedata.category(char) in _HIDDEN and char not in "\n\t":
                yield from _plain(plain)
                yield True, f"\\u{{{ord(char):x}}}"
            else:
                plain.append(char)
    yield from _plain(plain)


def _plain(chars: list[str]) -> Iterator[tuple[bool, str]]:
    if chars:
        yield False, "".join(chars)
        chars.clear()


def visible(text: str) -> str:
    """The text on one line, with marks in place of characters that hide or reorder others."""
    return "".join(
        f"\\u{{{ord(char):x}}}" if unicodedata.category(char) in _HIDDEN else char for char in text
    )


def _place(question: PendingApproval) -> str:
    subject = question.subject
    parts = [("database", subject.database), ("schema", subject.schema)]
    shown = [f"{kind} {visible(name)}" for kind, name in parts if name]
    return f" ({', '.join(shown)})" if shown else ""


def _dry_run(dry_run: DryRun | None) -> Iterator[str]:
    if dry_run is None:
        yield "Dry run:   none was made."
        return
    if dry_run.affected is None:
        yield f"Dry run:   none: {visible(dry_run.reason)}"
        return
    if dry_run.what:
        yield (
            f"Dry run:   {dry_run.what}: {dry_run.added:,} would be added and {dry_run.removed:,}"
            " removed; nothing was stored."
        )
    else:
        rows = "1 row" if dry_run.affected == 1 else f"{dry_run.affected:,} rows"
        what = "added" if None in dry_run.before else "changed"
        yield f"Dry run:   {rows} would be {what}; it was rolled back."
    for before, after in zip(dry_run.before, dry_run.after, strict=True):
        yield _MARGIN + _row(dry_run.columns, before, after)
    if (left := dry_run.affected - len(dry_run.before)) > 0 and dry_run.before:
        yield f"{_MARGIN}... and {left:,} more"
    if dry_run.reason:
        yield f"{_MARGIN}{visible(dry_run.reason)}"


def _requests(dry_run: DryRun) -> Iterator[str]:
    count = dry_run.affected or 0
    yield f"Would send {count:,} request{'s' * (count != 1)}, and has sent none:"
    for each in dry_run.requests:
        yield _MARGIN + visible(each)
    if (left := count - len(dry_run.requests)) > 0:
        yield f"{_MARGIN}... and {left:,} more"
    if dry_run.before:
        yield "Now there, and what would become of it:"
    for before, after in zip(dry_run.before, dry_run.after, strict=True):
        yield _MARGIN + _row(dry_run.columns, before, after)
    if dry_run.reason:
        yield f"{_MARGIN}{visible(dry_run.reason)}"


def _new_state(state: NewState | None) -> Iterator[str]:
    if state is None:
        return
    yield "There after it had run:"
    for row in state.rows:
        yield _MARGIN + (_row(state.columns, row, row) if row is not None else "nothing")
    if state.reason:
        yield f"{_MARGIN}{visible(state.reason)}"


def describe_requests(question: PendingApproval) -> str:
    """What the call would send, and what is there now, for a person at the caller's own client;
    empty if that is not known, or not for the caller's eyes."""
    dry_run = question.dry_run
    if question.subject.guarded or dry_run is None or not dry_run.requests:
        return ""
    return "\n".join(_requests(_without_withheld(dry_run)))


def _row(
    columns: tuple[str, ...],
    before: tuple[str | None, ...] | None,
    after: tuple[str | None, ...] | None,
) -> str:
    cells: list[str] = []
    for column, old, new in zip(columns, before or after or (), after or before or (), strict=True):
        changed = f" -> {_cell(new)}" if _cell(new) != _cell(old) else ""
        cells.append(f"{visible(column)} {_cell(old)}{changed}")
    mark = " (deleted)" if after is None else " (added)" if before is None else ""
    return ", ".join(cells) + mark


def _cell(value: str | None) -> str:
    return "NULL" if value is None else visible(value)
