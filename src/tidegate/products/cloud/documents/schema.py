"""Reads the JSON schemas of a provider document: references, properties, columns.

Documents are OpenAPI 3.0 and 3.1: `type` may be a list, `nullable` a keyword. What `allOf`, `oneOf`
and `anyOf` hold counts as one object with all their properties, since a row may have any of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from tidegate.errors import TidegateError
from tidegate.products.cloud.documents.model import Schema
from tidegate.products.cloud.documents.tree import mapping, sequence
from tidegate.products.cloud.documents.yaml_reader import refused

ANONYMOUS: Final = "_"
"""The column of a row that is no object."""
_MOST_HOPS: Final = 64
_UNIONS: Final = ("allOf", "oneOf", "anyOf")
_KEY_PART: Final = re.compile(r"\.([\w-]+)|\[\*\]|\[(?:\"([^\"]+)\"|'([^']+)')\]")
_XML_STEP: Final = re.compile(r"\*|(?:[\w.-]+:)?[\w.-]+")
DESCENDANTS: Final = "**"
"""The step of an XPath that `//` is."""
XML_MEMBERS: Final = ("member", "item", "entry")
"""Names of list members in AWS's query and EC2 protocols."""


class XPath(tuple[str, ...]):
    """The steps of a path in XML, from the root element on: names without their prefixes, `*`, and
    `DESCENDANTS`."""

    __slots__ = ()


class Schemas:
    """The schemas of the document `tree`, whose file is `name`."""

    def __init__(self, tree: Mapping[str, Any], name: str) -> None:
        self._tree = tree
        self._name = name

    def find(self, reference: str) -> Any:
        """What a reference such as `#/components/schemas/User` names (RFC 6901).

        Raises: TidegateError DOCUMENT_INVALID: another document, or nothing there.
        """
        if not reference.startswith("#/"):
            raise self._refused(f"the reference `{reference[:120]}` leads out of the document")
        at: Any = self._tree
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            entries, items = mapping(at), sequence(at)
            if key in entries:
                at = entries[key]
            elif unquote(key) in entries:
                at = entries[unquote(key)]
            elif key.isdecimal() and len(key) < 10 and int(key) < len(items):
                at = items[int(key)]
            else:
                raise self._refused(f"the reference `{reference[:120]}` names nothing")
        return at

    def resolve(self, node: Any) -> Mapping[str, Any]:
        """`node`, or what its `$ref` names at last. Raises: TidegateError DOCUMENT_INVALID."""
        for _ in range(_MOST_HOPS):
            if not isinstance(node, Mapping):
                raise self._refused(f"`{str(node)[:80]}` is where an object is wanted")
            reference = mapping(node).get("$ref")
            if not isinstance(reference, str):
                return mapping(node)
            node = self.find(reference)
        raise self._refused("a reference leads back to itself")

    def properties(self, schema: Schema) -> dict[str, Schema]:
        """The properties of an object, those of its unions included; of a list: none."""
        found: dict[str, Schema] = {}
        for part in self._parts(schema):
            for name, each in mapping(part.get("properties")).items():
                # `true` and null mean a schema that says nothing.
                found.setdefault(name, mapping(each))
        return found

    def required(self, schema: Schema) -> frozenset[str]:
        """Properties that an object must have. Alternatives require nothing together."""
        resolved = self.resolve(schema)
        names = {str(each) for each in sequence(resolved.get("required"))}
        for each in sequence(resolved.get("allOf")):
            names |= {str(name) for name in sequence(self.resolve(each).get("required"))}
        return frozenset(names)

    def kind(self, schema: Schema) -> str:
        """`object`, `array`, `string`, `integer`, `number`, `boolean`, or empty: it may be any."""
        for part in self._parts(schema):
            kinds = part.get("type")
            for kind in sequence(kinds) or [kinds]:
                if isinstance(kind, str) and kind != "null":
                    return kind
            if "properties" in part or "additionalProperties" in part:
                return "object"
            if "items" in part:
                return "array"
        return ""

    def kinds(self, schema: Schema) -> frozenset[str]:
        """All kinds that a schema names; empty: it may be any."""
        found: set[str] = set()
        for part in self._parts(schema):
            kinds = part.get("type")
            found |= {
                str(kind) for kind in sequence(kinds) or [kinds] if kind not in (None, "null")
            }
        return frozenset(found)

    def items(self, schema: Schema) -> Schema | None:
        """The schema of a list's members; None if it is no list."""
        for part in self._parts(schema):
            if isinstance(part.get("items"), Mapping):
                return mapping(part["items"])
        return None

    def row(self, schema: Schema, key: tuple[str, ...] | None) -> Schema:
        """The schema of one row in a body of `schema` whose rows are at `key`.

        Without a key: the members of `items`, else of the list, else the object itself.
        """
        if isinstance(key, XPath):
            schema = self.at_xpath(schema, key)
        elif key is None:
            listed = self.properties(schema).get("items")
            if listed is not None and self.items(listed) is not None:
                schema = listed
        else:
            for part in key:
                schema = self._step(schema, part)
        return self.items(schema) or schema

    def columns(self, schema: Schema, key: tuple[str, ...] | None) -> dict[str, Schema]:
        """The columns of a row, as `row` finds it, in the document's order."""
        row = self.row(schema, key)
        return self.properties(row) or {ANONYMOUS: row}

    def xml_name(self, schema: Schema) -> str:
        """The name that a schema has in XML; empty: that of its property."""
        for part in self._parts(schema):
            name = mapping(part.get("xml")).get("name")
            if isinstance(name, str) and name:
                return name
        return ""

    def xml_properties(self, schema: Schema) -> dict[str, tuple[str, Schema]]:
        """The properties of an object by the names of their elements, each with its own name."""
        named = {
            self.xml_name(each) or name: (name, each)
            for name, each in self.properties(schema).items()
        }
        return {name: (name, each) for name, each in self.properties(schema).items()} | named

    def at_xpath(self, schema: Schema, path: XPath) -> Schema:
        """The schema of the elements at a path, whose first step is the root; `{}` if the document
        does not show it. Members of a list are a step of their own, or none."""
        at: Schema = schema
        if path and path[0] in self.properties(at):
            at = self.properties(at)[path[0]]  # a schema around the root element
        for step in path[1:]:
            if step != DESCENDANTS:
                at = self._xml_step(at, step)
        return at

    def _xml_step(self, schema: Schema, step: str) -> Schema:
        for _ in range(_MOST_HOPS):
            found = self.xml_properties(schema).get(step)
            member = self.items(schema)
            if found is not None:
                return found[1]
            if member is None:
                break
            if step in ("*", self.xml_name(member), *XML_MEMBERS):
                return member
            schema = member
        return {}

    def _step(self, schema: Schema, part: str) -> Schema:
        if part == "*":
            return self.items(schema) or {}
        inner = self.properties(schema).get(part)
        if inner is None and (member := self.items(schema)) is not None:
            inner = self.properties(member).get(part)
        # A document may have its rows where its schema shows nothing: any columns may come.
        return {} if inner is None else inner

    def _parts(self, schema: Schema) -> Iterator[Mapping[str, Any]]:
        """The schema and the members of its unions, each once, whatever refers to itself."""
        waiting: list[Any] = [schema]
        seen: set[int] = set()
        while waiting:
            part = self.resolve(waiting.pop(0))
            if id(part) in seen:
                continue
            seen.add(id(part))
            yield part
            for union in _UNIONS:
                waiting.extend(sequence(part.get(union)))

    def _refused(self, problem: str) -> TidegateError:
        return refused(self._name, problem)


def parse_object_key(text: str, document: str) -> tuple[str, ...]:
    """The steps of a path such as `$.a.b`, `$.items[*]`, `$["a b"].c` or `/*/Result/member`.

    Raises: TidegateError DOCUMENT_INVALID.
    """
    if text.startswith("/"):
        return _parse_xpath(text, document)
    if text == "$":
        return ()
    rest = text.removeprefix("$") if text.startswith("$") else f".{text}"
    steps: list[str] = []
    at = 0
    while at < len(rest):
        match = _KEY_PART.match(rest, at)
        if match is None:
            raise refused(document, f"the path `{text[:120]}` is not understood")
        steps.append(next((part for part in match.groups() if part is not None), "*"))
        at = match.end()
    return tuple(steps)


def _parse_xpath(text: str, document: str) -> XPath:
    steps: list[str] = []
    for part in text.removesuffix("/text()")[1:].split("/"):
        if not part and steps[-1:] != [DESCENDANTS]:
            steps.append(DESCENDANTS)
        elif _XML_STEP.fullmatch(part):
            steps.append(part.rpartition(":")[2])
        else:
            raise refused(document, f"the path `{text[:120]}` is not understood")
    return XPath(steps)
