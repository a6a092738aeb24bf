"""The XML files of Maven: POMs, metadata of repositories, settings."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.xml_tree import Element, parse_xml


def read_document(content: bytes, what: str) -> Element:
    """The root element. `what` names the document in errors. Raises: TidegateError
    DRIVER_UNRESOLVED."""

    def refuse(reason: str) -> TidegateError:
        return TidegateError(
            Code.DRIVER_UNRESOLVED,
            f"{what} cannot be read: {reason}.",
            hint="Check that the address is that of a Maven repository.",
        )

    return parse_xml(content, refuse)
