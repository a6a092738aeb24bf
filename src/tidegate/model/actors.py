"""Who calls, and what they may do at most. Frozen; imports nothing of ours."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Literal

import msgspec
from msgspec import structs


class Scope(Enum):
    """What a token may do at most; compare with `covers`."""

    READ_ONLY = "readOnly"
    READ_WRITE = "readWrite"
    FULL_ACCESS = "fullAccess"

    def covers(self, needed: Scope) -> bool:
        """True if a holder of this scope may do what needs `needed`."""
        return _SCOPE_RANK[self] >= _SCOPE_RANK[needed]


_SCOPE_RANK = {Scope.READ_ONLY: 0, Scope.READ_WRITE: 1, Scope.FULL_ACCESS: 2}


Role = Literal["viewer", "approver", "admin"]
"""What a person may do: look; look and answer; both, and give rights."""

_ROLE_RANK: dict[Role, int] = {"viewer": 0, "approver": 1, "admin": 2}


class RoleGrant(msgspec.Struct, frozen=True):
    """A role on some sources, None all."""

    role: Role
    sources: frozenset[str] | None = None


def holds(roles: Collection[RoleGrant], role: Role, source: str | None) -> bool:
    """Whether the roles hold this one, or a wider one, on a source; None: on all sources."""
    return any(
        _ROLE_RANK[grant.role] >= _ROLE_RANK[role]
        and (grant.sources is None or (source is not None and source in grant.sources))
        for grant in roles
    )


def role_on(roles: Collection[RoleGrant], source: str) -> Role | None:
    """The widest role on a source; None if the roles hold none there."""
    for role in sorted(_ROLE_RANK, key=lambda role: -_ROLE_RANK[role]):
        if holds(roles, role, source):
            return role
    return None


class Actor(msgspec.Struct, frozen=True):
    """The caller: the holder of a token, the local operator, or an anonymous caller.

    `sources` and `tags` are the allowlist: a source is on it if its name is listed or it carries
    one of the tags; both None means every source (`policy.allowlist.admits`).
    `tables` are those that it may use there, as `table`, `schema.table` or, of one source alone,
    `source:table`; None means all (`policy.data_rules`).
    `proxy`: the caller is a server with a gate of its own. On the wire protocol it may name the
    caller for whom it speaks; what a person must approve was approved there.
    `owner` is the operator whose token it is, empty if it has none. `maker` is the
    `OperatorEntry.person` of the account that made it in the console; empty: none did.
    `max_rows_changed`: a change of more rows is refused; None: the source alone decides.
    `roles` are those of an operator with an account in the console; None: not an operator.
    `seen_by` is the operator who sees what this caller reads: what is hidden from that one is
    hidden as well.
    `id` is stable and names the identity in records (a token id, `stdio`, `anonymous`).
    """

    id: str
    name: str
    scope: Scope
    sources: frozenset[str] | None = None
    kind: Literal["agent", "human"] = "agent"
    expires_at: float | None = None
    tags: frozenset[str] | None = None
    tables: frozenset[str] | None = None
    proxy: bool = False
    owner: str = ""
    max_rows_changed: int | None = None
    roles: tuple[RoleGrant, ...] | None = None
    maker: str = ""
    seen_by: Actor | None = None


def has_same_rights(actor: Actor, other: Actor) -> bool:
    """Whether both are one caller with the same rights. A client that signed in gets a token that
    ends later, each time before its own ends."""
    return actor == structs.replace(other, expires_at=actor.expires_at)
