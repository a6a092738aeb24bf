"""Reads the rows of an XML response.

A document may say where they are, by an XPath. One that has `schema_driven_xml` tells the columns
of a row alone: its rows are the elements at the one path whose children have the most of these
names. An element most of whose children are something else is an envelope and no row: an empty list
gives no row, although its envelope may repeat a name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import Schema
from tidegate.products.cloud.documents.schema import DESCENDANTS, XML_MEMBERS, Schemas, XPath
from tidegate.xml_tree import Element, parse_xml

MOST_BYTES: Final = 64 * 1_048_576
_ANY: Final[Schema] = {}
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?", re.ASCII)


def read_xml_rows(root: Element, row: Schema, schemas: Schemas) -> Iterator[Any]:
    """The rows of a reply as objects of `row`'s properties."""
    reader = _Reader(schemas)
    names = reader.shape(row).fields
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
            yield reader.object(element, row)


def read_xml_at(root: Element, path: XPath, schema: Schema, schemas: Schemas) -> Iterator[Any]:
    """The rows of a reply of `schema` whose rows are the elements at `path`.

    A list of which the path names the list alone gives its members.
    """
    shown = schemas.at_xpath(schema, path)
    member = schemas.items(shown)
    row = shown if member is None else member
    reader = _Reader(schemas)
    names = reader.shape(row).fields
    for element in elements_at(root, path):
        is_row = member is None or any(child.name in names for child in element.children)
        for each in [element] if is_row else reader.members(element, row):
            yield reader.row(each, row)


def elements_at(root: Element, path: tuple[str, ...]) -> Iterator[Element]:
    """The elements at the steps of an XPath, in the document's order."""
    document = Element("")
    document.children.append(root)
    found = [document]
    for step in path:
        if step == DESCENDANTS:
            found = [inner for each in found for _, inner in _walk(each, ())]
        else:
            inner = [child for each in found for child in each.children]
            found = [child for child in inner if step in ("*", child.name)]
    yield from found


def read_xml_map(root: Element) -> dict[str, Any]:
    """The whole of a reply as the Go library mxj has it, without attributes: an element is a value
    or an object, and elements of one name are a list. A text that is just how a number or boolean
    is written is one."""
    return {root.name: _mapped(root)}


def _mapped(element: Element) -> Any:
    if not element.children:
        return _guessed(element.text.strip())
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


def _guessed(text: str) -> Any:
    """`007` and `1.50` stay what they are: as numbers they would be written otherwise."""
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        number = float(text) if "." in text else int(text)
        return number if str(number) == text else text
    return text


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


class _Shape(NamedTuple):
    """What a schema says of an element: `fields` are an object's properties by the names of their
    elements, with their own; `members` the names that elements of a list may have around each."""

    schema: Schema
    kind: str
    fields: Mapping[str, tuple[str, Schema]]
    item: Schema
    members: frozenset[str]


class _Reader:
    """Reads elements as their schemas have them, each of which is read once."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._shapes: dict[int, _Shape] = {}

    def shape(self, schema: Schema) -> _Shape:
        known = self._shapes.get(id(schema))
        if known is None:
            look = self._schemas
            known = self._shapes[id(schema)] = _Shape(
                schema,
                look.kind(schema),
                look.xml_properties(schema),
                look.items(schema) or _ANY,
                frozenset({look.xml_name(schema), *XML_MEMBERS}),
            )
        return known

    def row(self, element: Element, schema: Schema) -> Any:
        fields = self.shape(schema).fields
        if element.children:
            return self.object(element, schema) if fields else _plain(element)
        if not fields:
            return self.value(element, schema)
        # An element with nothing but text, such as S3's `<LocationConstraint>`, is its own field.
        if element.name not in fields or not element.text.strip():
            return {}
        name, own = fields[element.name]
        return {name: self.value(element, own)}

    def object(self, element: Element, schema: Schema) -> dict[str, Any]:
        """An element as an object: an absent property is null, one that repeats is a list."""
        fields = self.shape(schema).fields
        values: dict[str, Any] = {name: None for name, _ in fields.values()}
        for child in element.children:
            if child.name not in fields:
                continue
            name, own = fields[child.name]
            shape = self.shape(own)
            if shape.kind == "array":
                members = [self.value(each, shape.item) for each in self.members(child, shape.item)]
                if values[name] is None:
                    values[name] = members
                else:
                    values[name] += members
            elif values[name] is None:
                values[name] = self.value(child, own)
        return values

    def members(self, element: Element, item: Schema) -> list[Element]:
        """The members of a list: elements of one name in it, or the element itself."""
        children = element.children
        if not children:
            return [element] if element.text.strip() else []
        names = {child.name for child in children}
        if len(names) > 1:
            return [element]
        shape = self.shape(item)
        is_wrapped = (
            len(children) > 1
            or names <= shape.members
            or (shape.fields and not names & shape.fields.keys())
            or shape.kind not in ("object", "array", "")
        )
        return children if is_wrapped else [element]

    def value(self, element: Element, schema: Schema) -> Any:
        shape = self.shape(schema)
        if element.children:
            return self.object(element, schema) if shape.fields else _plain(element)
        text = element.text.strip()
        if shape.kind == "boolean" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        digits = text.removeprefix("-")
        if shape.kind == "integer" and digits.isascii() and digits.isdigit():
            return int(text) if len(text) < 40 else text
        if shape.kind == "number":
            try:
                return float(text)
            except ValueError:
                return text
        return element.text if shape.kind == "string" else text


def _plain(element: Element) -> Any:
    """An element that no schema describes: text, an object, or a list of its members."""
    if not element.children:
        return element.text.strip()
    names = [child.name for child in element.children]
    if len(set(names)) == 1 and (len(names) > 1 or names[0] in XML_MEMBERS):
        return [_plain(child) for child in element.children]
    return {child.name: _plain(child) for child in element.children}
