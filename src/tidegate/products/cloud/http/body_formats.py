"""Bodies of requests that are not JSON: XML, multipart forms and plain content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast
from xml.sax.saxutils import escape, quoteattr

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import Schema, XmlForm
from tidegate.products.cloud.documents.schema import Schemas
from tidegate.products.cloud.documents.template_functions import to_json
from tidegate.products.cloud.documents.tree import mapping
from tidegate.xml_tree import parse_xml

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}")
_NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_DEEPEST: Final = 32


def xml_body(
    fields: Mapping[str, Any], schema: Schema, schemas: Schemas, form: XmlForm | None = None
) -> bytes:
    """`fields` as XML. One field is the root element; several are put into one that the schema's
    `xml.name` names, or all into the one of `form`. A list is its element again and again, unless
    the schema wraps it (OpenAPI 3.1, section 4.8.26).

    Raises: TidegateError ARGUMENT_INVALID: a name that no element may have, a character that XML
        cannot hold, values that nest too deeply, or several roots.
    """
    if form is not None:
        return plain_body(_formed(fields, schema, schemas, form))
    properties = schemas.properties(schema)
    name = str(mapping(schema.get("xml")).get("name") or "")
    if name:
        text = "".join(_element(name, dict(fields), schema, schemas, 0))
    elif len(fields) == 1:
        root, value = next(iter(fields.items()))
        text = "".join(_element(root, value, properties.get(root, {}), schemas, 0))
    else:
        raise _refused(f"XML has one root, and {len(fields)} fields are given")
    return plain_body(f'<?xml version="1.0" encoding="UTF-8"?>{text}')


def _formed(fields: Mapping[str, Any], schema: Schema, schemas: Schemas, form: XmlForm) -> str:
    properties = schemas.properties(schema)
    parts: list[str] = []
    for name, value in fields.items():
        if form.unescapes and isinstance(value, str) and value.lstrip().startswith("<"):
            _check_fragment(name, value)
            parts.append(f"{_open(name, {}, {})}{value}</{name}>")
        else:
            parts += _element(name, value, properties.get(name, {}), schemas, 1)
    head = f"{_open(form.root, {}, {})[:-1]} {form.annotation}".rstrip()
    return f"{form.declaration}{head}>{''.join(parts)}</{form.root}>"


def _check_fragment(name: str, text: str) -> None:
    """Raises: TidegateError ARGUMENT_INVALID for what would end the element that it is in."""

    def refuse(reason: str) -> TidegateError:
        return _refused(f"the value of {name} is no XML: {reason}")

    parse_xml(f"<root>{text}</root>".encode(errors="replace"), refuse)


def _element(name: str, value: Any, schema: Schema, schemas: Schemas, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        raise _refused(f"its values are nested more than {_DEEPEST} deep")
    resolved = schemas.resolve(schema) if schema else schema
    hints = mapping(resolved.get("xml"))
    tag = str(hints.get("name") or name)
    if isinstance(value, list):
        items = mapping(resolved.get("items"))
        own = tag if not hints.get("wrapped") else name
        member = str(mapping(items.get("xml")).get("name") or own)
        inner = "".join(
            part
            for each in cast("list[Any]", value)
            for part in _element(member, each, items, schemas, depth + 1)
        )
        yield f"{_open(tag, {}, hints)}{inner}</{tag}>" if hints.get("wrapped") else inner
        return
    attributes: dict[str, str] = {}
    content: list[str] = []
    if isinstance(value, dict):
        properties = schemas.properties(resolved) if resolved else {}
        for key, each in cast("dict[str, Any]", value).items():
            own = properties.get(key, {})
            if mapping(own.get("xml")).get("attribute") is True:
                attributes[str(mapping(own.get("xml")).get("name") or key)] = _text(each)
            elif each is not None:
                content.extend(_element(key, each, own, schemas, depth + 1))
    elif value is not None:
        content.append(escape(_text(value)))
    yield f"{_open(tag, attributes, hints)}{''.join(content)}</{tag}>"


def _open(tag: str, attributes: Mapping[str, str], hints: Mapping[str, Any]) -> str:
    for name in (tag, *attributes):
        if not _NAME.fullmatch(name):
            raise _refused(f"`{name[:60]}` is not the name of an XML element")
    given = dict(attributes)
    if isinstance(hints.get("namespace"), str):
        given["xmlns"] = str(hints["namespace"])
    return f"<{tag}{''.join(f' {name}={quoteattr(text)}' for name, text in given.items())}>"


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else to_json(value)
    if _NO_XML.search(text):
        raise _refused("a value has a character that XML cannot hold")
    return text


def multipart_body(fields: Mapping[str, Any]) -> tuple[str, bytes]:
    """The media type with its boundary, and the content (RFC 7578). A field of the name `file`, or
    one that ends in `_file`, is sent as a file of that name.

    Raises: TidegateError ARGUMENT_INVALID for a name that would end its header.
    """
    parts: list[tuple[str, bytes]] = []
    for name, value in fields.items():
        if not name.isprintable() or '"' in name:
            raise _refused(f"`{name[:60]}` is not the name of a part")
        content = value if isinstance(value, str) else to_json(value)
        is_file = name == "file" or name.endswith("_file")
        head = f'Content-Disposition: form-data; name="{name}"'
        if is_file:
            head += f'; filename="{name}"\r\nContent-Type: application/octet-stream'
        elif not isinstance(value, str):
            head += "\r\nContent-Type: application/json"
        parts.append((head, plain_body(content)))
    # The boundary follows from the content, so that a request is the same each time it is built,
    # and cannot be in it: a content that held its own digest could not be found.
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    lines = [
        f"--{digest}\r\n{head}\r\n\r\n".encode() + content + b"\r\n" for head, content in parts
    ]
    return f"multipart/form-data; boundary={digest}", b"".join(lines) + f"--{digest}--\r\n".encode()


def plain_body(text: str) -> bytes:
    """Raises: TidegateError ARGUMENT_INVALID for half of a surrogate pair, which has no bytes."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _refused("a value holds half of a surrogate pair") from None


def _refused(problem: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID, f"The body of the request cannot be made: {problem}."
    )
