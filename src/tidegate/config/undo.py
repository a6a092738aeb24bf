"""The settings of changes that are kept so that their rows can be put back."""

from __future__ import annotations

from typing import Annotated

import msgspec


class UndoSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long and how large changes are kept, on the sources that have `undo` on.

    Each change is encrypted with a key of its own; after `keep_days` the key and the rows are
    removed. A change whose rows take more than `max_bytes` is not kept. All together take at most
    `total_bytes` of the state: the oldest go first.
    """

    keep_days: Annotated[float, msgspec.Meta(gt=0)] = 7.0
    max_bytes: Annotated[int, msgspec.Meta(ge=1_024, le=268_435_456)] = 16_777_216
    total_bytes: Annotated[int, msgspec.Meta(ge=1_024)] = 1_073_741_824
