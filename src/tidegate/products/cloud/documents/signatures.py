"""Verifies the signatures of provider documents.

A `.sig` file is base64 of 15 bytes of time, as Go's `time.Time.MarshalBinary` writes it, and of an
Ed25519 signature (RFC 8032, 64 bytes) over the document followed by these 15 bytes. The key is that
of an X.509 certificate; the time must lie within the certificate's validity.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from typing import Final

from tidegate.errors import Code, TidegateError

_TIME_BYTES: Final = 15
_SIGNATURE_BYTES: Final = 64
_TIME_VERSION: Final = 1
_YEAR_ONE: Final = datetime(1, 1, 1, tzinfo=UTC)


class Verifier:
    """Verifies documents against the certificate in `pem`.

    Raises: TidegateError DOCUMENT_UNTRUSTED if it is no certificate with an Ed25519 key.
    """

    def __init__(self, pem: bytes) -> None:
        # Imported here: registries that are not verified need no X.509.
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            certificate = x509.load_pem_x509_certificate(pem)
            key = certificate.public_key()
        except ValueError as error:
            raise _untrusted(
                "The certificate of the registry", f"it cannot be read ({error})"
            ) from None
        if not isinstance(key, Ed25519PublicKey):
            raise _untrusted(
                "The certificate of the registry", "its key is not of the kind Ed25519"
            )
        self._key = key
        self._from = certificate.not_valid_before_utc
        self._until = certificate.not_valid_after_utc

    def verify(self, content: bytes, signature: bytes, name: str) -> datetime:
        """When `content` was signed, in UTC; `signature` is the content of its `.sig` file.

        Raises: TidegateError DOCUMENT_UNTRUSTED that names the document `name`.
        """
        from cryptography.exceptions import InvalidSignature

        try:
            raw = b64decode(signature.strip(), validate=True)
        except binascii.Error:
            raise _untrusted(name, "its signature is not base64") from None
        if len(raw) != _TIME_BYTES + _SIGNATURE_BYTES or raw[0] != _TIME_VERSION:
            raise _untrusted(name, "its signature has another form than `.sig` files have")
        time = raw[:_TIME_BYTES]
        try:
            self._key.verify(raw[_TIME_BYTES:], content + time)
        except InvalidSignature:
            raise _untrusted(name, "its signature is not that of this content") from None
        signed_at = _read_time(time, name)
        if not self._from <= signed_at <= self._until:
            raise _untrusted(
                name,
                f"it was signed at {signed_at:%Y-%m-%d}, and the certificate is valid from "
                f"{self._from:%Y-%m-%d} to {self._until:%Y-%m-%d}",
            )
        return signed_at


def _read_time(time: bytes, name: str) -> datetime:
    """Byte 0 is the version; then seconds since the year 1, nanoseconds, and the zone's minutes."""
    seconds = int.from_bytes(time[1:9], "big", signed=True)
    nanoseconds = int.from_bytes(time[9:13], "big", signed=True)
    try:
        return _YEAR_ONE + timedelta(seconds=seconds, microseconds=nanoseconds // 1_000)
    except OverflowError:
        raise _untrusted(name, "its signature has no time of this era") from None


def _untrusted(name: str, problem: str) -> TidegateError:
    return TidegateError(Code.DOCUMENT_UNTRUSTED, f"{name} is not trusted: {problem}.")
