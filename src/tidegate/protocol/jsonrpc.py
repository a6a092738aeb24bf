"""JSON-RPC 2.0 frames: bytes in, messages out, replies as bytes.

Ids are kept as the bytes they came in, so that they are echoed exactly. What cannot be read
becomes an `RpcError` with the code the specification gives it; nothing else is raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidegate.protocol.model import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError
from tidegate.typed_values import json_decoder

NO_ID = b"null"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What some programs write before a text in UTF-8. It says nothing."""
MOST_ID_BYTES = 256
"""Of an id that comes back to a caller without any right."""
_DIGITS = frozenset(b"-0123456789")


class Message(msgspec.Struct, frozen=True):
    """One decoded frame: a request (method and id), a notification (method), or a response."""

    id: bytes | None
    method: str | None
    params: msgspec.Raw | None = None
    result: msgspec.Raw | None = None
    error: msgspec.Raw | None = None


class _Envelope(msgspec.Struct):
    jsonrpc: str = ""
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Identified(msgspec.Struct):
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Refused(msgspec.Struct):
    method: str
    id: msgspec.Raw


_envelope = json_decoder(_Envelope)
_identified = json_decoder(_Identified)
_refused = json_decoder(_Refused)
_id_value: msgspec.json.Decoder[str | int | float] = msgspec.json.Decoder(str | int | float)
_batch = msgspec.json.Decoder(list[msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class Unreadable(RpcError):
    """A frame that is no message. `id` is the raw id to answer under, `null` if unknown."""

    def __init__(self, code: int, message: str, id: bytes = NO_ID) -> None:
        super().__init__(code, message, status=400)
        self.id = id


def decode(frame: bytes, *, document: bool = False) -> Message:
    """Read one message. `document`: by the rules of `Settings.document_lifecycle`.

    Raises: Unreadable (parse error, invalid request, and with `document` wrong parameters).
    """
    try:
        if not frame.isascii():
            frame.decode()  # msgspec checks no bytes that it need not read
        envelope = _envelope.decode(frame)
    except msgspec.ValidationError:
        raise Unreadable(INVALID_REQUEST, "Invalid Request", find_id(frame)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unreadable(PARSE_ERROR, "Parse error: not valid JSON") from None
    id = _read_id(envelope.id)
    if envelope.jsonrpc != "2.0":
        raise Unreadable(INVALID_REQUEST, 'Invalid Request: jsonrpc must be "2.0"', id or NO_ID)
    params = envelope.params
    if envelope.method is msgspec.UNSET:
        return _read_response(envelope, id)
    if document and id is None and not envelope.method.startswith("notifications/"):
        raise Unreadable(INVALID_REQUEST, "Invalid Request: a request must have an id")
    if params is msgspec.UNSET or (len(params) == 4 and bytes(params) == b"null"):
        return Message(id, envelope.method)
    if not bytes(params).startswith(b"{"):
        if document:
            raise Unreadable(
                INVALID_PARAMS, "Invalid params: params must be an object", id or NO_ID
            )
        raise Unreadable(INVALID_REQUEST, "Invalid Request: params must be an object", id or NO_ID)
    return Message(id, envelope.method, params)


def split_batch(frame: bytes) -> list[bytes]:
    """The frames of a JSON-RPC batch. Raises: Unreadable if it is empty or not JSON."""
    try:
        frames = [bytes(raw) for raw in _batch.decode(frame)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unreadable(PARSE_ERROR, "Parse error: not valid JSON") from None
    if not frames:
        raise Unreadable(INVALID_REQUEST, "Invalid Request: the batch is empty")
    return frames


def _read_id(raw: msgspec.Raw | msgspec.UnsetType) -> bytes | None:
    if raw is msgspec.UNSET:
        return None
    id = bytes(raw)
    if id[:1] == b'"' or id[0] in _DIGITS:
        return id
    raise Unreadable(INVALID_REQUEST, "Invalid Request: id must be a string or a number")


def _read_response(envelope: _Envelope, id: bytes | None) -> Message:
    result, error = envelope.result, envelope.error
    if id is None or (result is msgspec.UNSET) == (error is msgspec.UNSET):
        raise Unreadable(INVALID_REQUEST, "Invalid Request: no method", id or NO_ID)
    return Message(
        id,
        None,
        result=None if result is msgspec.UNSET else result,
        error=None if error is msgspec.UNSET else error,
    )


def find_id(frame: bytes) -> bytes:
    """The id of a frame that is not served, `NO_ID` if it cannot be had."""
    try:
        return _read_id(_identified.decode(frame).id) or NO_ID
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Unreadable):
        return NO_ID


def id_of_request(frame: bytes) -> bytes | None:
    """The id of a request that is refused before it is served; None if the frame is no request, or
    its id cannot be had. An error that answers no request has no id (`basic/transports`)."""
    try:
        id = bytes(_refused.decode(frame.removeprefix(BYTE_ORDER_MARK)).id)
        if len(id) > MOST_ID_BYTES:
            return None
        _id_value.decode(id)  # reads every byte of it, as the decoder of the frame does not
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return id


def encode(value: Any) -> bytes:
    return _encode(value)


def quote(text: bytes) -> bytes:
    """UTF-8 text as a JSON string."""
    return _encode(text.decode("utf-8", "replace"))


def result_frame(id: bytes, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + id + b',"result":' + result + b"}"


def error_frame(
    id: bytes | None, code: int, message: str, data: Mapping[str, Any] | str | None = None
) -> bytes:
    """An error reply; with id None it has no `id` member at all."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data:
        error["data"] = data
    member = b"" if id is None else b'"id":' + id + b","
    return b'{"jsonrpc":"2.0",' + member + b'"error":' + _encode(error) + b"}"


def notification_frame(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return _encode(message)


def request_frame(id: str, method: str, params: Mapping[str, Any]) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
