"""The options that tools take, by allow-list: all others are refused.

Left out on purpose: `:temp?` deletes the directory when it is closed; `:flags`, `:inmemory?`, WAL,
snapshot and spill options change how data are kept or write elsewhere; embedding providers send
text to other services; filters and analyzers are functions. Source: Datalevin 1.2.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tidegate.datalog.json_values import decode
from tidegate.datalog.reading import Reading
from tidegate.errors import Code, TidegateError

_SEARCH = frozenset(
    {
        "display", "top", "limit", "offset", "domains", "proximity-expansion", "proximity-max-dist",
    }
)  # fmt: skip
_VECTOR_INDEX = frozenset(
    {
        "dimensions", "metric-type", "quantization", "connectivity", "expansion-add",
        "expansion-search", "domain", "search-opts",
    }
)  # fmt: skip
_SEARCH_INDEX = frozenset({"domain", "index-position?", "include-text?", "search-opts"})

ALLOWED: Mapping[str, frozenset[str]] = {
    "open_database": frozenset(
        {
            "auto-entity-time?", "closed-schema?", "validate-data?", "cache-limit", "search-opts",
            "vector-opts", "search-domains", "vector-domains",
        }
    ),
    "open_kv": frozenset({"mapsize", "max-dbs", "max-readers"}),
    "open_search_index": _SEARCH_INDEX,
    "open_vector_index": _VECTOR_INDEX,
    "search_documents": _SEARCH,
    "fulltext_datoms": _SEARCH,
    "vector_search": frozenset({"display", "top"}),
    "clientOpts": frozenset({"pool-size", "time-out", "ha-write-retry-timeout-ms"}),
}  # fmt: skip
_NESTED = _SEARCH | _SEARCH_INDEX | _VECTOR_INDEX


def check_options(operation: str, options: Any) -> None:
    """Check the options of an operation, as JSON values; names with or without the colon.

    Raises: TidegateError ARGUMENT_INVALID for an option that is not on the list or holds a
    function.
    """
    if options is None:
        return
    if not isinstance(options, Mapping):
        raise _refused("Options are an object")
    fields = cast("Mapping[str, Any]", options)
    for name, value in fields.items():
        plain = name.removeprefix(":")
        if plain not in ALLOWED[operation]:
            allowed = ", ".join(f":{each}" for each in sorted(ALLOWED[operation]))
            raise _refused(f"The option {name[:40]!r} is not allowed; {operation} takes {allowed}")
        if plain.endswith(("-opts", "-domains")):
            _check_nested(plain, value)
        Reading().data(decode(value))


def _check_nested(option: str, value: Any, depth: int = 0) -> None:
    """The options within an option: those of indexes, by the name of the domain or directly."""
    if not isinstance(value, Mapping):
        raise _refused(f"The option :{option} is an object")
    for name, inner in cast("Mapping[str, Any]", value).items():
        if isinstance(inner, Mapping) and option.endswith("-domains") and depth == 0:
            _check_nested(option, inner, 1)
        elif name.removeprefix(":") not in _NESTED:
            raise _refused(f"The option {name[:40]!r} of :{option} is not allowed")


def _refused(problem: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        problem,
        details={"parameter": "opts", "problem": "value", "required": False},
    )
