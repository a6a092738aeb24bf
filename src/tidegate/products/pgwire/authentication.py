"""The login of a client: SCRAM-SHA-256 with a token's name as the user and the token as the
password, or a client certificate that names the token.

Source: RFC 5802, RFC 7677 and RFC 5929 (`tls-server-end-point`); PostgreSQL documentation, "SASL
Authentication". A name without a verifier goes through the same messages with one that nothing
fits, so that neither the answer nor its time tells which names exist.
"""

from __future__ import annotations

import hmac
import os
import re
from base64 import b64decode, b64encode
from hashlib import sha256

from tidegate.errors import Code, TidegateError
from tidegate.identity.scram import ITERATIONS, ScramVerifier

MECHANISM = "SCRAM-SHA-256"
BOUND_MECHANISM = "SCRAM-SHA-256-PLUS"
_NONCE_BYTES = 18
_CLIENT_FIRST = re.compile(
    rb"(?P<gs2>(?P<binding>n|y|p=[A-Za-z0-9.-]+),(?:a=[^,]*)?,)(?P<bare>n=(?P<user>[^,]*),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+))"
)
_CLIENT_FINAL = re.compile(
    rb"(?P<unsigned>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+))"
    rb",p=(?P<proof>[A-Za-z0-9+/=]+)"
)
MAX_NONCE = 512
"""Bytes of a client's nonce: those of drivers have 24."""


def mechanisms(end_point: bytes) -> list[str]:
    """What is offered to a client: with the hash of the certificate that its TLS connection got,
    also the mechanism that is bound to it."""
    return [BOUND_MECHANISM, MECHANISM] if end_point else [MECHANISM]


class ScramExchange:
    """The server's side of one exchange: `first` answers the client's first message, `final` its
    second. Both raise TidegateError AUTH_INVALID."""

    def __init__(
        self,
        verifier: ScramVerifier | None,
        user: str,
        decoy: bytes,
        *,
        mechanism: str = MECHANISM,
        end_point: bytes = b"",
    ) -> None:
        """`decoy` is a secret of this process, from which a name without a verifier gets a salt
        that stays the same. `mechanism` is the client's choice, `end_point` what it may be bound
        to."""
        self._user = user
        self._is_bound = mechanism == BOUND_MECHANISM
        self._end_point = end_point
        self._known = verifier is not None
        self._verifier = verifier or ScramVerifier(
            hmac.digest(decoy, user.encode("utf-8", "replace"), "sha256")[:16],
            ITERATIONS,
            os.urandom(32),
            os.urandom(32),
        )
        self._gs2 = b""
        self._nonce = b""
        self._exchanged = b""

    def first(self, message: bytes) -> bytes:
        """The server's first message: nonce, salt and iterations."""
        found = _CLIENT_FIRST.fullmatch(message)
        if found is None or len(found["nonce"]) > MAX_NONCE:
            raise _invalid("The client's first SCRAM message cannot be read.")
        self._check_binding(found["binding"])
        self._check_identity(found["gs2"])
        self._gs2 = found["gs2"]
        self._nonce = found["nonce"] + b64encode(os.urandom(_NONCE_BYTES))
        salt = b64encode(self._verifier.salt)
        answer = b"r=%b,s=%b,i=%d" % (self._nonce, salt, self._verifier.iterations)
        self._exchanged = found["bare"] + b"," + answer
        return answer

    def _check_identity(self, gs2: bytes) -> None:
        """The header may name whom the client wants to be (`a=name`): that is its user, or no
        one (RFC 5802, section 5.1)."""
        _, _, wanted = gs2.rstrip(b",").partition(b",a=")
        name = wanted.replace(b"=2C", b",").replace(b"=3D", b"=")
        if name and name != self._user.encode("utf-8", "replace"):
            raise _invalid("The client asks by SCRAM to be another user than the one who logs in.")

    def _check_binding(self, flag: bytes) -> None:
        """The client's flag must fit what was offered and chosen (RFC 5802, section 6): one that
        believes that binding is not offered here was lied to by someone between."""
        if flag == b"y" and self._end_point:
            raise _invalid(
                "The client can bind its login to TLS and was not offered it: someone may have"
                " changed the offer on its way."
            )
        if flag.startswith(b"p") != self._is_bound:
            raise _invalid("The client's SCRAM message does not fit the mechanism that it chose.")
        if self._is_bound and flag != b"p=tls-server-end-point":
            raise _invalid("A login is bound to TLS by tls-server-end-point only.")

    def final(self, message: bytes) -> bytes:
        """The server's proof, if the client's holds."""
        found = _CLIENT_FINAL.fullmatch(message)
        if found is None or not self._nonce:
            raise _invalid("The client's last SCRAM message cannot be read.")
        try:
            binding = b64decode(found["binding"], validate=True)
            proof = b64decode(found["proof"], validate=True)
        except ValueError:
            raise _invalid("The client's last SCRAM message is not base64.") from None
        auth_message = self._exchanged + b"," + found["unsigned"]
        same_nonce = hmac.compare_digest(found["nonce"], self._nonce)
        # The client sends its choice of channel binding again under the proof: nothing between
        # the two can have changed it.
        bound_to = self._gs2 + (self._end_point if self._is_bound else b"")
        same_binding = hmac.compare_digest(binding, bound_to)
        proven = self._verifier.check(proof, auth_message)
        if not (proven and same_nonce and same_binding and self._known):
            raise _invalid("The token's name or its secret is wrong.")
        return b"v=" + b64encode(self._verifier.server_signature(auth_message))


def _invalid(message: str) -> TidegateError:
    return TidegateError(
        Code.AUTH_INVALID,
        message,
        hint="The user is a token's name and the password the token: `tidegate token list`.",
    )


def decoy_secret() -> bytes:
    """A secret for `ScramExchange`."""
    return sha256(os.urandom(32)).digest()
