"""Access: who has which rights, what gives them and what takes them away."""

from __future__ import annotations

from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Operators, SignedIn
from tidegate.products.console.admins import ONLY_ADMINS, check_admin, is_admin
from tidegate.products.console.inbox import Inbox
from tidegate.products.console.operator_accounts import OperatorAccounts
from tidegate.products.console.pairing_requests import PairingRequests
from tidegate.products.console.token_forms import TokenForms, what_may_be_made


class Access:
    """Operators, their sessions, tokens, requests for one, and grants."""

    def __init__(
        self,
        operators: Operators,
        accounts: OperatorAccounts,
        forms: TokenForms,
        pairings: PairingRequests,
        inbox: Inbox,
    ) -> None:
        self._operators = operators
        self._accounts = accounts
        self._forms = forms
        self._pairings = pairings
        self._inbox = inbox

    def show(self, signed_in: SignedIn) -> dict[str, Any]:
        """The accounts and tokens. An operator who is not an admin sees its own account and
        sessions, and the grants on its sources; an admin of some sources the tokens of these,
        too."""
        whole = is_admin(signed_in)
        own = signed_in.operator.name
        everyone = self._operators.sessions()
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
            for session, name in everyone
            if whole or name == own
        ]
        making = what_may_be_made(signed_in)
        return {
            "may": {
                "end": whole,
                "revoke": making["make"],
                "make": making["make"],
                "of": making["of"],
                "operators": whole,
                "why_not": "" if whole else making["why_not"] or ONLY_ADMINS,
            },
            "operators": self._accounts.list(signed_in, [name for _, name in everyone]),
            "invited": not signed_in.operator.hash,
            "sessions": sessions,
            "tokens": self._forms.list(signed_in),
            "pairings": self._pairings.shown(self._pairings.waiting(), signed_in),
            "grants": self._inbox.grants(signed_in),
        }

    def end_session(self, id: str, signed_in: SignedIn) -> None:
        """End a session: one's own, or as an admin any. Raises: TidegateError POLICY_DENIED,
        ARGUMENT_INVALID."""
        names = {session.id: name for session, name in self._operators.sessions()}
        if names.get(id) != signed_in.operator.name:
            check_admin(signed_in)
        if not self._operators.end_session(id, signed_in.actor_id):
            raise TidegateError(Code.ARGUMENT_INVALID, "There is no such session")
