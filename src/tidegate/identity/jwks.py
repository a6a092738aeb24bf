"""The keys of an authorization server: found, fetched, kept for a while, never guessed.

The issuer's metadata names the key set (RFC 8414, OpenID Connect Discovery) unless the operator
does. Fetches go over https, or http on loopback, by the rule of `http_client`, and come at most
every `AGAIN_S` seconds however many tokens name unknown keys.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tidegate.config.addresses import check_private_url, is_public_address, parse_http_url
from tidegate.config.oauth import OAuthSettings
from tidegate.errors import Code, TidegateError
from tidegate.http_client.client import HttpClient
from tidegate.http_client.rules import ClientRules, HttpRequest, RequestFailed

MOST_BYTES = 262_144
MOST_KEYS = 64
PATIENCE_S = 5.0
FRESH_S = 300.0
STALE_S = 3_600.0
AGAIN_S = 30.0
_RULES = ClientRules(max_bytes=MOST_BYTES, total_s=PATIENCE_S, proxies=None)

_KINDS = {
    "RS256": ("RSA", None), "RS384": ("RSA", None), "RS512": ("RSA", None),
    "PS256": ("RSA", None), "PS384": ("RSA", None), "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"), "ES384": ("EC", "P-384"), "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}  # fmt: skip

Jwk = Mapping[str, Any]
Fetch = Callable[[str], Any]
"""The JSON at a URL; blocks. Raises: OSError, ValueError."""


class Keys:
    """The signing keys of `settings.issuer`. For one event loop."""

    def __init__(
        self,
        settings: OAuthSettings,
        fetch: Fetch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._fetch = fetch
        self._clock = clock
        self._keys: tuple[Jwk, ...] = ()
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._turn = asyncio.Lock()

    async def find(self, kid: str | None, algorithm: str) -> Jwk:
        """The public key for a token that names `kid`; without a name the only one that fits.

        Raises: TidegateError AUTH_INVALID if there is none, AUTH_UNAVAILABLE if that cannot be
        known.
        """
        if self._clock() - self._fetched_at >= FRESH_S:
            await self._refresh()
        found = self._pick(kid, algorithm)
        if found is None:
            await self._refresh()
            found = self._pick(kid, algorithm)
        if found is None:
            raise TidegateError(Code.AUTH_INVALID, "The token is signed with an unknown key.")
        return found

    def _pick(self, kid: str | None, algorithm: str) -> Jwk | None:
        fitting = [key for key in self._keys if _fits(key, algorithm)]
        if kid is None:
            return fitting[0] if len(fitting) == 1 else None
        return next((key for key in fitting if key.get("kid") == kid), None)

    async def _refresh(self) -> None:
        """Fetch the keys unless that was tried just now. Raises: TidegateError AUTH_UNAVAILABLE if
        there are none, or only such as are too old to trust."""
        asked_at = self._clock()
        async with self._turn:
            if self._tried_at < asked_at and asked_at - self._tried_at >= AGAIN_S:
                self._tried_at = asked_at
                try:
                    self._keys = await asyncio.to_thread(self._fetch_keys)
                    self._fetched_at = asked_at
                except (OSError, ValueError, TidegateError):
                    pass  # the age of what is there decides
            if self._clock() - self._fetched_at >= STALE_S:
                raise TidegateError(
                    Code.AUTH_UNAVAILABLE,
                    "The keys of the authorization server cannot be fetched",
                    retry_after_s=AGAIN_S,
                )

    def _fetch_keys(self) -> tuple[Jwk, ...]:
        fetch = self._fetch or KeyFetcher()
        document = fetch(self._settings.jwks_url or self._discover(fetch))
        listed = document.get("keys") if isinstance(document, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - parsed text has no type
        if not isinstance(listed, list):
            raise ValueError("no key set")
        keys = [cast("Jwk", key) for key in cast("list[Any]", listed) if isinstance(key, dict)]
        return tuple(keys[:MOST_KEYS])

    def _discover(self, fetch: Fetch) -> str:
        """Where the issuer says that its keys are."""
        issuer = self._settings.issuer
        for url in metadata_urls(issuer):
            try:
                metadata = fetch(url)
            except (OSError, ValueError):
                continue
            if not isinstance(metadata, dict):
                continue
            found = cast("dict[str, Any]", metadata)
            # Else another party's keys would speak for this issuer (RFC 8414, section 3.3).
            if found.get("issuer") == issuer and isinstance(found.get("jwks_uri"), str):
                url = found["jwks_uri"]
                check_private_url(url, "jwks_uri")
                return str(url)
        raise ValueError("the issuer publishes no metadata that fits")


def metadata_urls(issuer: str) -> list[str]:
    """Where an issuer's metadata may be, in the order in which MCP clients look."""
    parts = parse_http_url(issuer)
    origin, path = parts.origin, parts.path.rstrip("/")
    urls = [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
    ]
    return [*urls, f"{origin}{path}/.well-known/openid-configuration"] if path else urls


def _fits(key: Jwk, algorithm: str) -> bool:
    kind, curve = _KINDS[algorithm]
    operations = key.get("key_ops", ["verify"])
    return (
        key.get("kty") == kind
        and (curve is None or key.get("crv") == curve)
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and isinstance(operations, list)
        and "verify" in operations
    )


class KeyFetcher:
    """Fetches what an authorization server publishes. What names another place may have been
    written by a stranger: after the public network or a proxy was asked, only public addresses
    are."""

    def __init__(self) -> None:
        self._networks: Sequence[str] | None = None  # the operator names the first place

    def __call__(self, url: str) -> Any:
        """The JSON at a URL; blocks. Raises: OSError, also for every status but 200;
        ValueError; TidegateError CONFIG_INVALID for a URL that others could answer for."""
        check_private_url(url, "url")
        headers = (("Accept", "application/json"),)
        request = HttpRequest(url=url, headers=headers, networks=self._networks)
        try:
            reply = HttpClient(_RULES).send_blocking(request)
        except RequestFailed as failure:
            raise OSError(failure.message) from None
        if not reply.peer or is_public_address(reply.peer):
            self._networks = ()
        if reply.status != 200:
            raise OSError(f"status {reply.status}")
        try:
            return json.loads(reply.body)
        except RecursionError:
            raise ValueError("nested too deeply") from None
