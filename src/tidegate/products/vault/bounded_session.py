"""Requests to the vault whose answers are bounded, in size and in time.

The library's time limit is for each read of a connection: a server that sends a byte now and then
would keep a thread for ever, and there are few threads that read secrets.
"""

from __future__ import annotations

import time
from typing import Any

import requests
import urllib3.exceptions

MOST_BYTES = 1_048_576
"""Of an answer: a secret has at most 64 KiB, and a path a few of them."""
_PART = 65_536


class TooLargeError(requests.RequestException):
    """The answer is larger than any of the API."""


class BoundedSession(requests.Session):
    """A session whose answers are read within `total_s`, once their headers are there."""

    def __init__(self, total_s: float) -> None:
        super().__init__()
        self._total_s = total_s

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        until = time.monotonic() + self._total_s
        answer = super().send(request, **{**kwargs, "stream": True})
        try:
            answer._content = _read(answer.raw, until)  # pyright: ignore[reportPrivateUsage] - as the library sets it itself
        except urllib3.exceptions.ReadTimeoutError as error:
            raise requests.exceptions.ReadTimeout(str(error)) from None
        except urllib3.exceptions.HTTPError as error:
            raise requests.exceptions.ConnectionError(str(error)) from None
        finally:
            answer.close()
        return answer


def _read(raw: Any, until: float) -> bytes:
    """Raises: requests.RequestException, and what the connection raises."""
    content = bytearray()
    while part := raw.read1(_PART, decode_content=True):
        content += part
        if len(content) > MOST_BYTES:
            raise TooLargeError
        if time.monotonic() > until:
            raise requests.exceptions.ReadTimeout
    return bytes(content)
