"""The rules that hide parts of one source from one actor. Frozen; imports nothing of ours."""

from __future__ import annotations

from typing import Literal

import msgspec

Show = Literal["nothing", "hash", "partial"]


class DataRules(msgspec.Struct, frozen=True):
    """The rules that bind one actor on one source.

    `masks` are (column, show), the column as `table.column` or `schema.table.column`. `filters`
    are (table, condition), the condition in the source's language. `only` lists the tables that
    the actor may use, as `table` or `schema.table`; None means all tables.
    """

    masks: tuple[tuple[str, Show], ...] = ()
    filters: tuple[tuple[str, str], ...] = ()
    only: tuple[str, ...] | None = None
