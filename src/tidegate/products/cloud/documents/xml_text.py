"""What templates take of a text in XML by an XPath."""

from __future__ import annotations

from typing import Any, Final
from xml.sax.saxutils import escape

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.schema import parse_object_key
from tidegate.products.cloud.documents.xml_rows import elements_at
from tidegate.xml_tree import Element, parse_xml

_MOST_BYTES: Final = 16 * 1_048_576


def text_at(text: Any, path: Any) -> str:
    """The text in the first element at a path, that of its children included.

    Raises: ValueError: the text is no XML, or has no such element.
    """
    for element in _found(text, path):
        return _inner_text(element)
    raise ValueError(f"the text has no element at {path[:80]!r}")


def texts_at(text: Any, path: Any) -> list[str]:
    """Each element at a path, as XML. Raises: ValueError: the text is no XML."""
    return [_outer_text(element) for element in _found(text, path)]


def _found(text: Any, path: Any) -> list[Element]:
    if not isinstance(text, str) or not isinstance(path, str) or path[:1] != "/":
        raise TypeError("it takes a text in XML and a path from its root, such as `/a/b`")
    try:
        steps = parse_object_key(path, "a template")
        root = parse_xml(text.strip().encode(), _unreadable, _MOST_BYTES)
    except TidegateError as error:
        raise ValueError(error.message) from None
    return list(elements_at(root, steps))


def _unreadable(reason: str) -> TidegateError:
    return TidegateError(Code.DOCUMENT_INVALID, f"the text is no XML: {reason}")


def _inner_text(element: Element) -> str:
    return element.text + "".join(map(_inner_text, element.children))


def _outer_text(element: Element) -> str:
    inner = escape(element.text) + "".join(map(_outer_text, element.children))
    return f"<{element.name}>{inner}</{element.name}>"
