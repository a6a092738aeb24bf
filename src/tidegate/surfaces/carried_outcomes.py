"""Outcomes of long calls, for a client that asks another process what came of its call.

A call that was answered before it had ended waits with its outcome in one process
(`protocol.tasks`). Where its client may ask another one, the outcome is in the state as well,
encrypted, with what it was read under: it is given out by the same checks as where it was made.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER
from tidegate.model.data_rules import DataRules
from tidegate.model.requests import Basis
from tidegate.model.sources import Identity, Source
from tidegate.model.tasks import TaskRecord
from tidegate.protocol.model import RpcError, ToolResult
from tidegate.protocol.tasks import Task
from tidegate.store.carried import CarriedValues
from tidegate.surfaces.tool_context import EndedWork
from tidegate.typed_values import msgpack_decoder

MOST_BYTES = 1_048_576
_LARGE_BYTES = 65_536
"""A result of more may have to be made shorter for its reply, by the surface that made it."""


class _CarriedOutcome(msgspec.Struct, frozen=True):
    """An outcome, and the work that it is of. `call` is that of its `TaskRecord`. `error` is an
    `RpcError`: code, message, data and status; None for a result."""

    actor: Actor
    tool: str
    scope: Scope
    basis: list[tuple[Source, Identity | None, DataRules | None, str]]
    changed: bool
    outcome_unknown: bool
    may_pass_now: bool
    call: str = ""
    content: list[dict[str, Any]] | None = None
    body: bytes | None = None
    structured: bool = True
    is_error: bool = False
    meta: dict[str, Any] | None = None
    error: tuple[int, str, Any, int | None] | None = None


class CarriedOutcomes:
    """Keeps outcomes for other processes, and reads theirs (`protocol.tasks.Outcomes`). Its methods
    call the state, so not on an event loop."""

    def __init__(self, values: CarriedValues) -> None:
        self._values = values
        self._decoder = msgpack_decoder(_CarriedOutcome)

    def keep(self, task: Task, lifetime_s: float) -> None:
        """Keep the outcome of a task that has ended, unless it is too large or of a kind that only
        its process can give out. Raises: TidegateError STATE_FAILED."""
        work, outcome = task.work, task.outcome
        if not isinstance(work, EndedWork) or outcome is None:
            return
        # Of a call about no single source nothing is checked again.
        basis = [tuple(each) for each in work.basis if each.source.id]
        fields: dict[str, Any] = {
            "actor": task.actor, "tool": work.tool, "scope": work.scope, "basis": basis,
            "changed": work.changed, "outcome_unknown": work.outcome_unknown,
            "may_pass_now": work.may_pass_now, "call": task.record.call,
        }  # fmt: skip
        if isinstance(outcome, RpcError):
            fields["error"] = (outcome.code, outcome.message, outcome.data, outcome.status)
        else:
            if outcome.shrink is not None and len(outcome.body or b"") > _LARGE_BYTES:
                return
            fields |= {
                "content": outcome.content, "body": outcome.body, "structured": outcome.structured,
                "is_error": outcome.is_error, "meta": outcome.meta,
            }  # fmt: skip
        body = msgspec.msgpack.encode(fields)
        if len(body) <= MOST_BYTES:
            self._values.put(task.id, task.actor.id, [body], lifetime_s)

    def find(self, record: TaskRecord) -> Task | None:
        """The task of a record of another process, with its outcome; None if that is not there.
        Raises: TidegateError STATE_FAILED."""
        found = self._values.read(record.id)
        if not found:
            return None
        try:
            kept = self._decoder.decode(found[0])
        except msgspec.DecodeError:  # of another release
            return None
        # The record is as someone may have written it: it names this call, or none any more.
        if kept.actor.id != record.actor or record.call not in ("", kept.call):
            return None
        work = EndedWork(
            *(kept.tool, kept.scope, tuple([Basis(*each) for each in kept.basis]), kept.changed),
            *(kept.outcome_unknown, kept.may_pass_now),
        )
        task = Task(record, kept.actor, NEVER, work)
        if kept.error is not None:
            code, message, data, status = kept.error
            task.outcome = RpcError(code, message, data, status=status)
        else:
            task.outcome = ToolResult(
                *(kept.content, kept.body, kept.structured, kept.is_error, kept.meta)
            )
        return task
