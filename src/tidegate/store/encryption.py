"""Encrypts bytes for the state's database, so that a copy of it alone shows nothing of them. The
key is not in it (`secret_file.py`)."""

from __future__ import annotations

import os

_NONCE = 12


def encrypt(key: bytes, plain: bytes, bound: bytes) -> bytes:
    """The bytes, encrypted, and bound to what they belong to."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # only where needed

    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, plain, bound)


def decrypt(key: bytes, encrypted: bytes, bound: bytes) -> bytes | None:
    """The bytes that were encrypted; None if they were with another key, for something else, or
    were tampered with."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(encrypted[:_NONCE], encrypted[_NONCE:], bound)
    except (InvalidTag, ValueError):  # ValueError: it is too short for any
        return None
