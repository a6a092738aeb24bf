"""Access: who has which rights, and what takes them away. For admins of all sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.edges.console.inbox import Inbox
from tidegate.edges.console.sign_in import role_fields
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Operators, SignedIn
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import holds
from tidegate.store.records import TokenEntry


class Access:
    """Operators, their sessions, tokens and grants; and their end."""

    def __init__(self, operators: Operators, tokens: Tokens, inbox: Inbox) -> None:
        self._operators = operators
        self._tokens = tokens
        self._inbox = inbox

    def show(self, signed_in: SignedIn) -> dict[str, Any]:
        """What there is. An operator who is no admin sees its own account and sessions, and the
        grants on its sources."""
        whole = self._is_admin(signed_in)
        own = signed_in.operator.name
        sessions = [
            {
                "id": session.id,
                "operator": name,
                "since": session.created_at,
                "seen_at": session.seen_at,
                "address": session.address,
                "browser": session.browser,
                "by": session.signed_in_by,
                "current": session.id == signed_in.session.id,
            }
            for session, name in self._operators.sessions()
            if whole or name == own
        ]
        operators = [each for each in self._operators.list() if whole or each.name == own]
        return {
            "may": {
                "end": whole,
                "revoke": whole,
                "why_not": "" if whole else "Only an admin of all sources may do that.",
            },
            "operators": [
                {
                    "name": each.name,
                    "roles": [role_fields(grant) for grant in each.roles],
                    "created_at": each.created_at,
                    "sessions": sum(one["operator"] == each.name for one in sessions),
                }
                for each in operators
            ],
            "sessions": sessions,
            "tokens": [_token(each) for each in self._tokens.list()] if whole else [],
            "grants": self._inbox.grants(signed_in),
        }

    def end_session(self, id: str, signed_in: SignedIn) -> None:
        """End a session: one's own, or as an admin any. Raises: TidegateError POLICY_DENIED,
        ARGUMENT_INVALID."""
        names = {session.id: name for session, name in self._operators.sessions()}
        if names.get(id) != signed_in.operator.name:
            self._check_admin(signed_in)
        if not self._operators.end_session(id, signed_in.actor_id):
            raise TidegateError(Code.ARGUMENT_INVALID, "There is no such session")

    def revoke_token(self, id: str, signed_in: SignedIn) -> None:
        """Revoke a token by its id. Raises: TidegateError POLICY_DENIED, ARGUMENT_INVALID."""
        self._check_admin(signed_in)
        found = next((each for each in self._tokens.list() if each.id == id), None)
        if found is None or found.revoked_at is not None:
            raise TidegateError(Code.ARGUMENT_INVALID, "There is no such token, or it is revoked")
        self._tokens.revoke(found.name)

    @staticmethod
    def _is_admin(signed_in: SignedIn) -> bool:
        return holds(signed_in.operator.roles, "admin", None)

    def _check_admin(self, signed_in: SignedIn) -> None:
        if not self._is_admin(signed_in):
            raise TidegateError(
                Code.POLICY_DENIED,
                "Only an admin of all sources may do that.",
                hint="Ask an admin.",
            )


def _token(entry: TokenEntry) -> dict[str, Any]:
    lists: Sequence[tuple[str, frozenset[str] | None]] = (
        ("sources", entry.sources),
        ("tags", entry.tags),
        ("tables", entry.tables),
    )
    return {
        "name": entry.name,
        "id": entry.id,
        "prefix": entry.prefix,
        "scope": entry.scope.value,
        **{name: None if value is None else sorted(value) for name, value in lists},
        "owner": entry.owner,
        "created_at": entry.created_at,
        "expires_at": entry.expires_at,
        "last_used_at": entry.last_used_at,
        "revoked_at": entry.revoked_at,
    }
