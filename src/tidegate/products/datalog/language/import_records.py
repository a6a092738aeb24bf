"""Reads records of JSON lines, CSV and EDN as facts, and infers the schema of their attributes.

A record is an entity. A member's name is its attribute, in a namespace unless it has one; a list is
several values of one attribute; what is null or empty is left out. Pure.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.language.json_values import encode
from tidegate.products.datalog.language.reader import read
from tidegate.products.datalog.language.values import Map, Vector

Format = Literal["jsonl", "csv", "edn"]

Fact = dict[str, Any]
"""Values of one entity by attribute, in Datalevin's JSON."""

MOST_BYTES = 256 * 1024 * 1024
"""The largest file that is read."""

_NAME = re.compile(r"[^\s\"'()\[\]{},;@^`~\\/:]+(/[^\s\"'()\[\]{},;@^`~\\/:]+)?")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_FLOAT = re.compile(r"-?(0|[1-9]\d*)\.\d+([eE][-+]?\d+)?")


class Attribute(NamedTuple):
    """What is inferred of an attribute. `type` is Datalevin's name of a type, empty where the
    values have several; `entities` says how many have it, `dimensions` how many numbers a vector
    has."""

    name: str
    type: str
    many: bool
    entities: int
    unique: bool
    fulltext: bool = False
    dimensions: int = 0


def records_of(text: str, format: Format, namespace: str) -> list[Fact]:
    """The entities of a file. Raises: TidegateError ARGUMENT_INVALID that names the line;
    DATALOG_* for EDN."""
    if format == "edn":
        return list(_edn(text))
    rows = _json_lines(text) if format == "jsonl" else _csv(text)
    return [_fact(number, row, namespace) for number, row in rows]


def as_vectors(records: Iterable[Fact], attribute: str) -> int:
    """Make the values of an attribute vectors of numbers: each is a list, or a text that is one in
    JSON. Returns how many numbers they have. Raises: TidegateError ARGUMENT_INVALID."""
    dimensions = 0
    for number, record in enumerate(records, 1):
        if attribute not in record:
            continue
        vector = _vector(record[attribute])
        if vector is None or (dimensions and len(vector) != dimensions):
            raise _invalid(
                f"The record {number} has no list of {dimensions or 'some'} numbers in"
                f" `{attribute}`."
            )
        dimensions = len(vector)
        record[attribute] = vector
    return dimensions


def _vector(value: Any) -> list[float] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    numbers = cast("list[Any]", value) if isinstance(value, list) else []
    if not numbers or not all(type(each) in (int, float) for each in numbers):
        return None
    return [float(each) for each in numbers]


def infer(
    records: Iterable[Fact],
    key: str | None = None,
    fulltext: Sequence[str] = (),
    vectors: Mapping[str, int] | None = None,
) -> list[Attribute]:
    """The attributes of the records in the order of their first use. `key` names the one by which
    an entity is known again, `fulltext` those whose words are indexed, `vectors` those of vectors
    with their dimensions. Raises: TidegateError ARGUMENT_INVALID if no record has one of them."""
    vectors = vectors or {}
    types: dict[str, set[str]] = {}
    many: set[str] = set()
    counts: dict[str, int] = {}
    for record in records:
        for name, value in record.items():
            if name == ":db/id":
                continue
            several = isinstance(value, list) and name not in vectors
            values: list[Any] = cast("list[Any]", value) if several else [value]
            if several:
                many.add(name)
            counts[name] = counts.get(name, 0) + 1
            types.setdefault(name, set()).update([type_of(each) for each in values])
    for name in (*([] if key is None else [key]), *fulltext, *vectors):
        if name not in types:
            raise _invalid(f"No record has the attribute `{name}`.")
    for name in fulltext:
        if types[name] != {"string"}:
            raise _invalid(f"Not all values of `{name}` are texts.")
    return [
        Attribute(
            name,
            "vec" if name in vectors else _joined(found),
            name in many,
            counts[name],
            name == key,
            name in fulltext,
            vectors.get(name, 0),
        )
        for name, found in types.items()
    ]


def vector_options(attributes: Iterable[Attribute]) -> dict[str, Any]:
    """The options that a database with these attributes is opened with: the dimensions of the
    index of each attribute of vectors."""
    domains = {
        each.name.removeprefix(":").replace("/", "_"): {":dimensions": each.dimensions}
        for each in attributes
        if each.dimensions
    }
    return {":vector-domains": domains} if domains else {}


def schema_of(attributes: Iterable[Attribute]) -> dict[str, dict[str, Any]]:
    """The schema that makes the attributes."""
    schema: dict[str, dict[str, Any]] = {}
    for attribute in attributes:
        properties: dict[str, Any] = {}
        if attribute.type:
            properties[":db/valueType"] = f":db.type/{attribute.type}"
        if attribute.many:
            properties[":db/cardinality"] = ":db.cardinality/many"
        if attribute.unique:
            properties[":db/unique"] = ":db.unique/identity"
        if attribute.fulltext:
            properties[":db/fulltext"] = True
            properties[":db.fulltext/autoDomain"] = True  # it can be searched by itself
        schema[attribute.name] = properties
    return schema


def type_of(value: Any) -> str:
    """Datalevin's name of the type of a value; empty if there is none."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "long"
        case float():
            return "double"
        case str():
            return "keyword" if value.startswith(":") else "string"
        case dict():
            (tag,) = (
                cast("dict[str, Any]", value) if len(cast("dict[str, Any]", value)) == 1 else ("",)
            )
            return _TAGS.get(tag, "")
        case _:
            return ""


_TAGS = {
    "~str": "string",
    "~i64": "long",
    "~date": "instant",
    "~uuid": "uuid",
    "~bytes": "bytes",
    "~bigdec": "bigdec",
    "~bigint": "bigint",
}


def _joined(types: set[str]) -> str:
    if types == {"long", "double"}:
        return "double"
    return types.pop() if len(types) == 1 else ""


def _fact(line: int, row: dict[str, Any], namespace: str) -> Fact:
    fact: Fact = {}
    for name, value in row.items():
        attribute = _attribute(line, name, namespace)
        if isinstance(value, list):
            listed = [
                _value(line, name, each) for each in cast("list[Any]", value) if each is not None
            ]
            if listed:
                fact[attribute] = listed
        elif value is not None:
            fact[attribute] = _value(line, name, value)
    return fact


def _attribute(line: int, name: str, namespace: str) -> str:
    plain = name.strip().removeprefix(":").replace(" ", "-")
    if _NAME.fullmatch(plain) is None:
        raise _invalid(f"Line {line}: {name[:60]!r} is no name of an attribute.")
    return f":{plain}" if "/" in plain or not namespace else f":{namespace}/{plain}"


def _value(line: int, name: str, value: Any) -> Any:
    if isinstance(value, (dict, list)):
        raise _invalid(f"Line {line}: {name[:60]!r} holds an object or a list of lists.")
    if isinstance(value, str):
        if _INSTANT.fullmatch(value):
            return {"~date": value}
        return {"~str": value} if value.startswith(":") else value
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return {"~bigint": str(value)}
    return value


def _json_lines(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise _invalid(f"Line {number} is no JSON: {error}.") from None
        if not isinstance(row, dict):
            raise _invalid(f"Line {number} is no JSON object.")
        yield number, cast("dict[str, Any]", row)


def _csv(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        names = next(reader, None)
        if not names:
            raise _invalid("The file has no line of names.")
        if len(set(names)) < len(names):
            raise _invalid("Line 1 has a name twice.")
        for row in reader:
            if not row:
                continue
            if len(row) != len(names):
                raise _invalid(
                    f"Line {reader.line_num} has {len(row)} fields, and line 1 has {len(names)}."
                )
            yield reader.line_num, dict(zip(names, map(_cell, row), strict=True))
    except csv.Error as error:
        raise _invalid(f"Line {reader.line_num} is no CSV: {error}.") from None


def _cell(text: str) -> Any:
    """What a field of CSV holds: nothing, a number, true, false or a text."""
    if text == "":
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return {"true": True, "false": False}.get(text, text)


def _edn(text: str) -> Iterator[Fact]:
    """Maps one after the other, or one vector of maps."""
    try:
        value = read(f"[{text}\n]", most_characters=len(text) + 3)
    except TidegateError as error:
        raise _invalid(f"The EDN of the file cannot be read: {error.message}.") from error
    items = value.items if isinstance(value, Vector) else ()
    if len(items) == 1 and isinstance(items[0], Vector):
        items = items[0].items
    for number, item in enumerate(items, 1):
        fact = encode(item) if isinstance(item, Map) else None
        members = cast("dict[str, Any]", fact if isinstance(fact, dict) else {"": None})
        if not all(name.startswith(":") for name in members):
            raise _invalid(f"The value {number} of the file is no map with keywords as names.")
        yield {
            name: each["~set"] if isinstance(each, dict) and "~set" in each else each
            for name, each in members.items()
        }


def _invalid(problem: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID, problem, hint="Correct the file and import it again."
    )
