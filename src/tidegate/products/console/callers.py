"""All who call: holders of tokens, operators, clients that ask for a token, and the callers that
hold none. As whom each of them comes to a source, for those who check what it may do there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from tidegate.identity.operators import Operators, SignedIn
from tidegate.identity.pairing import client_of
from tidegate.identity.tokens import Tokens, actor_of_token
from tidegate.model.actors import Actor
from tidegate.model.sources import Source
from tidegate.products.console.admins import is_admin
from tidegate.products.console.pairing_requests import PairingRequests, is_for
from tidegate.products.console.sign_in import actor_of
from tidegate.products.console.token_forms import state_of
from tidegate.store.records import OperatorEntry, OperatorSession

_NO_SESSION = OperatorSession("", "", "link", 0.0, 0.0, 0.0, None, "", "")
CallerKind = Literal["token", "operator", "request", "other"]


class Caller(NamedTuple):
    """One who calls. `id` names it among all, `kept` says where its rights are kept."""

    id: str
    kind: CallerKind
    name: str
    kept: str
    actor: Actor
    operator: OperatorEntry | None = None

    def actor_on(self, source: Source) -> Actor:
        """As whom it comes to the source."""
        if self.operator is None:
            return self.actor
        return actor_of(_as_signed_in(self.operator), source.name)


class Callers:
    """The callers of one server. `others` are those without a token, each with where its rights are
    kept."""

    def __init__(
        self,
        tokens: Tokens,
        operators: Operators,
        pairings: PairingRequests,
        others: Callable[[], Sequence[tuple[Actor, str]]],
        clock: Callable[[], float],
    ) -> None:
        self._tokens = tokens
        self._operators = operators
        self._pairings = pairings
        self._others = others
        self._clock = clock

    def all(self) -> Iterator[Caller]:
        """Everyone who can call now, and the clients that ask for a token. Reads the state."""
        now = self._clock()
        for entry in self._tokens.list():
            if state_of(entry, now) == "active":
                file = self._tokens.in_file(entry)
                kept = (
                    f"the token {entry.name}, in the state" if file is None else f"the file {file}"
                )
                yield Caller(f"token:{entry.id}", "token", entry.name, kept, actor_of_token(entry))
        for operator in self._operators.list():
            kept = f"the roles of {operator.name}, in the state"
            yield Caller(
                f"operator:{operator.name}",
                "operator",
                operator.name,
                kept,
                actor_of(_as_signed_in(operator)),
                operator,
            )
        for asked in self._pairings.waiting():
            kept = f"the request {asked.id}, which waits for a yes"
            actor = client_of(asked.client, asked.wanted)
            yield Caller(f"request:{asked.id}", "request", asked.client, kept, actor)
        for actor, kept in self._others():
            yield Caller(f"other:{actor.id}", "other", actor.name, kept, actor)

    def seen_by(self, signed_in: SignedIn) -> list[Caller]:
        """Those whose rights on every source the operator may see: an admin of all sources
        sees all, everyone else only their own account."""
        own = f"operator:{signed_in.operator.name}"
        whole = is_admin(signed_in)
        return [each for each in self.all() if whole or each.id == own]

    def on_source(self, signed_in: SignedIn) -> list[Caller]:
        """Those that an admin of some source may see there."""
        waiting = {each.id: each for each in self._pairings.waiting()}
        return [
            each
            for each in self.all()
            if each.kind != "request"
            or is_for(waiting[each.id.removeprefix("request:")], signed_in)
        ]


def _as_signed_in(operator: OperatorEntry) -> SignedIn:
    return SignedIn(operator, _NO_SESSION)
