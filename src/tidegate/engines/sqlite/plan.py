"""Decides what one SQL text is, once: its effect, and where and how it may run.

Pure values, kept in a bounded cache by text. SQLite checks every statement again whenever it
prepares it, so a stale plan can cost time but never let anything through.
"""

from __future__ import annotations

from copy import copy

from tidegate.engines.sqlite.program import MAX_VALUE_BYTES, Program
from tidegate.pages import Column
from tidegate.statements import Effect, Judgement


class Plan:
    """What is known of a text. `inline` and `columns` change: whether the event loop may run it,
    and its columns as the event loop's connection saw them last.

    `parameters` counts placeholders. `explains` is 0, or 1 or 2 for EXPLAIN and EXPLAIN QUERY PLAN.
    """

    __slots__ = (
        "columns",
        "explains",
        "inline",
        "judgement",
        "max_value_bytes",
        "parameters",
        "small",
        "steady",
        "tame",
    )

    def __init__(
        self,
        judgement: Judgement,
        *,
        parameters: int = 0,
        explains: int = 0,
        program: Program | None = None,
    ) -> None:
        self.judgement = judgement
        self.parameters = parameters
        self.explains = explains
        self.small = program is None or program.small
        self.tame = program is not None and program.tame
        self.steady = program is not None and program.steady and parameters == 0
        self.max_value_bytes = MAX_VALUE_BYTES if program is None else program.max_value_bytes
        self.inline = self.tame
        self.columns: tuple[Column, ...] | None = None

    def for_likeness(self) -> Plan:
        """A plan for a text that differs from this one's in plain values only.

        Its columns are seen anew: their names may hold the values.
        """
        plan = copy(self)
        plan.columns = None
        return plan

    @property
    def reads(self) -> bool:
        return self.judgement.effect is Effect.READ


class Plans:
    """A bounded cache of plans by text: two generations, so that a hit costs one look-up."""

    __slots__ = ("_capacity", "_new", "_old")

    def __init__(self, capacity: int = 1024) -> None:
        self._capacity = capacity
        self._new: dict[str, Plan] = {}
        self._old: dict[str, Plan] = {}

    def get(self, text: str) -> Plan | None:
        plan = self._new.get(text)
        if plan is None:
            plan = self._old.get(text)
            if plan is not None:
                self.put(text, plan)
        return plan

    def put(self, text: str, plan: Plan) -> None:
        if len(self._new) >= self._capacity:
            self._old, self._new = self._new, {}
        self._new[text] = plan

    def clear(self) -> None:
        self._new.clear()
        self._old.clear()
