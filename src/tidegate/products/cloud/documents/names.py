"""Names of columns and parameters in snake case, and back.

The rule is that of botocore's `xform_name`: the names that AWS's own Python library shows.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_SPECIAL: Final = re.compile(r"[A-Z]{2,}s$")
_FIRST: Final = re.compile(r"(.)([A-Z][a-z]+)")
_SECOND: Final = re.compile(r"([a-z0-9])([A-Z])")


def folded(name: str) -> str:
    """A name as SQL compares it: case and the choice of `-` or `_` do not count."""
    return name.replace("-", "_").casefold()


@lru_cache(65_536)
def snake_case(name: str) -> str:
    """`VPCId` is `vpc_id`, `GroupARNs` is `group_arns`, `X-Trace` is `x_trace`. A name that has `_`
    stays."""
    if "_" in name:
        return name
    if "-" in name:
        return "_".join(map(snake_case, name.split("-")))
    special = _SPECIAL.search(name)
    if special is not None:
        name = f"{name[: special.start()]}_{special.group().lower()}"
    return _SECOND.sub(r"\1_\2", _FIRST.sub(r"\1_\2", name)).lower()
