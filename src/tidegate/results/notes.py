"""What a result says in addition to its rows, briefly."""

from __future__ import annotations

from collections.abc import Sequence

_MOST = 4


def masking_note(masked: Sequence[tuple[str, str]]) -> str:
    """That masked columns, as (table, column), were read: not their values, anywhere."""
    names = [f"{table}.{column}" for table, column in masked[:_MOST]]
    if len(masked) > _MOST:
        names.append(f"{len(masked) - _MOST} more")
    verb = "is" if len(masked) == 1 else "are"
    return f"{', '.join(names)} {verb} masked: conditions and counts use the mask, not the value"
