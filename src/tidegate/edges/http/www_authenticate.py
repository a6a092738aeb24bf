"""`WWW-Authenticate`: the challenge to a caller without a valid token, and where to get one.

One challenge serves every revision: 2025-03-26 needs the status alone, 2025-06-18 the
`resource_metadata` (RFC 9728), 2025-11-25 and later also `scope` and, on 403, the error
`insufficient_scope`. Without an authorization server there is the realm alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tidegate.config.addresses import parse_http_url
from tidegate.config.oauth import OAuthSettings, resource_url
from tidegate.edges.http.router import Handler, HttpRequest, HttpResponse, Router, json_response
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import OAUTH
from tidegate.model.actors import Actor, Scope
from tidegate.typed_values import decode_json

WELL_KNOWN = "/.well-known/oauth-protected-resource"


class Challenge:
    """The challenge of one path. `scopes` maps the authorization server's scopes to ours."""

    def __init__(
        self,
        realm: str = "tidegate",
        metadata_url: str | None = None,
        scopes: Mapping[str, str] | None = None,
    ) -> None:
        self._realm = realm
        self._metadata_url = metadata_url
        self.scopes = {name: Scope(scope) for name, scope in (scopes or {}).items()}

    def to(self, error: TidegateError) -> bytes | None:
        """The header's value for an error of authentication; None if it has none."""
        if error.code is Code.AUTH_EXPIRED:
            return self._value("invalid_token", "token_expired", self._least())
        if error.code is Code.AUTH_INVALID:
            return self._value("invalid_token", None, self._least())
        if error.mapping.http == 401:
            # The request had no token: the challenge names no error (RFC 6750, section 3.1).
            return self._value(None, None, self._least())
        if error.code is Code.POLICY_SCOPE and self.scopes:
            return self._value("insufficient_scope", None, self._least())
        return None

    def step_up(self, actor: Actor, frame: bytes) -> bytes | None:
        """The header's value if `frame` refuses a call because of the actor's scope, and the
        authorization server has a scope that allows more."""
        if not actor.id.startswith(OAUTH) or b"policy.scope" not in frame:
            return None
        further = [name for name, scope in self.scopes.items() if not actor.scope.covers(scope)]
        if not further or not _refuses_scope(frame):
            return None
        held = [name for name in self.scopes if name not in further]
        # The least step: those of the lowest scope above what the actor has.
        step = next(
            scope for scope in (Scope.READ_WRITE, Scope.FULL_ACCESS) if scope in self._ours(further)
        )
        wanted = [name for name in further if self.scopes[name] is step]
        return self._value("insufficient_scope", None, [*held, *wanted])

    def _ours(self, names: Iterable[str]) -> set[Scope]:
        return {self.scopes[name] for name in names}

    def _least(self) -> list[str]:
        """The scopes that let a caller in at all: those of the lowest scope that is mapped."""
        for scope in Scope:
            names = [name for name, ours in self.scopes.items() if ours is scope]
            if names:
                return names
        return []

    def _value(self, error: str | None, description: str | None, scopes: Iterable[str]) -> bytes:
        parts = [f'realm="{self._realm}"']
        if error is not None:
            parts.append(f'error="{error}"')
        if description is not None:
            parts.append(f'error_description="{description}"')
        if self._metadata_url is not None:
            parts.append(f'resource_metadata="{self._metadata_url}"')
            parts.append(f'scope="{" ".join(scopes)}"')
        return ("Bearer " + ", ".join(parts)).encode()


class _Data(msgspec.Struct):
    code: str = ""


class _Error(msgspec.Struct):
    data: _Data = msgspec.field(default_factory=_Data)


class _Text(msgspec.Struct):
    text: str = ""


class _Result(msgspec.Struct, rename="camel"):
    is_error: bool = False
    content: list[_Text] = []


class _Reply(msgspec.Struct):
    error: _Error | None = None
    result: _Result | None = None


def _refuses_scope(frame: bytes) -> bool:
    """Whether a reply says `policy.scope`, rather than showing data that has the words in it."""
    try:
        reply = decode_json(frame, _Reply)
    except (msgspec.DecodeError, RecursionError):
        return False
    if reply.error is not None:
        return reply.error.data.code == Code.POLICY_SCOPE.value
    result = reply.result
    if result is None or not result.is_error or not result.content:
        return False
    return result.content[0].text.startswith(f"{Code.POLICY_SCOPE.value}:")


def challenge_of(settings: OAuthSettings, path: str, realm: str) -> Challenge:
    """The challenge of one path of a server that takes tokens of an authorization server."""
    parts = parse_http_url(resource_url(settings, path))
    metadata = f"{parts.origin}{WELL_KNOWN}{parts.path}"
    return Challenge(realm, metadata, settings.scopes)


def resource_pages(settings: OAuthSettings, paths: Iterable[str]) -> Router:
    """The metadata of each path, where clients request it (RFC 9728, section 3.1)."""
    router = Router()
    router.add("GET", WELL_KNOWN, _metadata(settings, settings.resource))
    for path in paths:
        url = resource_url(settings, path)
        # Twice, for proxies that pass a prefix of their own on.
        for place in {path, parse_http_url(url).path}:
            router.add("GET", WELL_KNOWN + place, _metadata(settings, url))
    return router


def _metadata(settings: OAuthSettings, resource: str) -> Handler:
    body = {
        "resource": resource,
        "authorization_servers": [settings.issuer],
        "scopes_supported": list(settings.scopes),
        "bearer_methods_supported": ["header"],
        "resource_name": "Tidegate",
    }
    response = json_response(200, body, [(b"cache-control", b"max-age=300")])

    async def serve(request: HttpRequest) -> HttpResponse:
        return response

    return serve
