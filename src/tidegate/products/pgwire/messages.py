"""Messages of PostgreSQL's frontend/backend protocol 3.0, as a server reads and writes them. Pure.

Source: PostgreSQL documentation, chapter "Frontend/Backend Protocol", "Message Formats". Integers
are big-endian; a length counts itself and not the type byte before it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidegate.products.pgwire.packers import INT32, UINT16, UINT32

PROTOCOL_3_0 = 196_608
PROTOCOL_3_2 = PROTOCOL_3_0 + 2
"""The newest that is spoken here. Only the length of the key to cancel with is another."""
CANCEL_REQUEST = 80_877_102
SSL_REQUEST = 80_877_103
GSSENC_REQUEST = 80_877_104

MAX_STARTUP = 10_000
"""Bytes of a message before the login; PostgreSQL has the same limit for the first."""

_FIELD = struct.Struct("!ihihih")


class ProtocolError(Exception):
    """The client sent what is no message of the protocol. Its connection ends."""


class Parse(NamedTuple):
    """Make a statement; `types` are oids, 0 for a parameter whose type is left to the server."""

    name: str
    text: str
    types: tuple[int, ...]


class Bind(NamedTuple):
    """Make a portal of a statement. A format is 0 for text, 1 for binary; one may apply to all."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...]
    parameters: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


class Target(NamedTuple):
    """What Describe and Close are about: `S` a statement, `P` a portal."""

    kind: str
    name: str


class Execute(NamedTuple):
    """Run a portal; `max_rows` 0 means all."""

    portal: str
    max_rows: int


class Body:
    """Reads the fields of one message. Every method raises ProtocolError at its end."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        """That many bytes."""
        end = self._at + count
        if count < 0 or end > len(self._data):
            raise ProtocolError("a message ends too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def int16(self) -> int:
        return UINT16.unpack(self.take(2))[0]

    def int32(self) -> int:
        return INT32.unpack(self.take(4))[0]

    def uint32(self) -> int:
        return UINT32.unpack(self.take(4))[0]

    def byte(self) -> str:
        return chr(self.take(1)[0])

    def string(self) -> str:
        """Text up to a NUL byte."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise ProtocolError("a text in a message has no end")
        taken = self._data[self._at : end]
        self._at = end + 1
        try:
            return taken.decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text in a message is not UTF-8") from None

    def values(self) -> list[bytes | None]:
        """A count, and so many values with their lengths before them; -1 for NULL."""
        count, data, at = self.int16(), self._data, self._at
        found: list[bytes | None] = []
        try:
            for _ in range(count):
                (length,) = INT32.unpack_from(data, at)
                at += INT32.size
                if length < -1:
                    raise ProtocolError("a parameter has a negative length")
                if length == -1:
                    found.append(None)
                    continue
                found.append(data[at : at + length])
                at += length
        except struct.error:
            raise ProtocolError("a message ends too early") from None
        if at > len(data):
            raise ProtocolError("a message ends too early")
        self._at = at
        return found

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        """Raises: ProtocolError if anything is left."""
        if self._at != len(self._data):
            raise ProtocolError("a message is longer than its fields")


# What clients send.


def read_startup(data: bytes) -> dict[str, str]:
    """The parameters of a startup message, after its protocol version. Raises: ProtocolError."""
    body = Body(data)
    found: dict[str, str] = {}
    while name := body.string():
        found[name] = body.string()
    body.end()
    return found


def read_cancel(data: bytes) -> tuple[int, bytes]:
    """The session's number and secret. Raises: ProtocolError."""
    body = Body(data)
    return body.uint32(), body.rest()


def read_sasl_start(data: bytes) -> tuple[str, bytes]:
    """The mechanism that the client chose, and its first message. Raises: ProtocolError."""
    body = Body(data)
    mechanism = body.string()
    length = body.int32()
    first = body.take(length) if length >= 0 else b""
    body.end()
    return mechanism, first


def read_query(data: bytes) -> str:
    """The text of a simple query. Raises: ProtocolError."""
    body = Body(data)
    text = body.string()
    body.end()
    return text


def read_parse(data: bytes) -> Parse:
    """Raises: ProtocolError."""
    body = Body(data)
    name, text = body.string(), body.string()
    types = tuple([body.uint32() for _ in range(body.int16())])
    body.end()
    return Parse(name, text, types)


def read_bind(data: bytes) -> Bind:
    """Raises: ProtocolError."""
    body = Body(data)
    portal, statement = body.string(), body.string()
    parameter_formats = _formats(body)
    parameters = body.values()
    result_formats = _formats(body)
    body.end()
    if len(parameter_formats) not in (0, 1, len(parameters)):
        raise ProtocolError("Bind has another number of formats than of parameters")
    return Bind(portal, statement, parameter_formats, tuple(parameters), result_formats)


def read_target(data: bytes) -> Target:
    """What a Describe or Close names. Raises: ProtocolError."""
    body = Body(data)
    kind, name = body.byte(), body.string()
    body.end()
    if kind not in "SP":
        raise ProtocolError("Describe and Close are about a statement or a portal")
    return Target(kind, name)


def read_execute(data: bytes) -> Execute:
    """Raises: ProtocolError."""
    body = Body(data)
    portal, max_rows = body.string(), body.int32()
    body.end()
    return Execute(portal, max(0, max_rows))


_FORMATS = frozenset({0, 1})


def _formats(body: Body) -> tuple[int, ...]:
    count = body.int16()
    if not count:
        return ()
    found = tuple([body.int16() for _ in range(count)])
    if not _FORMATS.issuperset(found):
        raise ProtocolError("a format is neither text nor binary")
    return found


# What the server sends.


def message(kind: bytes, data: bytes = b"") -> bytes:
    """One message of that type."""
    return kind + INT32.pack(len(data) + 4) + data


AUTHENTICATION_OK = message(b"R", INT32.pack(0))
PARSE_COMPLETE = message(b"1")
BIND_COMPLETE = message(b"2")
CLOSE_COMPLETE = message(b"3")
NO_DATA = message(b"n")
PORTAL_SUSPENDED = message(b"s")
EMPTY_QUERY = message(b"I")
COPY_DONE = message(b"c")


def authentication_sasl(mechanisms: Iterable[str]) -> bytes:
    """The mechanisms that a client may choose from."""
    names = b"".join(name.encode() + b"\0" for name in mechanisms)
    return message(b"R", INT32.pack(10) + names + b"\0")


def authentication_sasl_continue(data: bytes) -> bytes:
    """The server's first message of SASL."""
    return message(b"R", INT32.pack(11) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    """The server's last message of SASL."""
    return message(b"R", INT32.pack(12) + data)


def negotiate_version(options: Sequence[str]) -> bytes:
    """That the server speaks 3.2 at most, without these options of the protocol."""
    names = b"".join(name.encode() + b"\0" for name in options)
    return message(b"v", INT32.pack(PROTOCOL_3_2) + INT32.pack(len(options)) + names)


def parameter_status(name: str, value: str) -> bytes:
    """A setting of the session, as it is now."""
    return message(b"S", name.encode() + b"\0" + value.encode() + b"\0")


def backend_key(number: int, secret: bytes) -> bytes:
    """What the client sends back to cancel what this session runs."""
    return message(b"K", UINT32.pack(number) + secret)


def ready(status: bytes) -> bytes:
    """Ready for the next query: `I` idle, `T` in a transaction, `E` in one that has failed."""
    return message(b"Z", status)


def command_complete(tag: str) -> bytes:
    """A statement has ended, with its tag, such as `SELECT 5`."""
    return message(b"C", tag.encode() + b"\0")


def notice(fields: Mapping[str, str]) -> bytes:
    """A warning or a note; the result goes on."""
    return message(b"N", _fields(fields))


def error(fields: Mapping[str, str]) -> bytes:
    """An error; `fields` by their letters (`S`, `V`, `C`, `M`, `D`, `H`, `P`)."""
    return message(b"E", _fields(fields))


def _fields(fields: Mapping[str, str]) -> bytes:
    parts = [
        letter.encode() + value.replace("\0", " ").encode("utf-8", "replace") + b"\0"
        for letter, value in fields.items()
    ]
    return b"".join(parts) + b"\0"


class Field(NamedTuple):
    """One column of a row description; `size` is -1 for a type of any length."""

    name: str
    oid: int
    size: int
    modifier: int
    format: int


def row_description(fields: Sequence[Field]) -> bytes:
    """The columns of the rows that follow."""
    parts = [UINT16.pack(len(fields))]
    for field in fields:
        name = field.name.replace("\0", " ").encode("utf-8", "replace")
        described = _FIELD.pack(0, 0, field.oid, field.size, field.modifier, field.format)
        parts += name, b"\0", described
    return message(b"T", b"".join(parts))


def parameter_description(types: Sequence[int]) -> bytes:
    """The types of a statement's parameters, as oids."""
    oids = b"".join([UINT32.pack(each) for each in types])
    return message(b"t", UINT16.pack(len(types)) + oids)


def copy_out(columns: int, form: int) -> bytes:
    """That the rows of a COPY follow, in a format of text (0) or in the binary one (1)."""
    return message(b"H", bytes([form]) + UINT16.pack(columns) + UINT16.pack(form) * columns)


def copy_data(data: bytes) -> bytes:
    """Bytes of a COPY."""
    return message(b"d", data)
