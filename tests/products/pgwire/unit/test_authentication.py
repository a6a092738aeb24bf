"""SCRAM-SHA-256 as a server: what proves a secret, and what does not."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac, sha256

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.identity.scram import ScramVerifier, make_verifier, parse_verifier
from tidegate.products.pgwire.authentication import ScramExchange, decoy_secret

SECRET = "tg_secret"
DECOY = decoy_secret()


def verifier() -> ScramVerifier:
    return parse_verifier(make_verifier(SECRET))


def last_message(
    exchange: ScramExchange, secret: str, binding: bytes = b"n,,", tail: bytes = b""
) -> bytes:
    """What a client that knows `secret` sends (RFC 5802, section 3)."""
    bare = b"n=,r=abc"
    answer = exchange.first(b"n,," + bare)
    nonce, salt, rounds = (part[2:] for part in answer.split(b","))
    salted = pbkdf2_hmac("sha256", secret.encode(), b64decode(salt), int(rounds))
    key = hmac.digest(salted, b"Client Key", "sha256")
    unsigned = b"c=" + b64encode(binding) + b",r=" + nonce + tail
    said = bare + b"," + answer + b"," + unsigned
    signature = hmac.digest(sha256(key).digest(), said, "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return unsigned + b",p=" + b64encode(proof)


def test_a_client_that_knows_the_secret_gets_the_proof_of_the_server():
    exchange = ScramExchange(verifier(), "agent", DECOY)
    assert exchange.final(last_message(exchange, SECRET)).startswith(b"v=")


@pytest.mark.parametrize(
    ("secret", "binding", "tail"),
    [("tg_other", b"n,,", b""), (SECRET, b"y,,", b""), (SECRET, b"n,,", b"x")],
    ids=["secret", "binding", "nonce"],
)
def test_another_secret_binding_or_nonce_is_refused(secret: str, binding: bytes, tail: bytes):
    exchange = ScramExchange(verifier(), "agent", DECOY)
    with pytest.raises(TidegateError) as refused:
        exchange.final(last_message(exchange, secret, binding, tail))
    assert refused.value.code is Code.AUTH_INVALID


def test_a_name_without_a_verifier_is_refused_at_the_end_and_keeps_its_salt():
    salts: set[bytes] = set()
    for _ in range(2):
        exchange = ScramExchange(None, "nobody", DECOY)
        message = last_message(exchange, SECRET)
        with pytest.raises(TidegateError) as refused:
            exchange.final(message)
        assert "wrong" in refused.value.message
        first = ScramExchange(None, "nobody", DECOY).first(b"n,,n=,r=abc")
        salts.add(first.split(b",")[1])
    assert len(salts) == 1


@pytest.mark.parametrize(
    "first",
    [b"", b"n,,", b"n,,n=a,r=", b"p=tls-unique,,n=a,r=abc", b"n,,n=a,r=a\0c", b"n,,r=abc",
     b"n,,n=a,r=" + b"x" * 600, b"n,,n=a,r=abc,m=ext"],
)  # fmt: skip
def test_a_first_message_that_cannot_be_read_is_refused(first: bytes):
    with pytest.raises(TidegateError) as refused:
        ScramExchange(verifier(), "agent", DECOY).first(first)
    assert refused.value.code is Code.AUTH_INVALID


@pytest.mark.parametrize("last", [b"", b"c=biws", b"c=biws,r=x,p=!", b"c=biws,r=abc,p=AAAA"])
def test_a_last_message_that_cannot_be_read_is_refused(last: bytes):
    exchange = ScramExchange(verifier(), "agent", DECOY)
    exchange.first(b"n,,n=,r=abc")
    with pytest.raises(TidegateError):
        exchange.final(last)


def test_a_last_message_without_a_first_is_refused():
    with pytest.raises(TidegateError):
        ScramExchange(verifier(), "agent", DECOY).final(b"c=biws,r=abc,p=AAAA")


@pytest.mark.parametrize(
    ("named", "taken"),
    [(b"", True), (b"a=u", True), (b"a=other", False), (b"a=u=2Cx", False), (b"a=U", False)],
)
def test_a_client_that_asks_to_be_another_user_is_refused(named: bytes, taken: bool):
    exchange = ScramExchange(verifier(), "u", DECOY)
    message = b"n," + named + b",n=,r=abc"
    if taken:
        assert exchange.first(message).startswith(b"r=abc")
        return
    with pytest.raises(TidegateError, match="another user") as caught:
        exchange.first(message)
    assert caught.value.code is Code.AUTH_INVALID
