"""Signs messages as the specification Standard Webhooks 1.0 says: HMAC-SHA256 over id, time, body.

The receiver finds in it who sent a message, that it is whole, and when it was sent.
"""

from __future__ import annotations

import base64
import binascii
import hmac

from tidegate.errors import Code, TidegateError
from tidegate.secrets import resolve_option

_PREFIX = "whsec_"
_FEWEST_BYTES, _MOST_BYTES = 24, 64


def read_secret(reference: str) -> bytes:
    """The secret that a reference of the settings leads to.

    Raises: TidegateError CONFIG_INVALID, which does not hold it.
    """
    try:
        text = resolve_option(reference).strip()
    except TidegateError as error:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"`approvals.webhook.secret`: {error.message}",
            hint="Let the account of the server read the secret.",
            details=error.details,
        ) from None
    try:
        key = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(_PREFIX) or not _FEWEST_BYTES <= len(key) <= _MOST_BYTES:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"`approvals.webhook.secret` is not `{_PREFIX}` and the Base64 of {_FEWEST_BYTES} to"
            f" {_MOST_BYTES} bytes.",
            hint="Make one from 32 random bytes, and give it to your server as well.",
        )
    return key


def sign(key: bytes, id: str, timestamp: int, body: bytes) -> str:
    """The value of the header `webhook-signature`."""
    signed = b"%s.%d.%s" % (id.encode(), timestamp, body)
    return f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"
