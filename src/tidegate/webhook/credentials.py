"""What lets a message in at its receiver: the URL, and the signature made with the secret.

Both are read for each message, so what is changed in their files holds from the next one. Messages
are signed as the specification Standard Webhooks 1.0 says: HMAC-SHA256 over id, time and body. The
receiver finds in it who sent a message, that it is whole, and when it was sent.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time

from tidegate.config.addresses import HttpUrl
from tidegate.config.webhook import WebhookSettings, parse_webhook_url
from tidegate.errors import Code, TidegateError
from tidegate.secrets.references import is_reference, resolve_option

_PREFIX = "whsec_"
_FEWEST_BYTES, _MOST_BYTES = 24, 64


def read_url(settings: WebhookSettings) -> tuple[str, HttpUrl]:
    """The URL that messages go to, whole and taken apart.

    Raises: TidegateError CONFIG_INVALID, which does not hold it.
    """
    url = settings.url
    if is_reference(url):
        url = _resolve(url, "approvals.webhook.url")
    return url, parse_webhook_url(url)


def read_secret(reference: str) -> bytes:
    """The secret that a reference of the settings leads to.

    Raises: TidegateError CONFIG_INVALID, which does not hold it.
    """
    text = _resolve(reference, "approvals.webhook.secret")
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


def make_headers(key: bytes, id: str, body: bytes) -> tuple[tuple[str, str], ...]:
    """The headers of a message that is sent now."""
    now = int(time.time())
    return (
        ("webhook-id", id),
        ("webhook-timestamp", str(now)),
        ("webhook-signature", sign(key, id, now, body)),
    )


def _resolve(reference: str, setting: str) -> str:
    try:
        return resolve_option(reference).strip()
    except TidegateError as error:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"`{setting}`: {error.message}",
            hint="Let the account of the server read the secret.",
            details=error.details,
        ) from None
