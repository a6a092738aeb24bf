"""What sessions at every database server have in common: a line to the server, and its state, and
how a statement is sent on it."""

from __future__ import annotations

from typing import ClassVar, Generic, Protocol, TypeVar

from tidegate.errors import Code, TidegateError


class Line(Protocol):
    """The protocol of one connection. `unanswered`: how much was asked whose end has not been
    read. The rest is as in `pool.PooledConnection`."""

    @property
    def open(self) -> bool: ...

    @property
    def unanswered(self) -> int: ...

    @property
    def gone(self) -> bool: ...

    def check(self) -> bool: ...

    def close(self) -> None: ...

    async def closed(self) -> None: ...


LineT = TypeVar("LineT", bound=Line)


class ServerSession(Generic[LineT]):
    """The members of `pool.PooledConnection` that only read the line. A server keeps the time
    limit itself, so a statement is interrupted from here a little later."""

    late_s: ClassVar[float] = 0.25
    grace_s: ClassVar[float] = 2.0

    __slots__ = ("line",)

    def __init__(self, line: LineT) -> None:
        self.line = line

    @property
    def alive(self) -> bool:
        return self.line.open

    @property
    def busy(self) -> bool:
        return self.line.unanswered > 0

    @property
    def gone(self) -> bool:
        return self.line.gone

    def check(self) -> bool:
        return self.line.check()

    def close(self) -> None:
        self.line.close()

    async def closed(self) -> None:
        await self.line.closed()


def encode_statement(text: str) -> bytes:
    """A statement as it is sent. Raises: TidegateError SQL_UNREADABLE."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise TidegateError(Code.SQL_UNREADABLE, "The statement holds a lone surrogate.") from None
    if b"\0" in encoded:
        raise TidegateError(Code.SQL_UNREADABLE, "The statement holds a NUL character.")
    return encoded
