"""Texts on their way to a database server and from it, as every engine of a server handles them."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError


def encode_statement(text: str) -> bytes:
    """A statement as it is sent. Raises: TidegateError SQL_UNREADABLE."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise TidegateError(Code.SQL_UNREADABLE, "The statement holds a lone surrogate.") from None
    if b"\0" in encoded:
        raise TidegateError(Code.SQL_UNREADABLE, "The statement holds a NUL character.")
    return encoded
