"""Sends the first form of a result whose reply is within a limit (`truncation.Form`).

The size is that of the whole JSON-RPC reply in UTF-8, without the end of the line, as the kernel
is about to send it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.products.datalog.surface.truncation import Form
from tidegate.protocol.model import RpcError, ToolResult, text

TOO_LARGE = -32000


def first_fitting(forms: Iterator[Form], most_bytes: int) -> ToolResult:
    """The result in its first form, which gives way to the next while the reply is too large. If
    no form fits, the reply is a JSON-RPC error."""
    return _result(next(forms), forms, most_bytes)


def _result(form: Form, rest: Iterator[Form], most_bytes: int) -> ToolResult:
    def shrink(size: int) -> ToolResult | None:
        if size <= most_bytes:
            return None
        shorter = next(rest, None)
        if shorter is None:
            raise result_too_large(most_bytes)
        return _result(shorter, rest, most_bytes)

    content = None if form.text is None else [text(form.text)]
    return ToolResult(content=content, body=form.body, shrink=shrink)


def result_too_large(most_bytes: int) -> RpcError:
    """The reply where not even the shortest form fits: the id of the request is too long."""
    data: dict[str, Any] = {":code": ":result-too-large", ":kind": ":bytes", ":limit": most_bytes}
    return RpcError(TOO_LARGE, "The reply exceeds the limit of bytes in every form.", data)
