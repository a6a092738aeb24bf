"""Arguments that are texts, read as what they mean: the listed schemas have one type for each, and
that of a value is a text, since clients and vendors of models convert no other schema.

A text is read where its meaning is certain: a number where an entity is asked for, EDN where a form
is, what a declared type says. A text that may be a text stays one; the worker reads it by the type
of the attribute. This comes before the request is judged, so what is judged is what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from tidegate.errors import TidegateError
from tidegate.products.datalog.language.json_values import TAGS, encode, keyword_name
from tidegate.products.datalog.language.options import whole_number
from tidegate.products.datalog.language.query import sections_of
from tidegate.products.datalog.language.reader import read
from tidegate.products.datalog.language.values import List, Symbol, Value, Vector
from tidegate.products.datalog.surface.errors import invalid

_INTEGER = re.compile(r"[-+]?[0-9]{1,19}")
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
_WHOLE_TYPES = frozenset({"long", "id", "int", "short", "byte"})
_REAL_TYPES = frozenset({"float", "double"})
_TRUTH = {"true": True, "false": False}


def read_texts(operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operation with the texts read that mean one thing. Raises: TidegateError
    for EDN that cannot be read, where EDN is wanted."""
    arguments = {name: _tagged(value) for name, value in given.items()}
    if operation in ("search_datoms", "count_datoms"):
        _check_means_something("v", arguments)
    for name, reads in _READERS.get(operation, {}).items():
        if name in arguments:
            arguments[name] = reads(arguments[name])
    if operation == "query" and "inputs" in arguments:
        arguments["inputs"] = _inputs(arguments.get("query"), arguments["inputs"])
    if operation == "datoms":
        _read_components(arguments)
    if operation.startswith("kv_"):
        _read_keys(operation, arguments)
    return arguments


def entity(given: Any) -> Any:
    """An entity: a text of digits is its number, one that begins with `[` a reference to it."""
    if not isinstance(given, str):
        return given
    text = given.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    return _form(text) if text.startswith("[") else given


def _read_components(arguments: dict[str, Any]) -> None:
    """The components of `datoms` as the index has them: an entity, an attribute, a value."""
    by_entity = keyword_name(str(arguments.get("index"))).startswith("e")
    whole, value = ("c1", "c3") if by_entity else ("c3", "c2")
    for name in ("c2", "c3"):
        before = "c2" if name == "c3" else "c1"
        if _is_nothing(arguments.get(name)) and (name != value or before not in arguments):
            arguments.pop(name, None)
    _check_means_something(value, arguments)
    if whole in arguments:
        arguments[whole] = entity(arguments[whole])


def _is_nothing(given: Any) -> bool:
    return isinstance(given, str) and given.lower() in ("", "null")


def _check_means_something(name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a value that is a fact's text and also how some clients write that there is none: one
    answer would be facts that were not asked for, the other would hide those that were."""
    given = arguments.get(name)
    if _is_nothing(given):
        problem = (
            f'{name} is the text "{given}", which may mean that no value is given. Leave {name} out'
            f' for facts of any value, or write {{"~str": "{given}"}} for this text.'
        )
        raise invalid(name, problem)


def _entities(given: Any) -> Any:
    if isinstance(given, list):
        return [entity(each) for each in cast("list[Any]", given)]
    return given


def _forms(given: Any) -> Any:
    """Transaction data: each a map or a vector, as EDN if it is a text."""
    if not isinstance(given, list):
        return given
    return [_form(each) if isinstance(each, str) else each for each in cast("list[Any]", given)]


def _form(text: str) -> Any:
    """The JSON value of a text of JSON or EDN."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return encode(read(text), exact=True)


def _numbers(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    return [
        float(each) if isinstance(each, str) and _NUMBER.fullmatch(each) else each
        for each in cast("list[Any]", given)
    ]


def _tagged(given: Any) -> Any:
    """A text of JSON with a tag, as `{"~i64": "5"}`: no other text looks so."""
    if not isinstance(given, str) or not given.startswith('{"~'):
        return given
    try:
        found = msgspec.json.decode(given)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return given
    if isinstance(found, dict) and len(cast("dict[str, Any]", found)) == 1 and found.keys() <= TAGS:
        return cast("dict[str, Any]", found)
    return given


def _inputs(query: Any, given: Any) -> Any:
    """Inputs for collections, as JSON or EDN if they are texts."""
    if not isinstance(given, list) or not isinstance(query, str):
        return cast("Any", given)
    try:
        bindings: Sequence[Value] = sections_of(read(query)).get("in", (Symbol("$"),))[1:]
    except TidegateError:
        return cast("list[Any]", given)  # the judge says what is wrong with it
    return [
        _form(value)
        if isinstance(value, str)
        and at < len(bindings)
        and isinstance(bindings[at], (Vector, List))
        and value.lstrip().startswith("[")
        else _tagged(value)
        for at, value in enumerate(cast("list[Any]", given))
    ]


def _read_keys(operation: str, arguments: dict[str, Any]) -> None:
    """Keys and values of a store, by the types that the call gives."""
    key, value = arguments.get("keyType"), arguments.get("valueType")
    if "key" in arguments:
        arguments["key"] = _by_type(arguments["key"], key)
    wanted = arguments.get("keyRange")
    if isinstance(wanted, list):
        kind, *ends = cast("list[Any]", wanted) or [None]
        arguments["keyRange"] = [kind, *[_by_type(_tagged(each), key) for each in ends]]
    entries = arguments.get("txs")
    if not isinstance(entries, list):
        return
    named = "dbi" in arguments
    found: list[Any] = []
    for entry in _forms(cast("list[Any]", entries)):
        if isinstance(entry, list):
            parts = [_tagged(each) for each in cast("list[Any]", entry)]
            at = 1 if named else 2
            for place, kind in ((at, key), (at + 1, value)):
                if place < len(parts):
                    parts[place] = _by_type(parts[place], kind)
            entry = parts
        found.append(entry)
    arguments["txs"] = found


def _by_type(given: Any, kind: Any) -> Any:
    if not isinstance(given, str) or not isinstance(kind, str):
        return given
    name = keyword_name(kind)
    if name in _WHOLE_TYPES and _INTEGER.fullmatch(given):
        return int(given)
    if name in _REAL_TYPES and _NUMBER.fullmatch(given):
        return float(given)
    return _TRUTH.get(given, given) if name == "boolean" else given


def without_nulls(given: Any) -> Any:
    """Options without those that are not given."""
    if not isinstance(given, dict):
        return given
    fields = cast("dict[str, Any]", given)
    return {name: value for name, value in fields.items() if value is not None}


_OPTIONS = {"opts": without_nulls}
_READERS: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "pull": {"eid": entity},
    "pull_many": {"eids": _entities},
    "entity": {"eid": entity},
    "datoms": {"limit": whole_number, "offset": whole_number},
    "search_datoms": {"e": entity, "limit": whole_number, "offset": whole_number},
    "count_datoms": {"e": entity},
    "transact": {"txData": _forms},
    "kv_range": {"limit": whole_number, "offset": whole_number},
    "add_vector": {"vectorData": _numbers},
    "vector_search": {"queryVector": _numbers, **_OPTIONS},
    "fulltext_datoms": _OPTIONS,
    "search_documents": _OPTIONS,
}
