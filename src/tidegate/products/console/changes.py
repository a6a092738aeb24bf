"""Putting rows back from the console: through the gate, as the operator who asks for it.

Where a person must approve writes on the source, the operator's own yes is that approval, unless
another operator must give it: then the undo waits in the inbox like any other call.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.identity.operators import Operators, SignedIn
from tidegate.model.changes import DescribeUndo, UndoChange, Undone, UndoPreview, UndoTable
from tidegate.model.requests import Call, Request
from tidegate.products.console.sign_in import actor_of, place_of
from tidegate.store.calls import change_state, read_state
from tidegate.store.supervision import ChangeStore


class Undo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `undo`."""

    passphrase: str = ""


class Changes:
    """What an operator may see and take back of the changes that are kept."""

    def __init__(
        self,
        gateway: Gateway,
        store: ChangeStore,
        approvals: Approvals,
        operators: Operators,
        hashing: asyncio.Lock,
    ) -> None:
        self._gateway = gateway
        self._store = store
        self._approvals = approvals
        self._operators = operators
        self._hashing = hashing

    def of_call(self, call_id: str, signed_in: SignedIn) -> dict[str, Any] | None:
        """The kept change of a call that the operator may see, and whether it may take it back.
        Reads the state."""
        entry = self._store.of_call(call_id) if call_id else None
        if entry is None or not signed_in.may("viewer", entry.source):
            return None
        may = entry.state == "done" and signed_in.may("approver", entry.source)
        return {"id": entry.id, "state": entry.state, "rows": entry.rows, "may_undo": may}

    async def describe(self, id: str, signed_in: SignedIn, address: str) -> dict[str, Any]:
        """What would be put back. Raises: TidegateError, as the gate."""
        source = await read_state(self._source_of, id, signed_in)
        preview = await self._ask(DescribeUndo(id), source, signed_in, address)
        assert isinstance(preview, UndoPreview)  # noqa: S101 - the answer to this request
        return _described(preview)

    async def undo(self, id: str, body: Undo, signed_in: SignedIn, address: str) -> dict[str, Any]:
        """Put the rows back. Raises: TidegateError UNDO_CONFLICT, UNDO_UNAVAILABLE,
        OPERATOR_CONSENT, APPROVAL_NEEDED if another operator must say yes; as the gate."""
        source = await read_state(self._source_of, id, signed_in)
        if body.passphrase:
            confirm = self._operators.confirm
            async with self._hashing:
                signed_in = await asyncio.to_thread(confirm, signed_in, body.passphrase, address)
        elif signed_in.session.confirmed_at is None:
            raise TidegateError(
                Code.OPERATOR_CONSENT,
                "Putting rows back needs your passphrase; nothing was changed.",
                hint="Type it, and try again.",
            )
        try:
            done = await self._ask(UndoChange(id), source, signed_in, address)
        except ApprovalNeeded as needed:
            await self._approve(needed, signed_in, address)
            done = await self._ask(UndoChange(id), source, signed_in, address)
        assert isinstance(done, Undone)  # noqa: S101 - the answer to this request
        return {"rows": done.rows, "change_id": done.change, "remarks": list(done.remarks)}

    async def _approve(self, needed: ApprovalNeeded, signed_in: SignedIn, address: str) -> None:
        question, operator = needed.question, signed_in.operator.name
        why = await read_state(self._approvals.why_not, question, operator)
        if why is not None:
            raise TidegateError(
                Code.APPROVAL_NEEDED, f"{why}. It waits in the Inbox; nothing was changed."
            )

        def resolve() -> None:
            self._approvals.resolve(
                *(question.id, "allowed", signed_in.actor_id),
                operator=operator,
                details=place_of(signed_in, address),
            )

        await change_state(resolve)

    def _source_of(self, id: str, signed_in: SignedIn) -> str:
        """The name of the change's source. Raises: TidegateError UNDO_UNAVAILABLE,
        POLICY_DENIED."""
        entry = self._store.find(id)
        if entry is None or not signed_in.may("viewer", entry.source):
            raise TidegateError(Code.UNDO_UNAVAILABLE, "There is no such change, or it has expired")
        if not signed_in.may("approver", entry.source):
            raise TidegateError(
                Code.POLICY_DENIED,
                f"You may read {entry.source}, but not put rows back there.",
                hint="Ask an admin for the role approver there.",
            )
        return entry.source

    async def _ask(self, request: Request, source: str, signed_in: SignedIn, address: str) -> Any:
        call = Call(
            *(actor_of(signed_in), "console", request.kind, request, source),
            client="console",
            address=address,
            waits=False,
        )
        return (await self._gateway.handle(call)).payload


def _described(preview: UndoPreview) -> dict[str, Any]:
    entry = preview.entry
    tables = [_table(each) for each in preview.tables]
    first: dict[str, Any] = tables[0] if tables else {"columns": [], "rows": []}
    return {
        "id": entry.id,
        "source": entry.source,
        "at": entry.made_at,
        "state": entry.state,
        "columns": first["columns"],
        "rows": first["rows"],
        "tables": tables,
        "count": entry.rows,
        "conflicts": preview.conflict_count,
        "conflict_rows": [msgspec.to_builtins(each) for each in preview.conflicts],
        "triggers": list(preview.triggers),
        "possible": preview.possible,
        "reason": preview.reason,
    }


def _table(table: UndoTable) -> dict[str, Any]:
    rows = [
        {"key": "", "before": before, "after": after, "now": after}
        for before, after in zip(table.before, table.after, strict=True)
    ]
    return {
        "table": table.table,
        "columns": list(table.columns),
        "masked": list(table.masked),
        "count": table.count,
        "rows": rows,
    }
