"""Signs requests to AWS: Signature Version 4, as AWS's "Signing AWS API requests" describes it."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec

from tidegate.products.cloud.http.requests import ApiRequest

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SAFE: Final = "-_.~"
_UNSIGNED: Final = frozenset({"authorization", "connection", "expect", "user-agent"})
_ONE_ENCODING: Final = "s3"
"""The one service whose path is not encoded a second time."""


class AwsCredential(msgspec.Struct, frozen=True):
    """What signs a request. No part is ever shown."""

    key_id: str
    secret: str
    session_token: str = ""

    def __repr__(self) -> str:
        return "AwsCredential(...)"


def sign_request(
    request: ApiRequest, credential: AwsCredential, service: str, region: str, now: datetime
) -> ApiRequest:
    """`request` with its date and signature; `now` is in UTC. Headers that sign are replaced."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    payload = hashlib.sha256(request.body or b"").hexdigest()
    headers = [each for each in request.headers if not _is_own(each[0])]
    headers.append(("X-Amz-Date", stamp))
    if service == _ONE_ENCODING:
        headers.append(("X-Amz-Content-Sha256", payload))
    if credential.session_token:
        headers.append(("X-Amz-Security-Token", credential.session_token))
    parts = urlsplit(request.url)
    signed = sorted([("host", parts.netloc), *((name.lower(), value) for name, value in headers)])
    signed = [each for each in signed if each[0] not in _UNSIGNED]
    names = ";".join(name for name, _ in signed)
    canonical = "\n".join(
        (
            request.verb,
            _path(parts.path, service),
            _query(parts.query),
            *(f"{name}:{' '.join(value.split())}" for name, value in signed),
            "",
            names,
            payload,
        )
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{digest}"
    key = f"AWS4{credential.secret}".encode()
    for part in (stamp[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    headers.append(
        (
            "Authorization",
            f"{_ALGORITHM} Credential={credential.key_id}/{scope}, SignedHeaders={names}, "
            f"Signature={signature}",
        )
    )
    return msgspec.structs.replace(request, headers=tuple(headers))


def _is_own(name: str) -> bool:
    return name.lower() in (
        "authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token",
    )  # fmt: skip


def _path(path: str, service: str) -> str:
    if not path:
        return "/"
    return path if service == _ONE_ENCODING else quote(path, safe=f"/{_SAFE}")


def _query(query: str) -> str:
    pairs = [
        (quote(name, safe=_SAFE), quote(value, safe=_SAFE))
        for name, value in parse_qsl(query, keep_blank_values=True)
    ]
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))
