"""The form of a backup: encrypted with a passphrase, in parts, so that its size needs no memory.

The key is made of the passphrase by scrypt. Each part is sealed by AES-256-GCM with a nonce of its
number, and the last one is marked: a part that was changed, moved, left out or cut off is found.
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.typed_values import decode_json

MAGIC = b"tidegate backup 1\n"
PART = 1_048_576
SHORTEST = 12
_COST, _BLOCK, _LANES = 2**17, 8, 1
_MOST_HEADER = 1_024
_SALT, _PREFIX, _TAG = 16, 7, 16


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    salt: str
    prefix: str
    cost: int


def refuse(what: str, hint: str = "Use another copy of the backup.") -> TidegateError:
    """The error for a backup that cannot be used."""
    return TidegateError(Code.ARGUMENT_INVALID, f"The backup cannot be used: {what}.", hint=hint)


class EncryptingWriter:
    """A file for writing whose content is encrypted into `file`. `close` ends the last part."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        if len(passphrase) < SHORTEST:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The passphrase of a backup has at least {SHORTEST} characters.",
                hint="The file lets anyone who has it try passphrases as fast as a machine can.",
            )
        salt, prefix = os.urandom(_SALT), os.urandom(_PREFIX)
        self._head = msgspec.json.encode(_Header(salt.hex(), prefix.hex(), _COST))
        self._cipher = _Cipher(_derive(passphrase, salt, _COST), prefix, self._head)
        self._file = file
        self._rest = bytearray()
        file.write(MAGIC + self._head + b"\n")

    def write(self, content: bytes) -> int:
        self._rest += content
        while len(self._rest) > PART:
            self._file.write(self._cipher.seal(bytes(self._rest[:PART]), is_last=False))
            del self._rest[:PART]
        return len(content)

    def close(self) -> None:
        self._file.write(self._cipher.seal(bytes(self._rest), is_last=True))
        self._rest.clear()


class DecryptingReader:
    """A file for reading of what was encrypted. Raises: TidegateError ARGUMENT_INVALID, also from
    `read`, as soon as a part is not what was written."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        if file.read(len(MAGIC)) != MAGIC:
            raise refuse("it is no backup of Tidegate")
        head = file.readline(_MOST_HEADER).rstrip(b"\n")
        try:
            header = decode_json(head, _Header)
            salt, prefix = bytes.fromhex(header.salt), bytes.fromhex(header.prefix)
        except (msgspec.MsgspecError, ValueError):
            raise refuse("its beginning was changed") from None
        if header.cost != _COST or len(salt) != _SALT or len(prefix) != _PREFIX:
            raise refuse("its beginning was changed")
        self._cipher = _Cipher(_derive(passphrase, salt, _COST), prefix, head)
        self._file = file
        self._rest = self._ahead = b""
        self._is_first = True
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        parts = [self._rest]
        found = len(self._rest)
        while not self._ended and (size < 0 or found < size):
            parts.append(self._next())
            found += len(parts[-1])
        whole = b"".join(parts)
        if size < 0:
            self._rest = b""
            return whole
        self._rest = whole[size:]
        return whole[:size]

    def _next(self) -> bytes:
        text = self._ahead + self._file.read(PART + _TAG + 1 - len(self._ahead))
        sealed, self._ahead = text[: PART + _TAG], text[PART + _TAG :]
        self._ended = not self._ahead
        plain = self._cipher.unseal(sealed, is_last=self._ended)
        if plain is None:
            if self._is_first:
                raise refuse("this is not its passphrase, or it was changed", "Try it again.")
            raise refuse("a part of it was changed or cut off")
        self._is_first = False
        return plain


class _Cipher:
    def __init__(self, key: bytes, prefix: bytes, bound: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._sealer = AESGCM(key)
        self._prefix = prefix
        self._bound = bound
        self._number = 0

    def seal(self, plain: bytes, *, is_last: bool) -> bytes:
        return self._sealer.encrypt(self._nonce(is_last), plain, self._bound)

    def unseal(self, sealed: bytes, *, is_last: bool) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        try:
            return self._sealer.decrypt(self._nonce(is_last), sealed, self._bound)
        except InvalidTag:
            return None

    def _nonce(self, is_last: bool) -> bytes:
        nonce = self._prefix + struct.pack(">IB", self._number, is_last)
        self._number += 1
        return nonce


def _derive(passphrase: str, salt: bytes, cost: int) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt, 32, cost, _BLOCK, _LANES).derive(passphrase.encode())
