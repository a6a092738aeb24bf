"""Puts the rows of a change back, and shows what that would do.

The caller's rules hold for what is shown: masked columns and rows that a filter hides are put back
unseen.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from msgspec import structs

from tidegate.engines.api import UndoingEngine, can_undo
from tidegate.engines.common.row_images import too_many_rows
from tidegate.errors import Code, TidegateError, masking_refused, table_refused
from tidegate.gateway.changes import begin_keeping, end_keeping, most_rows, place_of
from tidegate.gateway.context import CallContext
from tidegate.gateway.masking import without_values
from tidegate.history.undo_log import UndoLog, no_change
from tidegate.model.changes import (
    ChangeEntry,
    ChangeImage,
    ChangeRequest,
    Comparison,
    RowConflict,
    RowImage,
    TableImage,
    UndoChange,
    Undone,
    UndoPreview,
    UndoTable,
)
from tidegate.model.statements import DryRun
from tidegate.policy.data_rules import (
    digest_of,
    hidden_columns,
    is_filtered,
    may_use_table,
    rules_for_people,
)
from tidegate.store.calls import change_state, read_state

_MOST_SHOWN = 20
_MOST_CHARS = 200
_CLEAR = "Look at the rows, and correct them by statements."
_FILTERED = "Rows of this table are hidden from this caller."


async def load_change(ctx: CallContext) -> None:
    """Find the change that a request is about, with its rows.

    Raises: TidegateError UNDO_UNAVAILABLE, SOURCE_BUSY, LIMIT_CHANGES, POLICY_TABLE, POLICY_MASKED.
    """
    request, changes, actor = ctx.request, ctx.services.changes, ctx.call.actor
    if not isinstance(request, ChangeRequest) or changes is None:
        raise TidegateError(Code.UNSUPPORTED, "This server keeps no changes.")
    if ctx.transaction is not None:
        raise TidegateError(
            Code.UNSUPPORTED,
            "A change is taken back in a transaction of its own.",
            hint="Send it by itself, outside BEGIN and COMMIT.",
        )
    entry = await read_state(changes.find, request.change, ctx.source)
    if actor.kind == "agent" and entry.actor != actor.id:
        raise no_change(request.change)
    if not can_undo(ctx.engine):
        raise TidegateError(
            Code.UNDO_UNAVAILABLE, "The engine of this source puts no rows back.", hint=_CLEAR
        )
    if changes.is_under_way(entry):
        raise TidegateError(
            Code.SOURCE_BUSY,
            f"The change {entry.id} is under way, or a process ended while it was.",
            hint="Try again in a minute.",
            retry_after_s=60.0,
        )
    image = await read_state(changes.image, entry, place_of(ctx.source))
    _check_tables(ctx, entry, image)
    ctx.change = structs.replace(ctx.change, undone=entry, max_rows=most_rows(ctx))
    ctx.database = entry.database or ctx.engine.status.database
    fields: dict[str, Any] = {
        "change": entry.id,
        "image": image,
        "database": entry.database or None,
        "schema": None,
    }
    if isinstance(request, UndoChange):
        _check_state(ctx, entry)
        rows = "1 row" if entry.rows == 1 else f"{entry.rows:,} rows"
        fields["summary"] = f"puts back {rows} of {', '.join(entry.tables)}"
    ctx.request = ctx.rewritten = structs.replace(request, **fields)
    ctx.judgement = structs.replace(ctx.judgement, tables=entry.tables)


def _check_tables(ctx: CallContext, entry: ChangeEntry, image: ChangeImage) -> None:
    """Raises: TidegateError POLICY_TABLE, POLICY_MASKED for rows that are not for the caller."""
    actor, undoes = ctx.call.actor, isinstance(ctx.call.request, UndoChange)
    for table in image.tables:
        if not may_use_table(actor, ctx.source, table.table, table.schema, ctx.database):
            raise table_refused(table.table)
        hidden = ctx.data_rules is not None and is_filtered(
            ctx.data_rules, table.schema, table.table
        )
        if hidden and undoes and entry.actor != actor.id:
            raise masking_refused(
                f"Rows of `{table.table}` are hidden from this caller, and another one changed it",
                f"filter.{table.table}",
                "Ask the operator, from whom no rows are hidden.",
            )


def _check_state(ctx: CallContext, entry: ChangeEntry) -> None:
    """Raises: TidegateError UNDO_UNAVAILABLE, LIMIT_CHANGES."""
    if entry.state == "undone":
        by = f" by {entry.undone_by}" if entry.undone_by else ""
        raise TidegateError(
            Code.UNDO_UNAVAILABLE, f"The change {entry.id} was taken back already{by}."
        )
    most = ctx.change.max_rows
    if most is not None and entry.rows > most:
        raise too_many_rows(most, entry.rows, False)


async def answer_change(ctx: CallContext) -> UndoPreview | Undone:
    """Show what an undo would do, or do it. Raises: TidegateError UNDO_CONFLICT, UNDO_UNAVAILABLE,
    and what the engine raises."""
    entry, engine, changes = ctx.change.undone, ctx.engine, ctx.services.changes
    request = ctx.rewritten
    if entry is None or changes is None or not can_undo(engine):
        raise TidegateError(Code.INTERNAL, "A change was to be taken back that was not loaded.")
    if not isinstance(request, ChangeRequest) or request.image is None:
        raise TidegateError(Code.INTERNAL, "A change was to be taken back without its rows.")
    if isinstance(request, UndoChange):
        return await _put_back(ctx, engine, changes, entry, request.image)
    found = await engine.compare(ctx.permit(request), ctx.call.cancellation)
    entry, note = await _settled(changes, entry, found)
    return _preview(ctx, entry, request.image, found, note)


async def _settled(
    changes: UndoLog, entry: ChangeEntry, found: Comparison
) -> tuple[ChangeEntry, str]:
    """Find out by its rows whether a change was committed that was prepared when a process ended.
    Returns it as it is known now, and what prevents an undo; empty if nothing does."""
    if entry.state != "prepared" or found.reason:
        return entry, ""
    if not found.count:
        with suppress(TidegateError):
            await change_state(changes.settle, entry, True)
        return structs.replace(entry, state="done"), ""
    if found.as_before:
        with suppress(TidegateError):
            await change_state(changes.settle, entry, False)
        return entry, f"the change {entry.id} was never committed: every row is as before it"
    return entry, f"it is not known whether the change {entry.id} was committed"


async def _put_back(
    ctx: CallContext,
    engine: UndoingEngine,
    changes: UndoLog,
    entry: ChangeEntry,
    image: ChangeImage,
) -> Undone:
    await begin_keeping(ctx)
    permit = ctx.permit(ctx.rewritten)
    ctx.sent = True
    try:
        found = await engine.put_back(permit, ctx.call.cancellation)
    except BaseException as error:
        await end_keeping(ctx, error)
        if isinstance(error, TidegateError) and ctx.data_rules is not None:
            raise without_values(error) from None
        raise
    if found.reason:
        raise _not_now(entry, found.reason)
    if found.count:
        _, note = await _settled(changes, entry, found)
        if note and found.as_before:
            raise _not_now(entry, note)
        raise _conflict(ctx, entry, image, found)
    if entry.state == "prepared":
        await _settled(changes, entry, found)
    kept_as = await end_keeping(ctx)
    if not kept_as:
        with suppress(TidegateError):  # a second undo finds that the rows are other ones
            await change_state(changes.mark_undone, entry, "")
    remarks: list[str] = [*found.remarks]
    keeper = ctx.change.keeper
    if keeper is not None and keeper.reason:
        remarks.append(f"this undo cannot be taken back itself: {keeper.reason}")
    return Undone(entry.id, kept_as, entry.rows, entry.tables, tuple(remarks))


def _not_now(entry: ChangeEntry, reason: str) -> TidegateError:
    return TidegateError(
        Code.UNDO_UNAVAILABLE,
        f"The change {entry.id} cannot be taken back: {reason}. Nothing was changed.",
        hint=_CLEAR,
    )


def _conflict(
    ctx: CallContext, entry: ChangeEntry, image: ChangeImage, found: Comparison
) -> TidegateError:
    conflicts = _shown_conflicts(ctx, image, found)
    named = [f"{each.table} ({each.key}) {_PROBLEMS[each.problem]}" for each in conflicts[:5]]
    named = [each.replace(" ()", "") for each in named]
    if found.count > len(named):
        named.append(f"and {found.count - len(named):,} more")
    rows = "1 row is" if found.count == 1 else f"{found.count:,} rows are"
    return TidegateError(
        Code.UNDO_CONFLICT,
        f"{rows} not as the change {entry.id} left them: {'; '.join(named)}. Nothing was changed.",
        details={
            "count": found.count,
            "rows": [
                {"table": each.table, "key": each.key, "problem": each.problem}
                for each in conflicts
            ],
        },
    )


_PROBLEMS = {
    "changed": "has changed since",
    "gone": "is gone",
    "exists": "is there again",
}


def _shown_conflicts(
    ctx: CallContext, image: ChangeImage, found: Comparison
) -> tuple[RowConflict, ...]:
    """The conflicts without keys that are hidden from the caller."""
    secret: set[str] = set()
    for table in image.tables:
        hidden = _hidden(ctx, table)
        if hidden is None or any(table.columns[place].name in hidden for place in table.key):
            secret.add(f"{table.schema}.{table.table}" if table.schema else table.table)
    return tuple(
        [
            structs.replace(each, key="") if each.table in secret else each
            for each in found.conflicts
        ]
    )


def _hidden(ctx: CallContext, table: TableImage) -> tuple[str, ...] | None:
    """The masked columns of a table; None if rows of it are hidden from the caller."""
    rules = ctx.data_rules
    if ctx.identity is not None:
        return None  # what its role may read is not known here
    if rules is None:
        return ()
    if is_filtered(rules, table.schema, table.table):
        return None
    return hidden_columns(
        rules, table.schema, table.table, [column.name for column in table.columns]
    )


def _preview(
    ctx: CallContext, entry: ChangeEntry, image: ChangeImage, found: Comparison, note: str
) -> UndoPreview:
    reason = note or found.reason
    if entry.state == "undone":
        reason = "it was taken back already"
    elif found.count and not reason:
        reason = "rows are not as the change left them"
    return UndoPreview(
        entry,
        tuple([_shown_table(ctx, table) for table in image.tables]),
        not reason,
        reason,
        _shown_conflicts(ctx, image, found),
        found.count,
        found.triggers,
    )


def _shown_table(ctx: CallContext, table: TableImage) -> UndoTable:
    name = f"{table.schema}.{table.table}" if table.schema else table.table
    names = tuple([column.name for column in table.columns])
    hidden = _hidden(ctx, table)
    if hidden is None:
        return UndoTable(name, names, (), (), len(table.rows), (), _FILTERED)
    shown = table.rows[:_MOST_SHOWN]
    return UndoTable(
        name,
        names,
        tuple([_text(row.after, names, hidden) for row in shown]),
        tuple([_text(row.before, names, hidden) for row in shown]),
        len(table.rows),
        hidden,
    )


def _text(
    row: tuple[Any, ...] | None, names: tuple[str, ...], hidden: tuple[str, ...]
) -> tuple[str | None, ...] | None:
    if row is None:
        return None
    return tuple(
        [
            None if value is None or name in hidden else _cell(value)
            for name, value in zip(names, row, strict=True)
        ]
    )


def _cell(value: Any) -> str:
    if isinstance(value, bytes):
        return f"x{value[: _MOST_CHARS // 2].hex()}"
    return str(value)[:_MOST_CHARS]


def try_undo(ctx: CallContext) -> DryRun:
    """What an undo would do, for the person who is asked: from the rows that are kept. The operator
    sees whole rows; what is masked for the caller is named."""
    request = ctx.request
    image = request.image if isinstance(request, UndoChange) else None
    if image is None or not image.tables:
        return DryRun(reason="its rows are not known.")
    first = image.tables[0]
    names = tuple([column.name for column in first.columns])
    shown: tuple[RowImage, ...] = first.rows[:_MOST_SHOWN]
    others = ", ".join([each.table for each in image.tables[1:]])
    hidden = _hidden(ctx, first)
    return DryRun(
        image.row_count,
        names,
        tuple([_text(row.after, names, ()) for row in shown]),
        tuple([_text(row.before, names, ()) for row in shown]),
        f"rows of other tables go back as well: {others}." if others else "",
        names if hidden is None else hidden,
        separable_under=digest_of(rules_for_people(ctx.source)),
    )
