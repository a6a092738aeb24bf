"""The settings of an authorization server."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from tidegate.config.addresses import check_private_url
from tidegate.config.errors import invalid

OAUTH_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


class OAuthSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens of an authorization server, taken in addition to Tidegate's own (OAuth 2.1).

    `resource` is the URL of this server's `/mcp` as its clients know it; a token must carry it, or
    one of `audience`, as its audience. `jwks_url` is found in the issuer's metadata if it is not
    given. `scopes` maps the server's scopes to ours; a token without a known scope is refused.
    `sources_claim` and `tags_claim` name claims with the allowlist, `tables_claim` one with that of
    tables; a token that lacks a claim that is named here sees nothing by it.
    """

    issuer: str
    resource: str
    scopes: dict[str, Literal["readOnly", "readWrite", "fullAccess"]]
    audience: tuple[str, ...] = ()
    jwks_url: str | None = None
    algorithms: tuple[
        Literal[
            "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
        ],
        ...,
    ] = ("RS256", "ES256", "EdDSA")
    sources_claim: str | None = None
    tags_claim: str | None = None
    tables_claim: str | None = None

    def __post_init__(self) -> None:
        check_private_url(self.issuer, "oauth.issuer")
        check_private_url(self.resource, "oauth.resource")
        if self.jwks_url is not None:
            check_private_url(self.jwks_url, "oauth.jwks_url")
        if not self.resource.endswith("/mcp"):
            raise invalid(
                f"`oauth.resource` is `{self.resource[:80]}`, which does not end with `/mcp`.",
                hint="Write the address of this server as its clients do.",
            )
        if not self.scopes or not self.algorithms:
            raise invalid("`oauth.scopes` and `oauth.algorithms` need an entry each.")
        for scope in self.scopes:
            if not OAUTH_SCOPE.fullmatch(scope):
                raise invalid(f"`{scope[:80]}` cannot be a scope of an authorization server.")


def resource_url(settings: OAuthSettings, path: str) -> str:
    """How clients know what is served under `path`, such as `/mcp/core`."""
    return settings.resource.removesuffix("/mcp") + path
