"""What is wrong with a setting."""

from __future__ import annotations

import re

from tidegate.errors import Code, TidegateError

_LOGIN = re.compile(r"([A-Za-z][\w+.-]*://)[^\s`'\"]*@|[^\s`'\"]*:[^\s`'\"]*@")
"""A login before a host, whatever is in it."""
_CUT_LOGIN = re.compile(r"(://(?!\[)[^\s`'\"/:@*]*):(?![0-9]{1,5}(?![^\s`'\"/?#]))[^\s`'\"]+")
"""The beginning of one in a URL of which an error has the beginning alone: what is no port."""
_QUERY = re.compile(r"(://[^\s`'\"?]*\?)[^\s`'\"]+")


def invalid(message: str, hint: str | None = None) -> TidegateError:
    """A setting that cannot be used. Of a URL that the message quotes it shows neither a login nor
    a query: they may hold a secret, and errors are logged."""
    shown = _LOGIN.sub(r"\1***@", message)
    shown = _QUERY.sub(r"\1***", _CUT_LOGIN.sub(r"\1:***", shown))
    return TidegateError(Code.CONFIG_INVALID, shown, hint=hint)
