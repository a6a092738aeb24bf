"""PostgreSQL's arrays in the emulation: texts, and the functions that take them. Pure.

An array is JSON (`[1,2]`, its first element has the number 1), a vector is its numbers (`1 2`, from
0), and a constant of the client's is PostgreSQL's own text (`{1,2}`). A composite value is a JSON
object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

MOST = 10_000
"""Elements of an array that `generate_series` makes."""


def read_array(array: Any) -> tuple[list[Any], int]:
    """The elements, and the number of the first one. Raises: ValueError."""
    text = str(array).strip()
    if text.startswith("["):
        return list(json.loads(text)), 1
    if text.startswith("{"):
        return _constant(text), 1
    return [int(each) for each in text.split()], 0


def _constant(text: str) -> list[Any]:
    """The elements of `{a,"b c",NULL}`."""
    if not text.endswith("}") or "{" in text[1:]:
        raise ValueError("an array of one dimension is needed")
    found: list[Any] = []
    item, quoted, was_quoted = "", False, False
    escaped = False
    for letter in text[1:-1] + ",":
        if escaped:
            item, escaped = item + letter, False
        elif letter == "\\":
            escaped = True
        elif letter == '"':
            quoted, was_quoted = not quoted, True
        elif letter == "," and not quoted:
            word = item if was_quoted else item.strip()
            found.append(None if word.upper() == "NULL" and not was_quoted else word)
            item, was_quoted = "", False
        else:
            item += letter
    return [] if found == [""] and text[1:-1].strip() == "" else found


def _written(value: Any) -> Any:
    """An element as SQLite holds it: an array or object inside an array as JSON."""
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _as_json(array: Any) -> str | None:
    return None if array is None else json.dumps(read_array(array)[0])


def _steps(*arrays: Any) -> str:
    """0, 1, … up to the number of elements of the longest."""
    most = max((len(read_array(each)[0]) for each in arrays if each is not None), default=0)
    return json.dumps(list(range(most)))


def _at_step(array: Any, step: Any) -> Any:
    """The element that is `step` places after the first."""
    if array is None:
        return None
    elements, _ = read_array(array)
    return _written(elements[step]) if step < len(elements) else None


def _subscript(array: Any, step: Any) -> int | None:
    if array is None:
        return None
    elements, first = read_array(array)
    return step + first if step < len(elements) else None


def _item(array: Any, number: Any) -> Any:
    if array is None or number is None:
        return None
    elements, first = read_array(array)
    at = int(number) - first
    return _written(elements[at]) if 0 <= at < len(elements) else None


def _lower(array: Any, dimension: Any = 1) -> int | None:
    if array is None or dimension != 1:
        return None
    elements, first = read_array(array)
    return first if elements else None


def _upper(array: Any, dimension: Any = 1) -> int | None:
    if array is None or dimension != 1:
        return None
    elements, first = read_array(array)
    return first + len(elements) - 1 if elements else None


def _length(array: Any, dimension: Any = 1) -> int | None:
    if array is None or dimension != 1:
        return None
    return len(read_array(array)[0]) or None


def _cardinality(array: Any) -> int | None:
    return None if array is None else len(read_array(array)[0])


def _texts(array: Any) -> list[str]:
    return [str(each) for each in read_array(array)[0] if each is not None]


def _is_in(value: Any, array: Any) -> int | None:
    """`value = ANY (array)`."""
    return None if value is None or array is None else int(str(value) in _texts(array))


def _position(array: Any, value: Any, *_: Any) -> int | None:
    if array is None or value is None:
        return None
    elements, first = read_array(array)
    return next((at for at, each in enumerate(elements, first) if str(each) == str(value)), None)


def _contains(array: Any, other: Any) -> int | None:
    if array is None or other is None:
        return None
    return int(set(_texts(other)) <= set(_texts(array)))


def _overlaps(array: Any, other: Any) -> int | None:
    if array is None or other is None:
        return None
    return int(bool(set(_texts(other)) & set(_texts(array))))


def _joined(array: Any, between: Any, null: Any = None) -> str | None:
    if array is None or between is None:
        return None
    elements = [null if each is None else each for each in read_array(array)[0]]
    return str(between).join([str(each) for each in elements if each is not None])


def _series(first: Any, last: Any, by: Any = 1) -> str:
    if first is None or last is None:
        return "[]"
    numbers = range(int(first), int(last) + (1 if by > 0 else -1), int(by))
    if len(numbers) > MOST:
        raise ValueError(f"a series has at most {MOST} numbers")
    return json.dumps(list(numbers))


def _expanded(array: Any) -> str | None:
    """`information_schema._pg_expandarray`: each element as `x`, with its number `n` from 1."""
    if array is None:
        return None
    return json.dumps([{"x": each, "n": n} for n, each in enumerate(read_array(array)[0], 1)])


def _field(composite: Any, name: Any) -> Any:
    return None if composite is None else json.loads(composite).get(name)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "array_as_json": _as_json,
    "array_steps": _steps,
    "array_at_step": _at_step,
    "array_subscript": _subscript,
    "array_item": _item,
    "array_lower": _lower,
    "array_upper": _upper,
    "array_length": _length,
    "array_contains": _contains,
    "array_overlaps": _overlaps,
    "array_position": _position,
    "array_series": _series,
    "array_expanded": _expanded,
    "array_to_string": _joined,
    "cardinality": _cardinality,
    "composite_field": _field,
    "in_array": _is_in,
}
