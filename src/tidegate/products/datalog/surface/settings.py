"""The settings of the surface `datalog`: the section `[surface.datalog]`."""

from __future__ import annotations

from typing import Annotated

import msgspec

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class DatalogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is particular to the surface `datalog`. The directories and hosts that a caller may open
    are in `temporary_sources`.

    A list in a result has at most `max_items` items, and a whole reply at most `max_reply_bytes`
    bytes; what is cut is said in the reply. Over HTTP an id ends when it lies unused for `idle_s`
    seconds. A session has at most `ids` of them.
    """

    max_items: Count = 200
    max_reply_bytes: Annotated[int, msgspec.Meta(ge=1024)] = 524_288
    idle_s: Seconds = 3600.0
    ids: Count = 256
