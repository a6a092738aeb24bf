"""The key that all gates of one state share: keys for each purpose are derived from it.

It is kept outside the state, so that who can write the state's tables cannot make what the gates
make with it. HKDF with SHA-256 (RFC 5869), each purpose by a label.
"""

from __future__ import annotations

import hashlib
import hmac

from tidegate.errors import Code, TidegateError

LEAST_LENGTH = 32
"""Characters of a key: that many of base64 or hexadecimal digits cannot be guessed."""
_SALT = b"tidegate cluster key 1"


class ClusterKey:
    """A key of the gates of one state."""

    def __init__(self, text: str) -> None:
        """Raises: TidegateError ARGUMENT_INVALID for one that is too short."""
        text = text.strip()
        if len(text) < LEAST_LENGTH:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The key of the state has fewer than {LEAST_LENGTH} characters.",
                hint="Make one: openssl rand -hex 32",
            )
        self._root = hmac.digest(_SALT, text.encode("utf-8", "surrogatepass"), "sha256")

    def derive(self, *label: str) -> bytes:
        """32 bytes for the purpose of that label."""
        info = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in label)
        return hmac.digest(self._root, info + b"\x01", hashlib.sha256)

    def derive_text(self, *label: str) -> str:
        """64 hexadecimal digits for the purpose of that label."""
        return self.derive(*label).hex()
