"""The options that a caller may give, by allow-list; all others are refused. Values have bounds.

This is the one list: the judge checks a request by it, and the engine again before it sends it.
Left out on purpose: `:temp?` deletes the directory when it is closed; `:flags`, `:inmemory?`, WAL,
snapshot and spill options change how data are kept or write elsewhere; embedding providers send
text to other services; filters and analyzers are functions. Source: Datalevin 1.2.8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from tidegate.errors import Code, TidegateError

Check = Callable[[Any], Any]
"""The value of an option as the engine takes it, from a JSON value. Raises: ValueError."""

MOST_DIMENSIONS = 65_536
MOST_NAMES = 64
"""Domains in one option."""

DOMAIN = re.compile(r"[\w.-]{1,100}")
"""The name of an index in a store; for vectors it is a part of the name of a file."""


def whole_number(given: Any) -> Any:
    """A number as it is meant: a text of digits, and a fraction without one, is a whole number;
    all else stays as it is."""
    if isinstance(given, str) and re.fullmatch(r"[0-9]{1,12}(\.0)?", given):
        return int(given.removesuffix(".0"))
    return int(given) if isinstance(given, float) and given.is_integer() else given


def _count(least: int, most: int) -> Check:
    def check(value: Any) -> int:
        value = whole_number(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value

    return check


def _one_of(*names: str) -> Check:
    def check(value: Any) -> str:
        plain = value.removeprefix(":") if isinstance(value, str) else ""
        if plain not in names:
            raise ValueError(f"one of {', '.join(f':{name}' for name in names)}")
        return f":{plain}"

    return check


def _flag(value: Any) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower())
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _domain(value: Any) -> str:
    if not isinstance(value, str) or DOMAIN.fullmatch(value) is None:
        raise ValueError("a name of letters, digits, `.`, `_` and `-`")
    return value


def _domains(value: Any) -> list[str]:
    if not isinstance(value, list) or len(cast("list[Any]", value)) > MOST_NAMES:
        raise ValueError(f"an array of at most {MOST_NAMES} names")
    return [_domain(each) for each in cast("list[Any]", value)]


def _inside(allowed: Mapping[str, Check]) -> Check:
    """An option that is itself a map of options."""

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ValueError("an object")
        found: dict[str, Any] = {}
        for name, each in cast("Mapping[str, Any]", value).items():
            plain = name.removeprefix(":")
            if plain not in allowed:
                raise ValueError(f"an object of {', '.join(f':{known}' for known in allowed)}")
            found[f":{plain}"] = allowed[plain](each)
        return found

    return check


def _by_domain(allowed: Mapping[str, Check]) -> Check:
    """Options by the name of a domain."""
    inside = _inside(allowed)

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping) or len(cast("Mapping[str, Any]", value)) > MOST_NAMES:
            raise ValueError(f"an object of at most {MOST_NAMES} domains")
        fields = cast("Mapping[str, Any]", value)
        return {_domain(name): inside(each) for name, each in fields.items()}

    return check


_SEARCH: Mapping[str, Check] = {
    "display": _one_of("refs", "refs+scores", "texts", "offsets", "texts+offsets"),
    "top": _count(1, 1_000_000),
    "limit": _count(0, 1_000_000),
    "offset": _count(0, 1_000_000),
    "domains": _domains,
    "proximity-expansion": _count(1, 100),
    "proximity-max-dist": _count(1, 10_000),
}
_VECTOR_SEARCH: Mapping[str, Check] = {
    "display": _one_of("refs", "refs+dists"),
    "top": _count(1, 100_000),
    "domains": _domains,
}
_SEARCH_INDEX: Mapping[str, Check] = {
    "domain": _domain,
    "index-position?": _flag,
    "include-text?": _flag,
    "search-opts": _inside(_SEARCH),
}
_VECTOR_INDEX: Mapping[str, Check] = {
    "dimensions": _count(1, MOST_DIMENSIONS),
    "metric-type": _one_of(
        "euclidean", "cosine", "dot-product", "haversine", "divergence", "pearson", "jaccard",
        "hamming", "tanimoto", "sorensen",
    ),
    "quantization": _one_of("double", "float", "float16", "int8", "byte"),
    "connectivity": _count(1, 512),
    "expansion-add": _count(1, 10_000),
    "expansion-search": _count(1, 10_000),
    "domain": _domain,
    "search-opts": _inside(_VECTOR_SEARCH),
}  # fmt: skip

ALLOWED: Mapping[str, Mapping[str, Check]] = {
    "open_database": {
        "auto-entity-time?": _flag,
        "closed-schema?": _flag,
        "validate-data?": _flag,
        "cache-limit": _count(0, 100_000),
        "search-opts": _inside(_SEARCH_INDEX),
        "vector-opts": _inside(_VECTOR_INDEX),
        "search-domains": _by_domain(_SEARCH_INDEX),
        "vector-domains": _by_domain(_VECTOR_INDEX),
    },
    "open_kv": {
        "mapsize": _count(1, 1_048_576),
        "max-dbs": _count(1, 10_000),
        "max-readers": _count(1, 10_000),
    },
    "open_search_index": _SEARCH_INDEX,
    "open_vector_index": _VECTOR_INDEX,
    "search_documents": _SEARCH,
    "fulltext_datoms": _SEARCH,
    "vector_search": _VECTOR_SEARCH,
    "clientOpts": {
        "pool-size": _count(1, 64),
        "time-out": _count(1, 600_000),
        "ha-write-retry-timeout-ms": _count(0, 600_000),
    },
}
"""Operations, by the name of the tool, and what each option of theirs takes."""


def check_options(operation: str, options: Any) -> dict[str, Any]:
    """The options of an operation, as JSON values, with names that begin with a colon.

    Raises: TidegateError ARGUMENT_INVALID for an option that is not on the list or has a value
    that it does not take.
    """
    if options is None:
        return {}
    field = "clientOpts" if operation == "clientOpts" else "opts"
    if not isinstance(options, Mapping):
        raise _refused(field, f"{field} must be an object.")
    allowed = ALLOWED[operation]
    named: dict[str, Any] = {}
    for name, value in cast("Mapping[str, Any]", options).items():
        plain = name.removeprefix(":")
        if plain not in allowed:
            known = ", ".join(f":{each}" for each in sorted(allowed))
            raise _refused(
                field, f"The option {name[:40]!r} is not allowed; {operation} takes {known}."
            )
        try:
            named[f":{plain}"] = allowed[plain](value)
        except ValueError as error:
            raise _refused(field, f"The option :{plain} of {operation} is {error}.") from None
    if operation == "open_vector_index" and ":dimensions" not in named:
        raise _refused(field, f"open_vector_index needs :dimensions, from 1 to {MOST_DIMENSIONS}.")
    return named


def _refused(field: str, problem: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        problem,
        details={"field": field, "parameter": field, "problem": "value", "required": False},
    )
