"""Cuts a structured result so that its reply stays within limits, and records what it cut. Pure.

A structured result is an object of which the member `result` may be long. Its forms, in the order
in which they are tried:

1. all of it, with the same JSON as text;
2. all of it, with `See structuredContent.` as text;
3. a preview of `result`, with `Result truncated.` as text, and a record `bytes`, `preview`;
4. `result` null, with the same text, and a record `bytes`, `omitted`.

A list above the limit of items is cut first and recorded as `items`; its text is then
`Result truncated.` in each form, and the first two are one. A caller sends the first form whose
whole reply is within the limit of bytes. Source: the document of the Datalevin MCP server, "Large
Responses".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

TRUNCATED = "Result truncated."
ELSEWHERE = "See structuredContent."
NOTHING: Mapping[str, Any] = {}


class TruncationLimits(msgspec.Struct, frozen=True):
    """`items` of a list, `reply_bytes` of a whole reply as it is sent, and of what a preview is
    made: `preview_items` of a list, `preview_entries` of an object, `preview_characters` of a
    text."""

    items: int = 200
    reply_bytes: int = 524_288
    preview_items: int = 5
    preview_entries: int = 20
    preview_characters: int = 1_024


class Form(NamedTuple):
    """One form of a result: its JSON, and the text beside it. None: the JSON itself."""

    body: bytes
    text: str | None


def forms(
    fields: Mapping[str, Any],
    result: bytes,
    limits: TruncationLimits,
    *,
    original: int | None = None,
    meta: Mapping[str, Any] = NOTHING,
) -> Iterator[Form]:
    """The forms of the object with `fields` and the member `result`, which is JSON, from the whole
    to the shortest. `original`: how many items the list had, if `result` has not all of them.
    `meta` are other members of `meta`."""
    records: list[dict[str, Any]] = []
    result, items = _within(result, limits.items)
    if items is not None and max(items, original or 0) > limits.items:
        records.append(
            {
                "kind": "items",
                "path": "result",
                "limit": limits.items,
                "returned": min(items, limits.items),
                "original": max(items, original or 0),
            }
        )
    whole = _body(fields, result, records, meta)
    if records:
        yield Form(whole, TRUNCATED)
    else:
        yield Form(whole, None)
        yield Form(whole, ELSEWHERE)
    for mode, shown in (("preview", _preview(result, limits)), ("omitted", b"null")):
        step = {"kind": "bytes", "path": "result", "limit": limits.reply_bytes, "mode": mode}
        yield Form(_body(fields, shown, [*records, step], meta), TRUNCATED)


def _within(result: bytes, most: int) -> tuple[bytes, int | None]:
    """A list cut to `most` items, with their number; anything else as it is, without one."""
    if not result.startswith(b"["):
        return result, None
    items = _items.decode(result)
    return (_list(items[:most]) if len(items) > most else result), len(items)


def _preview(result: bytes, limits: TruncationLimits) -> bytes:
    """The beginning of a list, of an object or of a text; any other value as it is."""
    kind = result[:1]
    if kind == b"[":
        return _list(_items.decode(result)[: limits.preview_items])
    if kind == b"{":
        entries = list(_entries.decode(result).items())[: limits.preview_entries]
        return _encode(dict(entries))
    if kind == b'"':
        text = _text.decode(result)
        if len(text) > limits.preview_characters:
            return _encode(f"{text[: limits.preview_characters]}...")
    return result


def _list(items: Sequence[msgspec.Raw]) -> bytes:
    return b"[" + b",".join(bytes(item) for item in items) + b"]"


def _body(
    fields: Mapping[str, Any],
    result: bytes,
    records: Sequence[Mapping[str, Any]],
    meta: Mapping[str, Any],
) -> bytes:
    members: dict[str, Any] = {**fields, "result": msgspec.Raw(result)}
    cut = {"truncated": True, "truncations": records} if records else {}
    if cut or meta:
        members["meta"] = {**cut, **meta}
    return _encode(members)


_encode = msgspec.json.Encoder().encode
_items = msgspec.json.Decoder(list[msgspec.Raw])
_entries = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text = msgspec.json.Decoder(str)
