"""Recognizes a call that differs from an earlier one of its connection only in its id and in one
text.

An agent sends one call again and again with another statement. Cut at the digits of the id and at
the text, the rest of such a frame is the same bytes: it was read and checked before, and only the
text is decoded. That is exact: where one token of a JSON text is replaced by another of its kind,
all other tokens stay what they are. What such a call is allowed to do is judged as ever.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from tidegate.model.cancellation import Cancellation
from tidegate.protocol import jsonrpc
from tidegate.protocol import params as p
from tidegate.protocol.jsonrpc import Message, Unreadable
from tidegate.protocol.model import RpcError
from tidegate.protocol.request import McpRequest
from tidegate.protocol.transport import TransportContext
from tidegate.typed_values import json_decoder

MOST_LEARNED = 16
"""Frames that are learned in one connection: a client that repeats nothing costs no more."""
MOST_BESIDE = 4_096
"""Bytes of a frame beside its text: they are kept as long as the connection, and read again."""
_MOST_KEPT = 4
_MOST_DIGITS = 18
_PROBE_ID, _PROBE_TEXT = b"918273645", "a text that no client sends: \u2028"
_ID = re.compile(rb'"id"\s*:\s*([1-9]\d{0,17})\s*[,}]')
_text = msgspec.json.Decoder(str)


class _Given(msgspec.Struct):
    arguments: msgspec.Raw


# The last of two members of one name counts, of whatever kind the other is: as in `params`.
_given = json_decoder(_Given)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class OpenedCall(NamedTuple):
    """A call as the kernel has it once it is read and opened."""

    message: Message
    params: p.CallTool
    request: McpRequest


class _Cut(NamedTuple):
    """A frame without the digits of its id and without one text: what is before the first of
    them, between them, and after the second. `between` and `after` have the text's quotes."""

    before: bytes
    between: bytes
    after: bytes
    id_first: bool

    def find(self, frame: bytes) -> tuple[bytes, bytes] | None:
        """The digits, and the text with its quotes, if the rest of the frame is the same."""
        if not frame.startswith(self.before) or not frame.endswith(self.after):
            return None
        begin, end = len(self.before), len(frame) - len(self.after)
        between = self.between
        if self.id_first:
            at = frame.find(between, begin, begin + _MOST_DIGITS + len(between))
            id, text = frame[begin:at], frame[at + len(between) - 1 : end + 1]
        else:
            at = frame.rfind(between, end - _MOST_DIGITS - len(between), end)
            id, text = frame[at + len(between) : end], frame[begin - 1 : at + 1]
        if at < begin or not id.isdigit() or id[0] == 48:  # no number begins with 0
            return None
        return id, text

    def joined(self, id: bytes, text: bytes) -> bytes:
        """The frame with this id and this text, which has its quotes."""
        first, second = (id, text[1:-1]) if self.id_first else (text[1:-1], id)
        return b"".join((self.before, first, self.between, second, self.after))


class _NoSender:
    """In the place of the stream of a call that has ended."""

    open = False

    def send(self, frame: bytes) -> None:
        """Drop the frame."""


class _Template(NamedTuple):
    """A call that was opened, its frame, the name of the argument whose text may differ, and all
    its arguments. `request` has nothing of the call that has ended."""

    cut: _Cut
    argument: str
    arguments: dict[str, Any]
    method: str | None
    params: p.CallTool
    request: McpRequest


class RepeatedCalls:
    """The calls of one connection whose heads are the same bytes."""

    __slots__ = ("_left", "_templates")

    def __init__(self) -> None:
        self._templates: list[_Template] = []
        self._left = MOST_LEARNED

    def find(self, frame: bytes, transport: TransportContext) -> OpenedCall | None:
        """The call in the frame, if only its id and its text are not known."""
        if len(frame) > p.LARGE:  # its values are counted first
            return None
        for template in self._templates:
            found = template.cut.find(frame)
            if found is None:
                continue
            id, raw = found
            try:
                text = _text.decode(raw)
            except (msgspec.DecodeError, UnicodeDecodeError):
                return None
            return _repeat(template, id, text, transport)
        return None

    def learn(self, frame: bytes, call: OpenedCall) -> None:
        """Know the next frame that is like this one. Nothing happens for a call of an earlier era,
        which may belong to a session, one that answers a question or reports progress, and one that
        cannot be cut."""
        request = call.request
        if (
            self._left <= 0
            or len(frame) > p.LARGE
            or not request.wire.modern
            or request.wants_progress
            or call.params.input_responses is not None
            or call.params.request_state is not None
        ):
            return
        self._left -= 1
        template = _template_of(frame, call)
        if template is not None:
            self._templates.insert(0, template)
            del self._templates[_MOST_KEPT:]


def _repeat(template: _Template, id: bytes, text: str, transport: TransportContext) -> OpenedCall:
    params = template.params
    return OpenedCall(
        Message(id, template.method),
        p.CallTool(
            meta=params.meta,
            name=params.name,
            arguments={**template.arguments, template.argument: text},
        ),
        structs.replace(
            template.request,
            id=id,
            actor=transport.actor,
            sender=transport.sender,
            address=transport.address,
            cancellation=transport.cancellation,
            early=transport.early,
        ),
    )


def _template_of(frame: bytes, call: OpenedCall) -> _Template | None:
    """The frame, cut in a way that is proven: with another id and another text it is read as the
    same call with these. None if there is no such way, and where an argument is a list or an
    object, which a tool could change."""
    given, raw_params = call.params.arguments, call.message.params
    if not isinstance(given, dict) or raw_params is None:
        return None
    if any(isinstance(value, (list, dict)) for value in given.values()):
        return None
    texts = {name: text for name, text in given.items() if isinstance(text, str)}
    argument = max(texts, key=lambda name: len(texts[name]), default="")
    if argument not in texts:
        return None
    raw = bytes(_members.decode(_given.decode(raw_params).arguments)[argument])
    if len(frame) - len(raw) > MOST_BESIDE:
        return None
    begin = frame.index(raw) + 1
    end = begin + len(raw) - 2
    # The first place alone is tried: there may be a thousand that look like the id.
    places = (match.span(1) for match in _ID.finditer(frame) if match[1] == call.message.id)
    first, last = next(places, (0, 0))
    if not first:
        return None
    if last < begin:
        cut = _Cut(frame[:first], frame[last:begin], frame[end:], id_first=True)
    elif first > end:
        cut = _Cut(frame[:begin], frame[end:first], frame[last:], id_first=False)
    else:
        return None
    arguments = {**given, argument: ""}
    params = structs.replace(call.params, arguments=arguments)
    # The stream of the call ends with it.
    request = structs.replace(
        call.request, sender=_NoSender(), cancellation=Cancellation(), early=None
    )
    template = _Template(cut, argument, arguments, call.message.method, params, request)
    return template if _is_proven(template) else None


def _is_proven(template: _Template) -> bool:
    other = template.cut.joined(_PROBE_ID, jsonrpc.encode(_PROBE_TEXT))
    try:
        message = jsonrpc.decode(other)
        params = p.read(p.CallTool, message.params)
    except (Unreadable, RpcError):
        return False
    arguments = {**template.arguments, template.argument: _PROBE_TEXT}
    expected = structs.replace(template.params, arguments=arguments)
    return message.id == _PROBE_ID and params == expected
