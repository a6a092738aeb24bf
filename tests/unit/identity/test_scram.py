"""What a token carries for SCRAM-SHA-256, checked by playing the client of RFC 5802."""

import hmac
import os
from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac, sha256

import pytest

from tidegate.identity.scram import ITERATIONS, make_verifier, parse_verifier
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Scope
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState


def conversation(verifier):
    """The AuthMessage of a login against this verifier."""
    nonce = b64encode(os.urandom(18)).decode()
    salt = b64encode(verifier.salt).decode()
    asked, said = f"n=tidegate,r={nonce}", f"r={nonce}x,s={salt},i={verifier.iterations}"
    return f"{asked},{said},c=biws,r={nonce}x".encode()


def proof(secret, verifier, auth_message):
    salted = pbkdf2_hmac("sha256", secret.encode(), verifier.salt, verifier.iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(sha256(client_key).digest(), auth_message, "sha256")
    return bytes(a ^ b for a, b in zip(client_key, signature, strict=True))


def test_the_example_of_rfc_7677_is_checked():
    salt = "W22ZaJ0SNY7soEsUEjb6gQ=="
    stored = "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    server = "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    verifier = parse_verifier(f"SCRAM-SHA-256$4096:{salt}${stored}:{server}")
    auth_message = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    client_proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    assert verifier.check(client_proof, auth_message)
    signature = b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert verifier.server_signature(auth_message) == signature


def test_a_client_with_the_token_is_let_in_and_no_other(tmp_path):
    state = SqliteState(tmp_path / "state.db")
    tokens = Tokens(state.tokens)
    plaintext, made = tokens.create("psql", TokenRights(Scope.READ_ONLY))
    other, _ = tokens.create("another", TokenRights(Scope.READ_ONLY))
    (entry, _) = state.tokens.list()
    assert entry.scram_verifier == made.scram_verifier
    verifier = parse_verifier(entry.scram_verifier)
    assert verifier.iterations == ITERATIONS >= 4096
    message = conversation(verifier)
    assert verifier.check(proof(plaintext, verifier, message), message)
    assert not verifier.check(proof(other, verifier, message), message)
    assert not verifier.check(proof(plaintext, verifier, message), message + b"x")
    assert not verifier.check(b"", message)
    tokens.close()
    state.close()


def test_a_verifier_holds_no_secret_and_differs_each_time():
    first, second = make_verifier("tg_secret"), make_verifier("tg_secret")
    assert first != second
    assert "tg_secret" not in first
    assert b64encode(b"tg_secret").decode() not in first


@pytest.mark.parametrize(
    "text", ["", "SCRAM-SHA-1$4096:YQ==$YQ==:YQ==", "SCRAM-SHA-256$x:YQ==$YQ==:YQ==", "md5abc"]
)
def test_what_is_no_verifier_is_refused(text):
    with pytest.raises(ValueError):
        parse_verifier(text)
