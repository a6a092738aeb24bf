"""Who sends a request: the session of the cookie, and the secret that only the console's page has.

The cookie is named after the installation, so that two servers on one machine do not end each
other's sessions. The secret of the page comes in the reply to `session`, stays in the page's memory
and is in a header of every further request.

A browser sends cookies to every port of a host, so another server on this machine can read this one
when a person opens a page there. To get the secret of the page with it takes the key of the
browser, too, which the page keeps in the storage of its origin, where no other port reaches.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from typing import Any

import msgspec

from tidegate.edges.http.router import HttpRequest, HttpResponse, cookie, json_response
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import IDLE_S, Operators, SignedIn
from tidegate.model.actors import Actor, RoleGrant, Scope

PATH = "/console"
PAGE_HEADER = b"x-tidegate-page"


class SignIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `sign-in`: the secret of a link, or a name and its passphrase."""

    link: str = ""
    name: str = ""
    passphrase: str = ""


class Resume(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `session`: the key that the browser got when it signed in."""

    key: str = ""


class SignOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `sign-out`."""

    everywhere: bool = False


class Sessions:
    """The sessions of operators over HTTP. `secret` gives the installation's secret for the pages,
    `describe` says what a page gets to know of the server."""

    def __init__(
        self,
        operators: Operators,
        secret: Callable[[], bytes],
        describe: Callable[[SignedIn], dict[str, Any]],
        *,
        secure: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._operators = operators
        self._secret_of = secret
        self._describe = describe
        self.secure = secure
        self._clock = clock

    @cached_property
    def _secret(self) -> bytes:
        return self._secret_of()

    @cached_property
    def instance(self) -> str:
        """Names the installation; no secret."""
        return sha256(b"instance" + self._secret).hexdigest()[:8]

    @property
    def cookie_name(self) -> str:
        return f"tidegate_{self.instance}"

    def identify(self, request: HttpRequest, *, with_page: bool = True) -> SignedIn:
        """Who is signed in. Reads the state. Raises: TidegateError CONSOLE_SIGNED_OUT."""
        secret = request.cookies.get(self.cookie_name, "")
        found = self._operators.find_session(secret)
        if found is None:
            raise TidegateError(Code.CONSOLE_SIGNED_OUT, "You are not signed in")
        if with_page:
            given = request.headers.get(PAGE_HEADER, b"")
            if not hmac.compare_digest(given, self._derived("page", found).encode()):
                raise TidegateError(
                    Code.CONSOLE_SIGNED_OUT, "The request does not come from a page of this session"
                )
        return found

    def resume(self, request: HttpRequest, body: Resume) -> dict[str, Any]:
        """The session of a page that was loaded again. Raises: TidegateError CONSOLE_SIGNED_OUT."""
        signed_in = self.identify(request, with_page=False)
        if not hmac.compare_digest(body.key.encode(), self._derived("browser", signed_in).encode()):
            raise TidegateError(
                Code.CONSOLE_SIGNED_OUT,
                "The session was begun in another browser, or at another address of this server",
            )
        return self.describe(signed_in)

    def begin(self, request: HttpRequest, body: SignIn) -> HttpResponse:
        """Sign in. Raises: TidegateError AUTH_INVALID, AUTH_LOCKED_OUT, AUDIT_UNAVAILABLE."""
        browser = request.headers.get(b"user-agent", b"").decode("latin-1")
        if body.link:
            signed_in, secret = self._operators.sign_in_by_link(body.link, request.address, browser)
        else:
            signed_in, secret = self._operators.sign_in(
                body.name, body.passphrase, request.address, browser
            )
        set_cookie = cookie(self.cookie_name, secret, path=PATH, secure=self.secure)
        return json_response(200, self.describe(signed_in), [set_cookie])

    def end(self, signed_in: SignedIn, body: SignOut) -> HttpResponse:
        """Sign out."""
        self._operators.sign_out(signed_in, everywhere=body.everywhere)
        gone = cookie(self.cookie_name, "", path=PATH, max_age_s=0, secure=self.secure)
        return HttpResponse(204, b"", [gone])

    def describe(self, signed_in: SignedIn) -> dict[str, Any]:
        """What the page gets to know of its session, with its secret."""
        operator, session = signed_in
        return {
            "operator": {"name": operator.name, "roles": [role_fields(r) for r in operator.roles]},
            "page": self._derived("page", signed_in),
            "key": self._derived("browser", signed_in),
            "instance": self.instance,
            "by": session.signed_in_by,
            "confirmed": session.confirmed_at is not None,
            "idle_s": IDLE_S,
            "ends_at": session.ends_at,
            "now": self._clock(),
            **self._describe(signed_in),
        }

    def _derived(self, what: str, signed_in: SignedIn) -> str:
        text = f"{what} {signed_in.session.id}".encode()
        return hmac.new(self._secret, text, sha256).hexdigest()


def actor_of(signed_in: SignedIn, source: str | None = None) -> Actor:
    """The operator as a caller of the gate. With a source it is as whom it works there itself: only
    an admin changes. Its roles go along: masks and filters may name them, and the gate admits an
    operator's changes by its role on their source."""
    roles = signed_in.operator.roles
    sources: frozenset[str] | None = frozenset()
    for grant in roles:
        sources = None if grant.sources is None or sources is None else sources | grant.sources
    if source is not None:
        scope = Scope.FULL_ACCESS if signed_in.may("admin", source) else Scope.READ_ONLY
    else:
        answers = any(grant.role != "viewer" for grant in roles)
        scope = Scope.READ_WRITE if answers else Scope.READ_ONLY
    return Actor(
        signed_in.actor_id,
        signed_in.operator.name,
        scope,
        sources,
        kind="human",
        owner=signed_in.operator.name,
        roles=roles,
        maker=signed_in.operator.person,
    )


def place_of(signed_in: SignedIn, address: str) -> dict[str, str]:
    """From where an operator does something, for the record."""
    return {"via": "console", "session": signed_in.session.id, "address": address}


def role_fields(grant: RoleGrant) -> dict[str, Any]:
    """A role as JSON."""
    sources = None if grant.sources is None else sorted(grant.sources)
    return {"role": grant.role, "sources": sources}
