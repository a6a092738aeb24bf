"""Operators in the console: invited, given other roles, removed; and the first passphrase of one
who was invited. For admins of all sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import INVITATION_S, Operators, SignedIn
from tidegate.model.actors import Role, RoleGrant, holds
from tidegate.model.sources import Source
from tidegate.products.console.admins import Consent, check_admin, is_admin
from tidegate.products.console.sign_in import place_of, role_fields
from tidegate.store.records import OperatorEntry


class GivenRole(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A role in the body of a request; sources None: on all."""

    role: Role
    sources: Annotated[list[str], msgspec.Meta(min_length=1, max_length=2_000)] | None = None


Roles = Annotated[list[GivenRole], msgspec.Meta(min_length=1, max_length=50)]


class Invite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `access/operators`."""

    name: str
    roles: Roles
    passphrase: str = ""


class ChangeRoles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `roles`: the wanted ones, and those that were shown."""

    roles: Roles
    was: list[GivenRole]
    passphrase: str = ""


class Confirmed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `remove` and `link`."""

    passphrase: str = ""


class FirstPassphrase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `access/passphrase`."""

    passphrase: str


class OperatorAccounts:
    """What an admin may do of operators."""

    def __init__(
        self, operators: Operators, sources: Callable[[], Sequence[Source]], consent: Consent
    ) -> None:
        self._operators = operators
        self._sources = sources
        self._consent = consent

    def list(self, signed_in: SignedIn, sessions: Sequence[str]) -> list[dict[str, Any]]:
        """All operators for an admin of all sources, else one's own account. `sessions` are the
        names of those who are signed in, one for each session."""
        everyone = self._operators.list()
        whole = is_admin(signed_in)
        admins = [each for each in everyone if each.hash and holds(each.roles, "admin", None)]
        return [
            {
                "name": each.name,
                "roles": [role_fields(grant) for grant in each.roles],
                "created_at": each.created_at,
                "sessions": sum(name == each.name for name in sessions),
                "invited": not each.hash,
                "may": _may(each, admins, whole=whole),
            }
            for each in everyone
            if whole or each.name == signed_in.operator.name
        ]

    def invite(self, body: Invite, signed_in: SignedIn, address: str) -> dict[str, Any]:
        """Add an operator; the secret of its link is in this answer and nowhere else.

        Raises: TidegateError POLICY_DENIED, OPERATOR_CONSENT, ARGUMENT_INVALID, SOURCE_UNKNOWN,
        AUDIT_UNAVAILABLE.
        """
        check_admin(signed_in)
        roles = self._roles(body.roles)
        signed_in = self._consent.require(signed_in, body.passphrase, address)
        details = place_of(signed_in, address)
        secret = self._operators.invite(body.name, roles, signed_in, details)
        return {"link": secret, "lasts_s": INVITATION_S}

    def invite_again(
        self, name: str, body: Confirmed, signed_in: SignedIn, address: str
    ) -> dict[str, Any]:
        """Another link for an account without a passphrase. Raises: as `invite`."""
        signed_in = self._consent.require(signed_in, body.passphrase, address)
        details = place_of(signed_in, address)
        secret = self._operators.invite_again(name, signed_in, details)
        return {"link": secret, "lasts_s": INVITATION_S}

    def set_roles(self, name: str, body: ChangeRoles, signed_in: SignedIn, address: str) -> None:
        """Give an operator other roles. Raises: TidegateError ACCESS_CHANGED if it has others than
        those that were shown, OPERATOR_CONSENT if it is the last admin; as `invite`."""
        check_admin(signed_in)
        roles = self._roles(body.roles)
        was = tuple([_grant(each) for each in body.was])
        signed_in = self._consent.require(signed_in, body.passphrase, address)
        details = place_of(signed_in, address)
        self._operators.set_roles(name, roles, signed_in.actor_id, was=was, details=details)

    def remove(self, name: str, body: Confirmed, signed_in: SignedIn, address: str) -> None:
        """Remove an operator and its sessions; works without a record. Raises: as `set_roles`."""
        signed_in = self._consent.require(signed_in, body.passphrase, address)
        details = place_of(signed_in, address)
        self._operators.remove(name, signed_in.actor_id, keeps_admin=True, details=details)

    def set_first_passphrase(self, body: FirstPassphrase, signed_in: SignedIn) -> None:
        """Set one's own passphrase, where there is none yet. Raises: TidegateError
        ARGUMENT_INVALID, OPERATOR_CONSENT, AUDIT_UNAVAILABLE."""
        self._operators.set_first_passphrase(signed_in, body.passphrase)

    def _roles(self, given: Sequence[GivenRole]) -> tuple[RoleGrant, ...]:
        known = {source.name for source in self._sources()}
        for each in given:
            for name in each.sources or ():
                if name not in known:
                    raise TidegateError(Code.SOURCE_UNKNOWN, f"There is no source {name[:80]!r}")
        return tuple([_grant(each) for each in given])


def _grant(given: GivenRole) -> RoleGrant:
    return RoleGrant(given.role, None if given.sources is None else frozenset(given.sources))


def _may(
    operator: OperatorEntry, admins: Sequence[OperatorEntry], *, whole: bool
) -> dict[str, Any]:
    last = [each.id for each in admins] == [operator.id]
    why_not = "The last admin of all sources stays one." if last else ""
    return {
        "roles": whole and not last,
        "remove": whole and not last,
        "link": whole and not operator.hash,
        "why_not": why_not if whole else "",
    }
