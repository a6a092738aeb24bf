"""SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677): what a server keeps to check a secret by a proof.

A verifier is made from the secret once and cannot be made later from the digest that is kept of a
token. It is text in the form that PostgreSQL uses for `pg_authid.rolpassword`:
`SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`, the last three in base64.
"""

from __future__ import annotations

import hmac
import os
from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac, sha256

import msgspec

ITERATIONS = 4_096
"""The least that RFC 7677 allows. More would protect secrets that can be guessed; ours are 256
random bits."""

_NAME = "SCRAM-SHA-256"
_SALT_BYTES = 16


class ScramVerifier(msgspec.Struct, frozen=True):
    """The parts of a verifier."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def check(self, proof: bytes, auth_message: bytes) -> bool:
        """Whether the client's proof shows that it knows the secret (RFC 5802, section 3)."""
        if len(proof) != len(self.stored_key):
            return False
        signature = hmac.digest(self.stored_key, auth_message, "sha256")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        return hmac.compare_digest(sha256(client_key).digest(), self.stored_key)

    def server_signature(self, auth_message: bytes) -> bytes:
        """What proves to the client that this server holds the verifier."""
        return hmac.digest(self.server_key, auth_message, "sha256")


def make_verifier(secret: str) -> str:
    """The verifier of a secret in printable ASCII, with a new salt, as text. Milliseconds.

    Other characters would have to be prepared by SASLprep (RFC 4013) first; tokens have none.
    """
    salt = os.urandom(_SALT_BYTES)
    salted = pbkdf2_hmac("sha256", secret.encode("ascii"), salt, ITERATIONS)
    stored = sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    parts = [b64encode(part).decode() for part in (salt, stored, server)]
    return f"{_NAME}${ITERATIONS}:{parts[0]}${parts[1]}:{parts[2]}"


def parse_verifier(text: str) -> ScramVerifier:
    """The parts of a verifier as `make_verifier` wrote it. Raises: ValueError."""
    name, first, second = text.split("$")
    if name != _NAME:
        raise ValueError(f"not a {_NAME} verifier")
    iterations, salt = first.split(":")
    stored, server = second.split(":")
    return ScramVerifier(
        b64decode(salt, validate=True),
        int(iterations),
        b64decode(stored, validate=True),
        b64decode(server, validate=True),
    )
