"""Which options of Datalevin a caller may give. All others are refused.

`:temp?` deletes a directory when it is closed, flags turn off what keeps data whole, WAL, snapshot
and spill options name paths, embedding providers send data away, and functions are code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.model.datalog import DatalogTarget, TargetKind

_ALLOWED: dict[TargetKind, frozenset[str]] = {
    "database": frozenset(
        {":auto-entity-time?", ":closed-schema?", ":validate-data?", ":search-opts"}
    ),
    "kv": frozenset({":mapsize", ":max-dbs", ":max-readers"}),
    "search_index": frozenset({":domain", ":include-text?", ":index-position?", ":search-opts"}),
    "vector_index": frozenset(
        {
            ":connectivity",
            ":dimensions",
            ":domain",
            ":expansion-add",
            ":expansion-search",
            ":metric-type",
            ":quantization",
        }
    ),
}

_CLIENT = frozenset({":pool-size", ":time-out"})

_DOMAIN = re.compile(r"[\w.-]{1,100}")


def check_target(target: DatalogTarget, *, creates: bool) -> DatalogTarget:
    """The target with its options' names in one spelling.

    Raises: TidegateError ARGUMENT_INVALID for an option that is not allowed, POLICY_READ_ONLY for
    options that would change what is only opened.
    """
    options = _named(target.options, _ALLOWED[target.kind], "opts")
    client = _named(target.client, _CLIENT, "clientOpts")
    if options and not creates and target.kind in ("database", "kv"):
        raise TidegateError(
            Code.POLICY_READ_ONLY,
            "Options of a database or store are kept in it, so opening it with them is a change.",
            hint="Open it without options.",
            details={"field": "opts"},
        )
    domain = options.get(":domain", "datalevin")
    if not isinstance(domain, str) or _DOMAIN.fullmatch(domain) is None:
        raise _refused("opts", "`:domain` must be a name of letters, digits, `.`, `_` and `-`.")
    if target.kind == "vector_index":
        dimensions = options.get(":dimensions")
        if not isinstance(dimensions, int) or not 0 < dimensions <= 65_536:
            raise _refused("opts", "`:dimensions` must be a whole number from 1 to 65536.")
    return DatalogTarget(target.kind, options, client)


def _named(given: Mapping[str, Any], allowed: frozenset[str], field: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for name, value in given.items():
        key = name if name.startswith(":") else f":{name}"
        if key not in allowed:
            known = ", ".join(sorted(allowed))
            raise _refused(
                field, f"The option `{key[:60]}` is not allowed here; these are: {known}."
            )
        if isinstance(value, dict) and "~edn" in value:
            raise _refused(field, f"The option `{key}` takes a plain value.")
        named[key] = value
    return named


def _refused(field: str, reason: str) -> TidegateError:
    return TidegateError(Code.ARGUMENT_INVALID, reason, details={"field": field})
