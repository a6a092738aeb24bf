"""Judges a pull pattern: which attributes it reads. Source: `datalevin.pull-parser` 1.2.8."""

from __future__ import annotations

from tidegate.products.datalog.language.functions import TRANSFORMS
from tidegate.products.datalog.language.reading import (
    ReadSet,
    function_refused,
    name_of,
    unknown_form,
)
from tidegate.products.datalog.language.values import Keyword, List, Map, Symbol, Value, Vector

_WILDCARDS = (Symbol("*"), "*", Keyword("*"))
_LEGACY = ("limit", "default")


def judge_pull(pattern: Value, reading: ReadSet) -> None:
    """Note what a pattern reads. Raises: TidegateError DATALOG_UNKNOWN, DATALOG_FUNCTION."""
    if not isinstance(pattern, (Vector, List)):
        raise unknown_form("A pull pattern is a vector")
    for each in pattern.items:
        if each in _WILDCARDS:
            reading.everything = True
        elif isinstance(each, Map):
            for attribute, inner in each.pairs:
                _attribute(attribute, reading)
                _inner(inner, reading)
        else:
            reading.followed.add(_attribute(each, reading))


def _inner(pattern: Value, reading: ReadSet) -> None:
    """A pattern for a reference, or how deep the pattern itself repeats."""
    if pattern in (Symbol("..."), "..."):
        return
    if isinstance(pattern, int) and not isinstance(pattern, bool):
        return
    judge_pull(pattern, reading)


def _attribute(given: Value, reading: ReadSet) -> str:
    """Note an attribute with its options, and return its name."""
    if isinstance(given, Keyword):
        reading.attribute(given)
        return name_of(given.name)
    if isinstance(given, str):
        return _attribute(Keyword(given.removeprefix(":")), reading)
    if not isinstance(given, (Vector, List)) or not given.items:
        raise unknown_form("A pull pattern holds attributes, maps and *")
    head, rest = given.items[0], given.items[1:]
    if (isinstance(head, Symbol) and head.name in _LEGACY) or head in _LEGACY:
        if len(rest) != 2:
            raise unknown_form("limit and default take an attribute and a value")
        reading.data(rest[1])
        return _attribute(rest[0], reading)
    if len(rest) % 2:
        raise unknown_form("An attribute's options are pairs")
    for key, value in zip(rest[::2], rest[1::2], strict=True):
        _option(key, value, reading)
    return _attribute(head, reading)


def _option(key: Value, value: Value, reading: ReadSet) -> None:
    match key:
        case Keyword("xform"):
            if not isinstance(value, Symbol) or value.name not in TRANSFORMS:
                named = value.name if isinstance(value, Symbol) else ":xform"
                raise function_refused(named, f":xform takes {', '.join(sorted(TRANSFORMS))}")
            reading.functions.add(value.name)
        case Keyword("as" | "default"):
            if isinstance(value, Symbol):
                raise function_refused(value.name, "values hold no symbols")
            if not isinstance(value, Keyword):  # a name for the result is no attribute
                reading.data(value)
        case Keyword("limit"):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise unknown_form(":limit takes a number or nil")
        case _:
            raise unknown_form("An attribute's options are :as, :limit, :default and :xform")
