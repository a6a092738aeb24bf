"""Callers that take the name of another: what rules and roles give to a token by its name is given
to no other kind of caller."""

from __future__ import annotations

import asyncio
import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tidegate.config.oauth import OAuthSettings
from tidegate.errors import Code, TidegateError
from tidegate.identity.oauth import OAuth
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Scope
from tidegate.model.source_settings import Mask, RunAs
from tidegate.model.sources import Source
from tidegate.policy.data_rules import rules_for
from tidegate.policy.run_as import resolve_run_as
from tidegate.sql.language import LANGUAGE
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState

ISSUER, RESOURCE = "https://login.example.com", "https://gate.example.com/mcp"
KEY = ec.generate_private_key(ec.SECP256R1())
MASK = Mask("people.email", except_tokens=("billing",))
SOURCE = Source(
    "s", "shop", "x:///", "postgres", "postgres", masks=(MASK,),
    run_as=RunAs(roles=(("billing", "billing_role"),)),
)  # fmt: skip


def holder(**changed):
    """Who a token of the authorization server is, that says `changed`."""
    made = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key()))
    settings = OAuthSettings(
        issuer=ISSUER, resource=RESOURCE, scopes={"db": "readOnly"}, jwks_url=f"{ISSUER}/keys"
    )
    verifier = OAuth(settings, frozenset({RESOURCE}), fetch=lambda url: {"keys": [made]})
    said = {
        "iss": ISSUER, "aud": RESOURCE, "sub": "mallory", "client_id": "c-1", "scope": "db",
        "exp": int(time.time()) + 60, **changed,
    }  # fmt: skip
    said = {name: value for name, value in said.items() if value is not None}
    return asyncio.run(verifier.verify(jwt.encode(said, KEY, "ES256", {"typ": "at+jwt"})))


@pytest.mark.parametrize(
    "said",
    [
        {"client_id": "billing"},
        {"client_id": None, "azp": "billing"},
        {"client_id": None, "sub": "billing"},
        {"sub": "billing"},
    ],
)
def test_a_client_that_registers_under_a_tokens_name_gets_nothing_of_that_token(said):
    actor = holder(**said)
    data_rules = rules_for(actor, SOURCE, LANGUAGE)
    assert data_rules is not None
    assert data_rules.masks == (("people.email", "nothing"),)
    with pytest.raises(TidegateError) as caught:
        resolve_run_as(actor, SOURCE)
    assert caught.value.code is Code.POLICY_IDENTITY


@pytest.mark.parametrize(
    "said",
    [
        {"client_id": ["billing"]},
        {"client_id": ""},
        {"client_id": "a\nb"},
        {"sub": "a\u202eb"},
        {"sub": ""},
        {"exp": 10**400},
        {"exp": float("inf")},
    ],
)
def test_a_token_with_a_name_or_an_end_out_of_shape_lets_no_one_in(said):
    with pytest.raises(TidegateError) as caught:
        holder(**said)
    assert caught.value.code is Code.AUTH_INVALID


@pytest.mark.parametrize(
    "name", ["stdio", "cli", "anonymous", "bridge", "CLI", "oauth:claude", "OAuth:#alice"]
)
def test_no_token_takes_the_name_of_a_caller_without_one(tmp_path, name):
    store = SqliteState(tmp_path / "state.db")
    tokens = Tokens(store.tokens)
    with pytest.raises(TidegateError) as caught:
        tokens.create(name, TokenRights(Scope.READ_ONLY))
    assert caught.value.code is Code.ARGUMENT_INVALID
    assert store.tokens.list() == ()
    tokens.close()
    store.close()
