"""Bearer tokens of an authorization server: signed JWTs (RFC 9068), checked here, never passed on.

The token says who the bearer is and which of our scopes it carries. What is not understood is
refused: another issuer or audience, an algorithm that is not listed, a key that is not in the
issuer's set, a token that is bound to a key of its holder, a critical header.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, cast

from tidegate.config.oauth import OAuthSettings
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import OAUTH
from tidegate.identity.jwks import Fetch, Keys
from tidegate.model.actors import Actor, Scope

LEEWAY_S = 10.0
KEPT_S = 300.0
MOST_KEPT = 10_000
LONGEST = 16_384

_TYPES = frozenset({"at+jwt", "application/at+jwt", "jwt"})
_RANK = {Scope.READ_ONLY: 0, Scope.READ_WRITE: 1, Scope.FULL_ACCESS: 2}
_MIN_RSA_BITS = 2048


class OAuth:
    """The tokens of one issuer for this server, as `settings` say. For one event loop."""

    def __init__(
        self,
        settings: OAuthSettings,
        audiences: frozenset[str],
        *,
        fetch: Fetch | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`audiences` are the names of this server, one of which a token must carry.

        Raises: TidegateError CONFIG_INVALID if the extra `oauth` is not installed.
        """
        try:
            import jwt
        except ImportError:
            from tidegate.config.installation import add_command

            raise TidegateError(
                Code.CONFIG_INVALID,
                "Tokens of an authorization server need the extra `oauth`.",
                hint=f"Run: {add_command('oauth')}",
            ) from None
        self._jwt = jwt
        self._settings = settings
        self._audiences = audiences
        self._scopes = {name: Scope(scope) for name, scope in settings.scopes.items()}
        self._keys = Keys(settings, fetch)
        self._clock = clock
        self._kept: dict[bytes, tuple[Actor, float]] = {}

    def known(self, bearer: str) -> Actor | None:
        """The actor, if this very token was verified in the last minutes and has not expired."""
        digest = _digest(bearer)
        kept = self._kept.get(digest)
        if kept is None:
            return None
        actor, until = kept
        if self._clock() < until:
            return actor
        del self._kept[digest]
        return None

    async def verify(self, bearer: str) -> Actor:
        """The actor of a token.

        Raises: TidegateError AUTH_INVALID, AUTH_EXPIRED, AUTH_UNAVAILABLE, POLICY_SCOPE if it
        carries no scope that is mapped.
        """
        algorithm, kid = self._read_header(bearer)
        key = await self._keys.find(kid, algorithm)
        claims = self._check(bearer, key, algorithm)
        actor = self._actor(claims)
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        until = min(actor.expires_at or 0.0, self._clock() + KEPT_S)
        self._kept[_digest(bearer)] = (actor, until)
        return actor

    def _read_header(self, bearer: str) -> tuple[str, str | None]:
        if len(bearer) > LONGEST or bearer.count(".") != 2:
            raise _invalid("The token is not valid.")
        try:
            header: Mapping[str, Any] = self._jwt.get_unverified_header(bearer)
        except (self._jwt.PyJWTError, ValueError):
            raise _invalid("The token is not valid.") from None
        algorithm, kid = header.get("alg"), header.get("kid")
        if algorithm not in self._settings.algorithms:
            raise _invalid("The token is signed in a way that is not accepted here.")
        if str(header.get("typ", "jwt")).lower() not in _TYPES or "crit" in header:
            raise _invalid("The token is not an access token.")
        if kid is not None and not isinstance(kid, str):
            raise _invalid("The token is not valid.")
        return str(algorithm), kid

    def _check(self, bearer: str, key: Mapping[str, Any], algorithm: str) -> Mapping[str, Any]:
        jwt = self._jwt
        try:
            loaded = jwt.PyJWK(dict(key), algorithm=algorithm)
            bits = getattr(loaded.key, "key_size", _MIN_RSA_BITS)
            if key.get("kty") == "RSA" and bits < _MIN_RSA_BITS:
                raise _invalid("The token is signed with a weak key.")
            return cast(
                "Mapping[str, Any]",
                jwt.decode(
                    bearer,
                    loaded,
                    algorithms=[algorithm],
                    issuer=self._settings.issuer,
                    audience=self._audiences,
                    leeway=LEEWAY_S,
                    options={"require": ["exp", "iss", "aud", "sub"]},
                ),
            )
        except jwt.ExpiredSignatureError:
            raise TidegateError(Code.AUTH_EXPIRED, "The token has expired.") from None
        except jwt.InvalidAudienceError:
            raise _invalid("The token is for another server.") from None
        except jwt.InvalidIssuerError:
            raise _invalid("The token is of another issuer.") from None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
            raise _invalid("The token is not valid.") from None

    def _actor(self, claims: Mapping[str, Any]) -> Actor:
        subject = claims.get("sub")
        client = claims.get("client_id", claims.get("azp"))
        for name in (subject, client):
            if name is not None and not (isinstance(name, str) and 0 < len(name) <= 255):
                raise _invalid("The token has no valid `sub` or client claim.")
        if subject is None or not f"{subject}{client}".isprintable():
            raise _invalid("The token has no valid `sub` or client claim.")
        if "cnf" in claims:
            raise _invalid("The token is bound to a key, which this server cannot check.")
        carried = _words(claims.get("scope")) | _words(claims.get("scp"))
        granted = [self._scopes[name] for name in carried if name in self._scopes]
        if not granted:
            raise TidegateError(
                Code.POLICY_SCOPE,
                "The token has no scope that this server maps.",
                hint=f"Ask the authorization server for one of: {', '.join(self._scopes)}.",
            )
        return Actor(
            id=f"{OAUTH}{self._settings.issuer}#{subject}",
            # Not the bare name: rules and roles are given by names of tokens, and a client that
            # registers with the authorization server may choose one of those.
            name=f"{OAUTH}#{subject}" if client is None else f"{OAUTH}{_client_name(client)}",
            scope=max(granted, key=_RANK.__getitem__),
            sources=_allowed(claims, self._settings.sources_claim),
            tags=_allowed(claims, self._settings.tags_claim),
            expires_at=_ends(claims["exp"]),
            tables=_allowed(claims, self._settings.tables_claim),
        )


def _client_name(client: str) -> str:
    """The client's id; with `%` before it where it could be read as the name of a subject."""
    return f"%{client}" if client.startswith(("#", "%")) else client


def _ends(expiry: Any) -> float:
    try:
        return float(expiry) + LEEWAY_S
    except OverflowError:
        raise _invalid("The token is not valid.") from None


def _allowed(claims: Mapping[str, Any], claim: str | None) -> frozenset[str] | None:
    """The names in a claim; none where the claim should be and is not."""
    return None if claim is None else frozenset(_words(claims.get(claim)))


def _words(value: object) -> set[str]:
    """The words of a claim that is a text with spaces or a list."""
    if isinstance(value, str):
        return set(value.split())
    if isinstance(value, list):
        return {word for word in cast("list[object]", value) if isinstance(word, str)}
    return set()


def _digest(bearer: str) -> bytes:
    return sha256(bearer.encode("utf-8", "replace")).digest()


def _invalid(message: str) -> TidegateError:
    return TidegateError(Code.AUTH_INVALID, message)
