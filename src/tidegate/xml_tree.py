"""Reads XML from strangers: no document type, no entities of its own, bounded depth and size.

Follows the advice of the standard library's "XML vulnerabilities": with a document type refused,
expat expands and fetches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from xml.parsers import expat

from tidegate.errors import TidegateError

MOST_BYTES = 4_194_304
_DEEPEST = 64


class Element:
    """An element without its attributes and namespace. `text` is its own text."""

    __slots__ = ("children", "name", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = ""
        self.children: list[Element] = []

    def all(self, *path: str) -> Iterator[Element]:
        """The elements at a path below this one."""
        if not path:
            yield self
            return
        for child in self.children:
            if child.name == path[0]:
                yield from child.all(*path[1:])

    def value(self, *path: str) -> str:
        """The text of the first element at a path, without spaces around it; else empty."""
        found = next(self.all(*path), None)
        return "" if found is None else found.text.strip()


Refuse = Callable[[str], TidegateError]
"""The error for content that cannot be read, from the reason."""


def parse_xml(content: bytes, refuse: Refuse, most_bytes: int = MOST_BYTES) -> Element:
    """The root element. Raises: what `refuse` gives."""
    if len(content) > most_bytes:
        raise refuse(f"it has more than {most_bytes:,} bytes")
    return _Reader(refuse).read(content)


class _Reader:
    def __init__(self, refuse: Refuse) -> None:
        self._refuse = refuse
        self._open: list[Element] = []
        self._root: Element | None = None

    def read(self, content: bytes) -> Element:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        try:
            parser.Parse(content, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise self._refuse(f"{reason} in line {error.lineno}") from None
        except (ValueError, LookupError):  # an encoding that is not known
            raise self._refuse("its encoding is not known") from None
        if self._root is None:
            raise self._refuse("it has no element")
        return self._root

    def _doctype(self, *_: object) -> None:
        raise self._refuse("it declares a document type, which is refused")

    def _start(self, name: str, _: dict[str, str]) -> None:
        element = Element(name.rpartition(" ")[2])
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        if len(self._open) >= _DEEPEST:
            raise self._refuse(f"its elements are nested more than {_DEEPEST} deep")
        self._open.append(element)

    def _end(self, _: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].text += text
