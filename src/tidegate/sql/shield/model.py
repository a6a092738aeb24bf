"""What is hidden from one actor on one source. Says nothing of how."""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.errors import Code, GateError

Show = Literal["nothing", "hash", "partial"]


class Shield(msgspec.Struct, frozen=True):
    """The rules that bind one actor on one source.

    `masks` are (column, show), the column as `table.column` or `schema.table.column`; `filters`
    are (table, condition), the condition as SQL of the source's dialect. `only` lists the tables
    that the actor may use, as `table` or `schema.table`; None stands for all.
    """

    masks: tuple[tuple[str, Show], ...] = ()
    filters: tuple[tuple[str, str], ...] = ()
    only: tuple[str, ...] | None = None


def masked(reason: str, rule: str, hint: str | None = None) -> GateError:
    """A refusal for the shield's sake. `rule` names the mask, the filter or the way of looking."""
    return GateError(Code.POLICY_MASKED, reason, hint=hint, details={"rule": rule})
