"""Reads the rows of an XML response.

A document may say where they are, by an XPath. One that has `schema_driven_xml` tells the columns
of a row alone: its rows are the elements at the one path whose children have the most of these
names. An element most of whose children are something else is an envelope and no row: an empty list
gives no row, although its envelope may repeat a name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tidegate.cloud.model import Schema
from tidegate.cloud.schema import DESCENDANTS, XML_MEMBERS, Schemas, XPath
from tidegate.errors import Code, TidegateError
from tidegate.xml_tree import Element, parse_xml

MOST_BYTES: Final = 64 * 1_048_576
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?", re.ASCII)


def read_xml_rows(root: Element, row: Schema, schemas: Schemas) -> Iterator[Any]:
    """The rows of a reply as objects of `row`'s properties."""
    reader = _Reader(schemas)
    names = reader.fields(row)
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
    names = reader.fields(row)
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


class _Reader:
    """Reads elements as their schemas have them."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._fields: dict[int, tuple[Schema, dict[str, tuple[str, Schema]]]] = {}

    def fields(self, schema: Schema) -> dict[str, tuple[str, Schema]]:
        """The properties of an object by the names of their elements, looked up once."""
        known = self._fields.get(id(schema))
        if known is None:
            known = self._fields[id(schema)] = (schema, self._schemas.xml_properties(schema))
        return known[1]

    def row(self, element: Element, schema: Schema) -> Any:
        fields = self.fields(schema)
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
        fields = self.fields(schema)
        values: dict[str, Any] = {name: None for name, _ in fields.values()}
        for child in element.children:
            if child.name not in fields:
                continue
            name, own = fields[child.name]
            if self._schemas.kind(own) == "array":
                item = self._schemas.items(own) or {}
                members = [self.value(each, item) for each in self.members(child, item)]
                values[name] = [*(values[name] or ()), *members]
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
        fields, kind = self.fields(item), self._schemas.kind(item)
        known = {self._schemas.xml_name(item), *XML_MEMBERS}
        is_wrapped = (
            len(children) > 1
            or names <= known
            or (fields and not names & fields.keys())
            or kind not in ("object", "array", "")
        )
        return children if is_wrapped else [element]

    def value(self, element: Element, schema: Schema) -> Any:
        if element.children:
            return self.object(element, schema) if self.fields(schema) else _plain(element)
        text = element.text.strip()
        kind = self._schemas.kind(schema)
        if kind == "boolean" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        digits = text.removeprefix("-")
        if kind == "integer" and digits.isascii() and digits.isdigit():
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
    if len(set(names)) == 1 and (len(names) > 1 or names[0] in XML_MEMBERS):
        return [_plain(child) for child in element.children]
    return {child.name: _plain(child) for child in element.children}
