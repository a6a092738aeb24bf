"""The actors that hold no token: the client at a stdio server, the anonymous caller, the operator.

Each is read-only unless the operator allows writes; the anonymous caller always is.
"""

from __future__ import annotations

from tidegate.model.actors import Actor, Scope

OAUTH = "oauth:"
"""The prefix of the id of an actor with a token of an authorization server; the issuer and
the subject follow, as `oauth:https://login.example.com#alice`."""

BUILTIN = frozenset({"anonymous", "bridge", "cli", "server", "stdio"})
"""The ids of actors that hold no token of ours or of an authorization server; an id of one with
less access has a hyphen and more after it. Each is its own name."""

ANONYMOUS = Actor(id="anonymous", name="anonymous", scope=Scope.READ_ONLY)
"""The caller of an HTTP server that runs without authentication, on loopback."""


def stdio(allow_writes: bool = False) -> Actor:
    """The client that started a stdio server: an agent, on behalf of the person who set it up."""
    return Actor(id="stdio", name="stdio", scope=_scope(allow_writes))


def cli(allow_writes: bool = False) -> Actor:
    """The person at the command line."""
    return Actor(id="cli", name="cli", scope=_scope(allow_writes), kind="human")


def _scope(allow_writes: bool) -> Scope:
    return Scope.READ_WRITE if allow_writes else Scope.READ_ONLY
