"""Transactions over several statements for the terminal of the Data page (decisions 56, 111).

The gate holds each of them, for the operator who began it, and ends it when nothing has run in it
for a while. A statement joins one by naming it (`runs.NewRun.transaction`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, structs

from tidegate.errors import Code, TidegateError
from tidegate.model.replies import BegunTransaction, EndedTransaction
from tidegate.model.transactions import (
    BeginTransaction,
    CommitTransaction,
    MarkTransaction,
    RollbackTransaction,
    TransactionBounds,
    TransactionModes,
    TransactionRequest,
)
from tidegate.products.console.data_calls import Caller, DataCalls, Place

BOUNDS = TransactionBounds(idle_s=120.0, total_s=1_800.0, per_actor=3)


class NewBlock(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `blocks`."""

    reads_only: bool = False


class BlockStep(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `blocks/ID`: end the block, or set, leave or go back to a savepoint."""

    action: Literal["commit", "rollback", "savepoint", "release", "rollback to"]
    name: Annotated[str, Meta(max_length=63)] = ""


class DataBlocks:
    """The transaction blocks of people."""

    def __init__(self, calls: DataCalls) -> None:
        self._calls = calls

    async def begin(self, body: NewBlock, caller: Caller) -> dict[str, Any]:
        """Open a block. Raises: TidegateError UNSUPPORTED where there are none; SOURCE_BUSY."""
        modes = TransactionModes(reads_only=True if body.reads_only else None)
        request = BeginTransaction(modes=modes, bounds=BOUNDS, database=body.database)
        begun, _ = await self._calls.ask(caller, request, body.source, BegunTransaction)
        if not begun.id:
            raise TidegateError(
                Code.UNSUPPORTED,
                f"{body.source} has no transactions over several statements.",
                hint="Each statement is kept, or not, by itself.",
            )
        idle_s, total_s = BOUNDS.idle_s, BOUNDS.total_s
        reads_only = begun.reads_only
        return {"id": begun.id, "reads_only": reads_only, "idle_s": idle_s, "total_s": total_s}

    async def step(self, id: str, body: BlockStep, caller: Caller) -> dict[str, Any]:
        """End a block, or mark a place in it. Raises: TidegateError, also for one that is over."""
        self._calls.source(caller, body.source)  # of one that it may not see it learns nothing
        request: TransactionRequest
        if body.action == "commit":
            request = CommitTransaction(database=body.database)
        elif body.action == "rollback":
            request = RollbackTransaction(database=body.database)
        else:
            request = MarkTransaction(action=body.action, name=body.name, database=body.database)
        call = self._calls.call(caller, request, body.source)
        reply = await self._calls.handle(structs.replace(call, transaction=id))
        ended = reply.payload
        if not isinstance(ended, EndedTransaction):
            return {"open": True, "committed": False, "rows": 0, "change": None}
        return {
            "open": False,
            "committed": ended.committed,
            "rows": ended.row_count,
            "change": ended.change or None,
        }
