"""The operator's passphrase, which grants of rights ask for: kept as a salted scrypt hash
(RFC 7914) in a file of the state directory that its owner alone can read."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.system.private_files import replace_file
from tidegate.typed_values import decode_json

SHORTEST = 8
COST_BITS = 15
"""The cost of a hash that is made: 32 MB and some 0.1 s of CPU. It is kept with the hash, so that
those of another cost stay good."""
_BLOCK, _PARALLEL = 8, 1
_MEMORY = 64 * 1024 * 1024
_POSSIBLE_BITS = range(1, 16)  # more do not fit into the memory


class _Kept(msgspec.Struct, forbid_unknown_fields=True):
    salt: bytes
    hash: bytes


class OperatorPassphrase:
    """The passphrase of one state directory; `path` is its file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def is_set(self) -> bool:
        """Whether there is one; a file that cannot be read counts as one, and fits none."""
        return self._path.exists()

    def set(self, passphrase: str) -> None:
        """Keep this one in place of the one before.

        Raises: TidegateError ARGUMENT_INVALID if it is too short, STATE_FAILED.
        """
        if len(passphrase) < SHORTEST:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The passphrase is shorter than {SHORTEST} characters.",
                hint="Choose a longer one; nothing was changed.",
            )
        salt = secrets.token_bytes(16)
        try:
            replace_file(
                self._path, msgspec.json.encode(_Kept(salt, hash_passphrase(passphrase, salt)))
            )
        except OSError as error:
            raise self._failed(f"cannot be written: {error.strerror}") from error

    def remove(self) -> None:
        """Ask for a typed word again. Raises: TidegateError STATE_FAILED."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise self._failed(f"cannot be removed: {error.strerror}") from error

    def matches(self, passphrase: str) -> bool:
        """Whether it is this one. Takes some 0.1 s of CPU. Raises: TidegateError STATE_FAILED."""
        try:
            kept = decode_json(self._path.read_bytes(), _Kept)
        except (OSError, msgspec.MsgspecError) as error:
            raise self._failed("cannot be read or does not hold a passphrase") from error
        return fits(passphrase, kept.salt, kept.hash)

    def _failed(self, problem: str) -> TidegateError:
        return TidegateError(
            Code.STATE_FAILED,
            f"The operator's passphrase `{self._path}` {problem}",
            details={"path": str(self._path)},
        )


def hash_passphrase(passphrase: str, salt: bytes) -> bytes:
    """The cost, in one byte, and the scrypt hash of a passphrase. Takes some 0.1 s of CPU."""
    return bytes([COST_BITS]) + _scrypt(passphrase, salt, COST_BITS)


def fits(passphrase: str, salt: bytes, hashed: bytes) -> bool:
    """Whether the hash is of this passphrase. Takes as long for one that is not."""
    bits = hashed[0] if hashed and hashed[0] in _POSSIBLE_BITS else COST_BITS
    return hmac.compare_digest(_scrypt(passphrase, salt, bits), hashed[1:])


def _scrypt(passphrase: str, salt: bytes, bits: int) -> bytes:
    return hashlib.scrypt(
        passphrase.encode(), salt=salt, n=2**bits, r=_BLOCK, p=_PARALLEL, maxmem=_MEMORY, dklen=32
    )
