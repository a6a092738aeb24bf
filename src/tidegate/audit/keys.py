"""The key that signs checkpoints, and the current and former public keys that verify them.

The keys have a directory of their own, because a process that can write the log must not be able
to sign it or to choose the keys that the verifier trusts. The private key is a PKCS#8 PEM file,
created on first use. cryptography is imported only to sign or verify, for a fast start.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tidegate.audit.control_records import Checkpoint
from tidegate.errors import Code, TidegateError
from tidegate.system.file_rights import is_open_to_others
from tidegate.system.private_files import create_once, make_private_directory, replace_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# An Ed25519 key in PKCS#8 is these bytes and the 32 of the seed (RFC 8410).
_PKCS8 = bytes.fromhex("302e020100300506032b657004220420")
_PREFIX = "ed25519:"


class Keys:
    """The keys in `directory`, which is created with mode 0700 together with the first key."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._private: Ed25519PrivateKey | None = None
        self._public = b""

    def prepare(self) -> None:
        """Create the private key if it does not exist. Raises: TidegateError STATE_FAILED."""
        try:
            make_private_directory(self.directory)
            if not self._path.exists():
                create_once(self._path, _new_private().encode())
        except OSError as error:
            raise self._failed("cannot be created", error) from error

    def sign(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return the checkpoint with the fingerprint and signature of the current key.

        Raises: TidegateError STATE_FAILED if the key cannot be read or other users can read it.
        """
        private = self._private or self._load()
        named = msgspec.structs.replace(checkpoint, key=fingerprint(self._public), signature="")
        signature = private.sign(named.signed()).hex()
        return msgspec.structs.replace(named, signature=signature)

    def public(self) -> str:
        """The current public key as text. Raises: TidegateError STATE_FAILED."""
        self.prepare()
        if self._private is None:
            self._load()
        return public_text(self._public)

    def trusted(self) -> dict[str, bytes]:
        """Every public key in the directory, by fingerprint. Raises: TidegateError STATE_FAILED."""
        try:
            texts = [path.read_text("ascii") for path in sorted(self.directory.glob("*.pub"))]
        except (OSError, UnicodeDecodeError) as error:
            raise self._failed("cannot be read", error) from error
        return {fingerprint(public): public for public in map(parse_public, texts)}

    def replace(self) -> str:
        """Create a new key, delete the old private key and keep the old public key.

        Running processes continue to use the old key. Returns the new public key as text.
        Raises: TidegateError STATE_FAILED.
        """
        self.public()
        try:
            # An atomic replacement: a process that starts now finds the old key or the new one.
            replace_file(self._path, _new_private().encode())
        except OSError as error:
            raise self._failed("cannot be replaced", error) from error
        self._private = None
        return self.public()

    @property
    def _path(self) -> Path:
        return self.directory / "signing.key"

    def _load(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        try:
            if is_open_to_others(self._path.stat()):
                raise TidegateError(
                    Code.STATE_FAILED,
                    f"Other users can read the audit log's key `{self._path}`.",
                    hint=f"Run `chmod 600 {self._path}` and `tidegate audit key --replace`.",
                    details={"path": str(self._path)},
                )
            lines = self._path.read_text("ascii").split("\n")
            der = b64decode(lines[1], validate=True)
        except (OSError, UnicodeDecodeError, IndexError, NotBase64) as error:
            raise self._failed("cannot be read", error) from error
        if len(der) != len(_PKCS8) + 32 or not der.startswith(_PKCS8):
            raise self._failed("is not an Ed25519 key", None)
        self._private = Ed25519PrivateKey.from_private_bytes(der[len(_PKCS8) :])
        self._public = self._private.public_key().public_bytes_raw()
        self._publish()
        return self._private

    def _publish(self) -> None:
        path = self.directory / f"{fingerprint(self._public)}.pub"
        try:
            if not path.exists():
                text = f"{public_text(self._public)}\n"
                replace_file(path, text.encode(), all_may_read=True)
        except OSError as error:
            raise self._failed("cannot be written", error) from error

    def _failed(self, what: str, error: Exception | None) -> TidegateError:
        reason = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
        return TidegateError(
            Code.STATE_FAILED,
            f"The audit log's key in `{self.directory}` {what}{reason}.",
            details={"path": str(self.directory)},
        )


def _new_private() -> str:
    encoded = b64encode(_PKCS8 + os.urandom(32)).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{encoded}\n-----END PRIVATE KEY-----\n"


def fingerprint(public: bytes) -> str:
    """The name of a public key: the first 16 hexadecimal digits of its SHA-256."""
    return sha256(public).hexdigest()[:16]


def public_text(public: bytes) -> str:
    """A public key as text: `ed25519:` and 44 characters of base64."""
    return _PREFIX + b64encode(public).decode()


def parse_public(text: str) -> bytes:
    """Decode the text of `public_text` to 32 bytes. Raises: TidegateError ARGUMENT_INVALID."""
    try:
        public = b64decode(text.strip().removeprefix(_PREFIX), validate=True)
    except (NotBase64, ValueError):
        public = b""
    if len(public) != 32:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "This is not a public key of the audit log.",
            hint="Give the key that `tidegate audit key` prints.",
        )
    return public


def is_signed(checkpoint: Checkpoint, trusted: dict[str, bytes]) -> bool:
    """Whether the checkpoint has a valid signature of one of the trusted keys."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    public = trusted.get(checkpoint.key)
    if public is None:
        return False
    try:
        signature = bytes.fromhex(checkpoint.signature)
        Ed25519PublicKey.from_public_bytes(public).verify(signature, checkpoint.signed())
    except (ValueError, InvalidSignature):
        return False
    return True
