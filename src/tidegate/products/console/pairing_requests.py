"""Requests for a token (pairing) in the console: what waits, a yes that narrows it, a no."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.identity.pairing import PairingService, more_than_wanted
from tidegate.identity.tokens import parse_expiry
from tidegate.products.console.admins import Consent, administered, check_may_give, may_give
from tidegate.products.console.token_forms import Rights, TokenForms
from tidegate.store.records import Pairing, TokenRights


class Approve(Rights, frozen=True, kw_only=True):
    """The body of `approve`: what is granted. `expires` is a time span, `never`, or `keep`."""

    name: str = ""
    expires: str = "keep"
    owner: str = ""


class PairingRequests:
    """What an operator may see and answer of them."""

    def __init__(
        self,
        service: PairingService,
        forms: TokenForms,
        consent: Consent,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._service = service
        self._forms = forms
        self._consent = consent
        self._clock = clock

    def waiting(self) -> tuple[Pairing, ...]:
        """All that wait, oldest first. Reads the state."""
        return self._service.waiting()

    def shown(self, waiting: Sequence[Pairing], signed_in: SignedIn) -> list[dict[str, Any]]:
        """Those that the operator may answer, as cards."""
        return [_card(each) for each in waiting if is_for(each, signed_in)]

    def find(self, id: str, signed_in: SignedIn) -> Pairing:
        """A request that the operator may answer. Raises: TidegateError POLICY_DENIED,
        ARGUMENT_INVALID."""
        if administered(signed_in) == frozenset():
            check_may_give(signed_in, None, None)
        found = self._service.find(id)
        check_may_give(signed_in, found.wanted.sources, found.wanted.tags)
        return found

    def approve(self, id: str, body: Approve, signed_in: SignedIn, address: str) -> None:
        """Grant a request: what it asks for, or less, to an owner.

        Raises: TidegateError POLICY_DENIED, OPERATOR_CONSENT, ARGUMENT_INVALID, SOURCE_UNKNOWN,
        AUDIT_UNAVAILABLE, STATE_FAILED.
        """
        asked = self.find(id, signed_in)
        self._forms.check_names(body.sources, body.tags)
        lasts_s = asked.wanted.lasts_s
        if body.expires != "keep":
            lasts_s = parse_expiry(body.expires, 0.0)
        granted = TokenRights(
            body.scope,
            lasts_s=lasts_s,
            **body.lists(),
            max_rows_changed=body.max_rows_changed,
            owner=self._forms.owner(body.owner, signed_in),
            maker=signed_in.operator.person,
        )
        more = more_than_wanted(asked.wanted, granted)
        if more:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The client did not ask for that much: {', '.join(more)}.",
                hint="Grant what it asked for, or less.",
            )

        def check(by: SignedIn) -> None:
            check_may_give(by, granted.sources, granted.tags)
            self._forms.check_hidden(by, body.name or asked.client, granted.sources)

        check(signed_in)

        signed_in = self._consent.require(signed_in, body.passphrase, address, check)
        records = self._consent.records(signed_in, address)
        self._service.approve(asked.id, granted, body.name or None, records=records)

    def deny(self, id: str, signed_in: SignedIn, address: str) -> None:
        """Refuse a request. Works without a record. Raises: TidegateError POLICY_DENIED,
        ARGUMENT_INVALID."""
        asked = self.find(id, signed_in)
        self._service.deny(asked.id, records=self._consent.records(signed_in, address))


def is_for(pairing: Pairing, signed_in: SignedIn) -> bool:
    """Whether the operator may see and answer a request."""
    return may_give(signed_in, pairing.wanted.sources, pairing.wanted.tags)


def _card(pairing: Pairing) -> dict[str, Any]:
    wanted = pairing.wanted
    return {
        "id": pairing.id,
        "client": pairing.client,
        "address": pairing.address,
        "asked_at": pairing.asked_at,
        "expires_at": pairing.expires_at,
        "wanted": {
            "scope": wanted.scope.value,
            "sources": None if wanted.sources is None else sorted(wanted.sources),
            "tags": None if wanted.tags is None else sorted(wanted.tags),
            "tables": None if wanted.tables is None else sorted(wanted.tables),
            "lasts_s": wanted.lasts_s,
        },
    }
