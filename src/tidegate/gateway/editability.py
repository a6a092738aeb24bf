"""Says before anyone types whether rows of a table can be changed, and what its columns take."""

from __future__ import annotations

import re

from msgspec import structs

from tidegate.engines.api import can_edit, can_undo
from tidegate.errors import Code, TidegateError
from tidegate.gateway.changes import most_rows
from tidegate.gateway.context import CallContext
from tidegate.gateway.decision import apply_policy
from tidegate.gateway.metadata import read_catalog
from tidegate.gateway.row_changes import (
    check_forms,
    editing_engine,
    filtered,
    not_editing,
    not_feeding,
    visible_table,
)
from tidegate.model.editing import Editability, EditColumn, Editor, Reference
from tidegate.model.row_changes import (
    MOST_EDITS,
    VERBS,
    ChangeRows,
    DescribeEditing,
    ReadImages,
    RowEdit,
    TableShape,
    Verb,
)
from tidegate.model.schema import ColumnInfo, Table
from tidegate.model.statements import Effect, Judgement
from tidegate.results.column_kinds import read_type
from tidegate.sql.dialects import find

_FAULTS = frozenset(
    {Code.SOURCE_UNREACHABLE, Code.CALL_CANCELLED, Code.LIMIT_TIME}
    | {Code.STATE_FAILED, Code.AUDIT_UNAVAILABLE, Code.INTERNAL}
)
"""What says nothing of the table: it ends the call, and is no reason."""
_UNDECIDABLE = _FAULTS | {Code.TABLE_UNKNOWN}
_EDITORS: dict[str, Editor] = {
    "boolean": "boolean", "integer": "integer", "decimal": "decimal", "float": "float",
    "text": "text", "bytes": "bytes", "date": "date", "time": "time", "time_tz": "time",
    "timestamp": "timestamp", "timestamp_tz": "timestamp_tz", "interval": "interval",
    "uuid": "uuid", "json": "json", "array": "array",
}  # fmt: skip
_GENERATED = "The database computes it."
_LABELS = re.compile(r"^enum\((.*)\)$", re.IGNORECASE | re.DOTALL)
_LABEL = re.compile(r"'((?:[^']|'')*)'")


async def describe_editing(ctx: CallContext, request: DescribeEditing) -> Editability:
    """Whether the caller can change rows of a table. Raises: TidegateError POLICY_TABLE,
    TABLE_UNKNOWN, and what asking the database raises."""
    table = await visible_table(ctx, request)
    described = Editability(
        "",
        tuple([_column(column, table, ctx.source.dialect) for column in table.columns]),
        undo=ctx.source.undo != "off" and can_undo(ctx.engine),
        most=min(most_rows(ctx) or MOST_EDITS, MOST_EDITS),
    )
    reason = _objection(ctx, table, adds=request.adds)
    if reason:
        return structs.replace(described, reason=reason)
    try:
        shape = await _shape(ctx, request, table)
    except TidegateError as error:
        if error.code in _UNDECIDABLE:
            raise
        return structs.replace(described, reason=_sentence(error))
    verbs: tuple[Verb, ...] = ("insert",) if request.adds else VERBS
    found = [(verb, *await _decided(ctx, shape, verb)) for verb in verbs]
    refused = [(verb, why) for verb, why, _ in found if why]
    columns = await _writable(ctx, shape, described.columns, adds=request.adds)
    reason = ""
    if len(refused) == len(verbs):
        reason = refused[0][1]
    return structs.replace(
        described,
        reason=reason,
        columns=columns,
        shape=shape,
        refused=tuple(refused),
        asks=any(asks for _, _, asks in found),
    )


def _objection(ctx: CallContext, table: Table, *, adds: bool) -> str:
    """Why no row of a table can be changed, as far as its catalog and the rules tell."""
    if not can_edit(ctx.engine):
        return _sentence(not_editing(ctx.source.name))
    if table.filtered:
        return _sentence(filtered(table))
    if table.kind != "table":
        return f"{table.name} is a {table.kind}."
    if adds:
        return "" if ctx.engine.capabilities.feeds else _sentence(not_feeding(ctx.source.name))
    key = [column for column in table.columns if column.key]
    if not key:
        return f"{table.name} has no primary key: its rows cannot be distinguished."
    if any(column.masked for column in key):
        return f"The key of {table.name} is masked: its rows cannot be distinguished."
    return ""


async def _shape(ctx: CallContext, request: DescribeEditing, table: Table) -> TableShape:
    hidden = tuple([column.name for column in table.columns if column.masked])
    asked = ReadImages(
        table=table.name,
        schema=table.schema,
        database=request.database,
        limits=request.limits,
        keys=(),
        hidden=hidden,
        adds=request.adds,
    )
    found = await editing_engine(ctx).read_images(ctx.permit(asked), ctx.call.cancellation)
    return found.shape


async def _decided(ctx: CallContext, shape: TableShape, verb: Verb) -> tuple[str, bool]:
    """Why the caller may make no edits of a kind, empty if it may; and whether a person is asked
    about them."""
    judgement, verdict = ctx.judgement, ctx.verdict
    try:
        ctx.judgement = Judgement(Effect.WRITE, "request.change_rows", "changes rows", verb=verb)
        apply_policy(ctx)
        await _check_masks(ctx, shape, _example(shape, verb))
        return "", ctx.verdict.kind == "ask"
    except TidegateError as refusal:
        if refusal.code in _FAULTS:
            raise
        return _sentence(refusal), False
    finally:
        ctx.judgement, ctx.verdict = judgement, verdict


def _example(shape: TableShape, verb: Verb) -> RowEdit:
    """An edit that writes a column beside the key, if there is one."""
    row = (None,) * len(shape.columns)
    if verb == "delete":
        return RowEdit(row, None)
    free = [place for place in range(len(row)) if place not in shape.key]
    if verb == "insert":
        return RowEdit(None, tuple([(place, None) for place in range(len(row))]))
    return RowEdit(row, (((free or shape.key)[0], None),))


async def _check_masks(ctx: CallContext, shape: TableShape, edit: RowEdit) -> None:
    rules = ctx.data_rules
    if rules is None:
        return
    change = ChangeRows(
        table=shape.table,
        schema=shape.schema,
        database=ctx.request.database,
        shape=shape,
        edits=(edit,),
    )
    await check_forms(ctx, change, rules, await read_catalog(ctx))


async def _writable(
    ctx: CallContext, shape: TableShape, columns: tuple[EditColumn, ...], *, adds: bool
) -> tuple[EditColumn, ...]:
    """The columns, each with why the caller may not write it."""
    if ctx.data_rules is None:
        return columns
    row = (None,) * len(shape.columns)
    found: list[EditColumn] = []
    for column in columns:
        reason = new = column.reason
        if not reason and column.name in shape.names:
            values = ((shape.names.index(column.name), None),)
            new = await _refusal_of(ctx, shape, RowEdit(None, values))
            reason = new if adds else await _refusal_of(ctx, shape, RowEdit(row, values))
        found.append(structs.replace(column, reason=reason, new_reason=new))
    return tuple(found)


async def _refusal_of(ctx: CallContext, shape: TableShape, edit: RowEdit) -> str:
    """Why what is hidden refuses an edit; empty if it does not."""
    try:
        await _check_masks(ctx, shape, edit)
    except TidegateError as refusal:
        if refusal.code in _FAULTS:
            raise
        return _sentence(refusal)
    return ""


def _column(column: ColumnInfo, table: Table, dialect: str) -> EditColumn:
    kind, length, _ = read_type(column.type)
    extra = (column.extra or "").lower()
    reason = ""
    if column.masked:
        reason = "It is masked for you."
    elif column.is_generated or "generated always" in extra or extra.startswith("generated"):
        reason = _GENERATED
    elif "always" in extra and "identity" in extra:
        reason = "The database alone gives its values."
    # A SET takes several of its labels at once: it is no list to choose one of.
    is_set = column.type.lower().startswith("set(")
    labels = () if is_set else column.labels or _declared_labels(column)
    editor: Editor = "enum" if labels else _EDITORS.get(kind, "other")
    return EditColumn(
        column.name,
        column.type,
        editor,
        column.nullable,
        column.default,
        column.default is not None or "identity" in extra or "auto" in extra,
        column.key,
        reason,
        column.masked is not None,
        labels,
        length if kind == "text" else None,
        find(dialect).untyped_columns,
        _reference(column, table),
        reason,
    )


def _declared_labels(column: ColumnInfo) -> tuple[str, ...]:
    """The labels of a type that lists them in its name."""
    found = _LABELS.match(column.type.strip())
    if found is None:
        return ()
    return tuple([label.replace("''", "'") for label in _LABEL.findall(found.group(1))])


def _reference(column: ColumnInfo, table: Table) -> Reference | None:
    for key in table.foreign_keys:
        if column.name in key.columns and key.references:
            return Reference(key.schema or table.schema, key.table, key.references, key.columns)
    return None


def _sentence(error: TidegateError) -> str:
    text = error.without_secrets().message
    return text if text.endswith(".") else f"{text}."
