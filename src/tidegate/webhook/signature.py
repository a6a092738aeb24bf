"""Signs messages as the specification Standard Webhooks 1.0 says: HMAC-SHA256 over id, time, body.

The receiver finds in it who sent a message, that it is whole, and when it was sent.
"""

from __future__ import annotations

import base64
import hmac
import time


def sign(key: bytes, id: str, timestamp: int, body: bytes) -> str:
    """The value of the header `webhook-signature`."""
    signed = b"%s.%d.%s" % (id.encode(), timestamp, body)
    return f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def make_headers(key: bytes, id: str, body: bytes) -> tuple[tuple[str, str], ...]:
    """The headers of a message that is sent now."""
    now = int(time.time())
    return (
        ("webhook-id", id),
        ("webhook-timestamp", str(now)),
        ("webhook-signature", sign(key, id, now, body)),
    )
