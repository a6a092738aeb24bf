"""Reads the rows of an XML response by the names in the schema of a row.

A document of the registry that has `schema_driven_xml` tells the columns of a row and not where the
rows are. They are the elements at the one path whose children have the most of these names. An
element most of whose children are something else is an envelope and no row: an empty list gives no
row, although its envelope may repeat a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tidegate.cloud.model import Schema
from tidegate.cloud.schema import Schemas
from tidegate.errors import Code, TidegateError
from tidegate.xml_tree import Element, parse_xml

MOST_BYTES: Final = 64 * 1_048_576
_MEMBERS: Final = ("member", "item", "entry")
"""Names of list members in AWS's query and EC2 protocols."""


def read_xml_rows(root: Element, row: Schema, schemas: Schemas) -> Iterator[Any]:
    """The rows of a reply as objects of `row`'s properties."""
    names = schemas.properties(row)
    found: dict[tuple[str, ...], list[Element]] = {}
    scores: dict[tuple[str, ...], set[str]] = {}
    for path, element in _walk(root, ()):
        children = Counter(child.name for child in element.children)
        matched = children.keys() & names.keys()
        if 2 * sum(children[name] for name in matched) >= children.total() > 0:
            found.setdefault(path, []).append(element)
            scores.setdefault(path, set()).update(matched)
    if scores:
        best = max(scores, key=lambda path: (len(scores[path]), -len(path)))
        for element in found[best]:
            yield _object(element, names, schemas)


def read_xml_map(root: Element) -> dict[str, Any]:
    """The whole of a reply as the Go library mxj has it, without attributes: an element is text or
    an object, and elements of one name are a list."""
    return {root.name: _mapped(root)}


def _mapped(element: Element) -> Any:
    if not element.children:
        return element.text.strip()
    values: dict[str, Any] = {}
    for child in element.children:
        value = _mapped(child)
        if child.name not in values:
            values[child.name] = value
        elif isinstance(values[child.name], list):
            values[child.name].append(value)
        else:
            values[child.name] = [values[child.name], value]
    return values


def read_xml(content: bytes, host: str) -> Element:
    """Raises: TidegateError PROVIDER_REPLY: the reply of `host` is no XML."""

    def refuse(reason: str) -> TidegateError:
        return TidegateError(Code.PROVIDER_REPLY, f"The reply of {host} is no XML: {reason}.")

    return parse_xml(content, refuse, MOST_BYTES)


def _walk(element: Element, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Element]]:
    path = (*path, element.name)
    yield path, element
    for child in element.children:
        yield from _walk(child, path)


def _object(element: Element, properties: Mapping[str, Schema], schemas: Schemas) -> dict[str, Any]:
    """An element as an object: an absent property is null, one that repeats is a list."""
    values: dict[str, Any] = dict.fromkeys(properties)
    for name, schema in properties.items():
        children = [child for child in element.children if child.name == name]
        if not children:
            continue
        if schemas.kind(schema) == "array":
            values[name] = [
                _value(each, schemas.items(schema) or {}, schemas)
                for child in children
                for each in _listed(child)
            ]
        else:
            values[name] = _value(children[0], schema, schemas)
    return values


def _listed(element: Element) -> list[Element]:
    """The members of a list: those in `<member>`s, or those of one name, or the element itself."""
    names = {child.name for child in element.children}
    is_wrapped = len(names) == 1 and (names <= set(_MEMBERS) or len(element.children) > 1)
    if is_wrapped:
        return element.children
    return [element] if element.children or element.text.strip() else []


def _value(element: Element, schema: Schema, schemas: Schemas) -> Any:
    properties = schemas.properties(schema)
    if properties and element.children:
        return _object(element, properties, schemas)
    if element.children:
        return _plain(element)
    text = element.text.strip()
    kind = schemas.kind(schema)
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "integer" and text.removeprefix("-").isascii() and text.removeprefix("-").isdigit():
        return int(text) if len(text) < 40 else text
    if kind == "number":
        try:
            return float(text)
        except ValueError:
            return text
    return element.text if kind == "string" else text


def _plain(element: Element) -> Any:
    """An element that no schema describes: text, an object, or a list of its members."""
    if not element.children:
        return element.text.strip()
    names = [child.name for child in element.children]
    if len(set(names)) == 1 and (len(names) > 1 or names[0] in _MEMBERS):
        return [_plain(child) for child in element.children]
    return {child.name: _plain(child) for child in element.children}
