"""Roles that a caller cannot have, whatever the settings say: a keyword that means no role would
give the caller the rights of the source's own account."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.model.decisions import Permit
from tidegate.model.sources import Identity

_NO_ROLES = frozenset({"", "none", "default", "all"})


def role_of(identity: Identity) -> str | None:
    """The role that the caller is given; None if it is given none.

    Raises: TidegateError POLICY_IDENTITY.
    """
    role = identity.role
    if role is not None and role.strip().lower() in _NO_ROLES:
        raise role_refused('The caller\'s role has a name that means "no role".')
    return role


def role_refused(reason: str, **details: object) -> TidegateError:
    """The coded error of an identity that the database does not let us take on."""
    return TidegateError(
        Code.POLICY_IDENTITY,
        reason,
        hint="Ask the operator to create the caller's role and grant it to the source's account.",
        details={"rule": "source.run_as", **details},
    )


def refuse_identity(permit: Permit) -> None:
    """Refuse the identity of a permit, for an engine without roles. Raises: TidegateError
    POLICY_IDENTITY."""
    if permit.identity is not None:
        raise role_refused("This kind of database has no roles, so `run_as` cannot be used.")
