"""Tokens of an authorization server: one that is right gets in, one wrong in anything does not."""

import asyncio
import base64
import json
import time
import warnings
from functools import cache

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tidegate.config.oauth import OAuthSettings
from tidegate.errors import Code, TidegateError
from tidegate.identity.jwks import AGAIN_S, FRESH_S, MOST_BYTES, STALE_S, Keys, metadata_urls
from tidegate.identity.oauth import LEEWAY_S, OAuth
from tidegate.model.actors import Scope

ISSUER = "https://login.example.com"
RESOURCE = "https://gate.example.com/mcp"
SCOPES = {"db:read": "readOnly", "db:write": "readWrite", "db:admin": "fullAccess"}
PRIVATE = {
    "rsa": rsa.generate_private_key(65537, 2048),
    "weak": rsa.generate_private_key(65537, 1024),
    "ec": ec.generate_private_key(ec.SECP256R1()),
    "ed": ed25519.Ed25519PrivateKey.generate(),
    "stranger": rsa.generate_private_key(65537, 2048),
}
ALGORITHMS = {"rsa": "RS256", "weak": "RS256", "ec": "ES256", "ed": "EdDSA", "stranger": "RS256"}


@cache
def public(name):
    made = {"rsa": jwt.algorithms.RSAAlgorithm, "ec": jwt.algorithms.ECAlgorithm}.get(
        {"weak": "rsa", "stranger": "rsa"}.get(name, name), jwt.algorithms.OKPAlgorithm
    )
    return {**made.to_jwk(PRIVATE[name].public_key(), as_dict=True), "kid": name, "use": "sig"}


class Harness:
    """An issuer with keys, and a clock; counts what is fetched."""

    def __init__(self, **settings):
        self.keys = [public(name) for name in ("rsa", "weak", "ec", "ed")]
        self.fetched = []
        self.fails = False
        self.at = time.time()
        self.settings = OAuthSettings(
            **{"issuer": ISSUER, "resource": RESOURCE, "scopes": SCOPES, **settings}
        )
        self.oauth = OAuth(
            self.settings,
            frozenset({RESOURCE, f"{RESOURCE}/core"}),
            fetch=self.fetch,
            clock=lambda: self.at,
        )

    def fetch(self, url):
        self.fetched.append(url)
        if self.fails:
            raise OSError("down")
        if url.endswith("/jwks"):
            return {"keys": self.keys}
        return {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/jwks"}

    def verify(self, token):
        return asyncio.run(self.oauth.verify(token))

    def code(self, token):
        with pytest.raises(TidegateError) as caught:
            self.verify(token)
        assert self.oauth.known(token) is None
        return caught.value.code


def claims(**changed):
    now = int(time.time())
    given = {
        "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "exp": now + 600, "iat": now,
        "client_id": "claude", "scope": "openid db:read",
    }  # fmt: skip
    return {name: value for name, value in {**given, **changed}.items() if value is not None}


def token(key="rsa", headers=None, **changed):
    named = {"kid": key, "typ": "at+jwt", **(headers or {})}
    named = {name: value for name, value in named.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jwt.warnings.InsecureKeyLengthWarning)
        return jwt.encode(claims(**changed), PRIVATE[key], ALGORITHMS[key], headers=named)


@pytest.fixture
def harness():
    return Harness()


@pytest.mark.parametrize("key", ["rsa", "ec", "ed"])
def test_a_token_that_is_right_names_its_holder(harness, key):
    exp = int(time.time()) + 600
    actor = harness.verify(token(key, exp=exp))
    assert (actor.id, actor.name) == (f"oauth:{ISSUER}#alice", "oauth:claude")
    assert (actor.scope, actor.sources, actor.tags) == (Scope.READ_ONLY, None, None)
    assert (actor.kind, actor.expires_at) == ("agent", exp + LEEWAY_S)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"scope": "db:write"}, Scope.READ_WRITE),
        ({"scope": "db:admin db:read"}, Scope.FULL_ACCESS),
        ({"scope": None, "scp": ["db:write", "x"]}, Scope.READ_WRITE),
        ({"scope": None, "scp": "db:read"}, Scope.READ_ONLY),
    ],
)
def test_scopes_are_mapped_and_the_widest_counts(harness, said, expected):
    assert harness.verify(token(**said)).scope is expected


@pytest.mark.parametrize("said", [{"scope": None}, {"scope": "DB:READ"}, {"scope": ["db:read", 1]}])
def test_scopes_in_another_shape_count_only_where_they_are_named(harness, said):
    if said["scope"] == ["db:read", 1]:
        assert harness.verify(token(**said)).scope is Scope.READ_ONLY
    else:
        assert harness.code(token(**said)) is Code.POLICY_SCOPE


@pytest.mark.parametrize(
    "made",
    [
        lambda: token(iss="https://evil.example.com"),
        lambda: token(iss=ISSUER + "/"),
        lambda: token(iss=None),
        lambda: token(aud="https://other.example.com/mcp"),
        lambda: token(aud=[]),
        lambda: token(aud=None),
        lambda: token(aud=RESOURCE + "/"),
        lambda: token(exp=None),
        lambda: token(exp="soon"),
        lambda: token(nbf=int(time.time()) + 600),
        lambda: token(iat=int(time.time()) + 600),
        lambda: token(sub=None),
        lambda: token(sub=""),
        lambda: token(sub="x" * 256),
        lambda: token(cnf={"jkt": "abc"}),
        lambda: token(headers={"typ": "dpop+jwt"}),
        lambda: token(headers={"typ": "logout+jwt"}),
        lambda: token(headers={"crit": ["b64"], "b64": True}),
        lambda: token("stranger"),
        lambda: token("stranger", headers={"kid": "rsa"}),
        lambda: token("stranger", headers={"kid": "rsa", "jwk": public("stranger")}),
        lambda: token("stranger", headers={"kid": "x", "jku": "https://evil.example.com/jwks"}),
        lambda: token("weak"),
        lambda: token(headers={"kid": None}),
        lambda: token(headers={"kid": "ec"}),
        lambda: token()[:-4] + "AAAA",
        lambda: token() + ".x",
        lambda: "a.b.c",
        lambda: "..",
        lambda: "",
        lambda: "x" * 20_000 + ".a.b",
    ],
)  # fmt: skip
def test_a_token_that_is_wrong_in_one_thing_is_refused(harness, made):
    assert harness.code(made()) is Code.AUTH_INVALID


def _bare(header, payload, signature=b""):
    def part(value):
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    encoded = [json.dumps(each).encode() for each in (header, payload)]
    return ".".join(part(each) for each in (*encoded, signature))


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "HS256", "HS512", "RS512", "ES256K"])
def test_an_algorithm_that_is_not_listed_is_refused(harness, algorithm):
    header = {"alg": algorithm, "kid": "rsa", "typ": "at+jwt"}
    assert harness.code(_bare(header, claims())) is Code.AUTH_INVALID


def test_a_public_key_is_no_secret_to_sign_with(harness):
    pem = PRIVATE["rsa"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    import hashlib
    import hmac

    header = {"alg": "HS256", "kid": "rsa", "typ": "at+jwt"}
    unsigned = _bare(header, claims()).rpartition(".")[0]
    mac = hmac.new(pem, unsigned.encode(), hashlib.sha256).digest()
    forged = f"{unsigned}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
    assert harness.code(forged) is Code.AUTH_INVALID
    with pytest.raises(Exception, match="HS256"):
        Harness(algorithms=("HS256",)).verify(forged)


def test_an_expired_token_says_so_and_a_moment_of_grace_is_given(harness):
    now = int(time.time())
    assert harness.code(token(exp=now - 60)) is Code.AUTH_EXPIRED
    assert harness.verify(token(exp=now - 1)).name == "oauth:claude"


def test_a_token_is_verified_once_and_known_until_it_expires(harness):
    made = token(exp=int(harness.at) + 100)
    assert harness.oauth.known(made) is None
    actor = harness.verify(made)
    assert harness.oauth.known(made) is actor
    harness.at += 100 + LEEWAY_S
    assert harness.oauth.known(made) is None


def test_a_token_is_looked_at_again_after_five_minutes(harness):
    made = token()
    harness.verify(made)
    harness.at += 300
    assert harness.oauth.known(made) is None


def test_the_allowlist_comes_from_the_claims_that_are_named():
    harness = Harness(sources_claim="databases", tags_claim="tags")
    actor = harness.verify(token(databases=["a", "b"], tags="prod eu"))
    assert (actor.sources, actor.tags) == (frozenset("ab"), frozenset({"prod", "eu"}))
    bare = harness.verify(token())
    assert (bare.sources, bare.tags) == (frozenset(), frozenset())


def test_the_list_of_tables_comes_from_the_claim_that_is_named(harness):
    named = Harness(tables_claim="tables")
    assert named.verify(token(tables=["orders", "shop:a.b"])).tables == {"orders", "shop:a.b"}
    assert named.verify(token()).tables == frozenset()
    assert harness.verify(token(tables=["orders"])).tables is None


def test_the_issuer_s_metadata_names_the_keys_and_must_be_the_issuer_s(harness):
    harness.verify(token())
    assert harness.fetched == [f"{ISSUER}/.well-known/oauth-authorization-server", f"{ISSUER}/jwks"]
    other = Harness(issuer=f"{ISSUER}/tenant")
    assert other.code(token(iss=f"{ISSUER}/tenant")) is Code.AUTH_UNAVAILABLE


def test_keys_at_a_url_that_is_named_are_fetched_from_there():
    harness = Harness(jwks_url="https://keys.example.com/jwks")
    harness.verify(token())
    assert harness.fetched == ["https://keys.example.com/jwks"]


def test_metadata_is_looked_for_where_clients_look():
    assert metadata_urls("https://a.example/t/1") == [
        "https://a.example/.well-known/oauth-authorization-server/t/1",
        "https://a.example/.well-known/openid-configuration/t/1",
        "https://a.example/t/1/.well-known/openid-configuration",
    ]
    assert len(metadata_urls("https://a.example")) == 2


class Clocked:
    """A set of keys with a clock of its own."""

    def __init__(self):
        self.harness = Harness()
        self.now = 0.0
        self.keys = Keys(self.harness.settings, self.harness.fetch, lambda: self.now)

    async def code(self, kid):
        try:
            await self.keys.find(kid, "RS256")
        except TidegateError as error:
            return error.code
        return None

    @property
    def fetches(self):
        return sum(url.endswith("/jwks") for url in self.harness.fetched)


def test_unknown_keys_lead_to_a_fetch_now_and_then_and_not_each_time():
    async def scenario():
        clocked = Clocked()
        for _ in range(100):
            assert await clocked.code("unknown") is Code.AUTH_INVALID
        assert clocked.fetches == 1
        clocked.now += AGAIN_S
        await asyncio.gather(*(clocked.code(f"unknown {n}") for n in range(50)))
        assert clocked.fetches == 2

    asyncio.run(scenario())


def test_a_new_key_is_found_and_one_that_was_taken_back_is_not():
    async def scenario():
        clocked = Clocked()
        assert await clocked.code("rsa") is None
        clocked.harness.keys = [{**public("stranger"), "kid": "new"}]
        clocked.now += AGAIN_S
        assert await clocked.code("new") is None
        assert await clocked.code("rsa") is Code.AUTH_INVALID

    asyncio.run(scenario())


def test_old_keys_serve_for_a_while_when_the_issuer_is_down_and_then_no_longer():
    async def scenario():
        clocked = Clocked()
        assert await clocked.code("rsa") is None
        clocked.harness.fails = True
        clocked.now = FRESH_S
        assert await clocked.code("rsa") is None
        clocked.now = STALE_S
        assert await clocked.code("rsa") is Code.AUTH_UNAVAILABLE
        clocked.harness.fails = False
        clocked.now += AGAIN_S
        assert await clocked.code("rsa") is None

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "changed",
    [
        {"use": "enc"},
        {"alg": "RS512"},
        {"key_ops": ["encrypt"]},
        {"kty": "oct", "k": "c2VjcmV0"},
    ],
)
def test_a_key_for_something_else_does_not_sign(harness, changed):
    harness.keys = [{**public("rsa"), **changed}]
    assert harness.code(token()) is Code.AUTH_INVALID


@pytest.mark.parametrize("answer", [None, [], {}, {"keys": {}}, {"keys": [1, "x", {}]}])
def test_a_key_set_that_is_none_lets_no_one_in(harness, answer):
    harness.fetch = lambda url: answer
    keys = Keys(harness.settings, lambda url: answer)

    async def find():
        with pytest.raises(TidegateError) as caught:
            await keys.find("rsa", "RS256")
        return caught.value.code

    assert asyncio.run(find()) in (Code.AUTH_UNAVAILABLE, Code.AUTH_INVALID)


def test_the_bound_on_what_is_fetched_leaves_room_for_real_key_sets():
    assert len(json.dumps({"keys": [public("rsa")] * 64})) < MOST_BYTES


def test_a9_a_client_never_has_the_name_of_a_subject(harness):
    names = [
        harness.verify(token(**given)).name
        for given in (
            {"sub": "alice", "client_id": None},
            {"sub": "x", "client_id": "#alice"},
            {"sub": "x", "client_id": "%#alice"},
            {"sub": "x", "client_id": "claude"},
        )
    ]
    assert names == ["oauth:#alice", "oauth:%#alice", "oauth:%%#alice", "oauth:claude"]
