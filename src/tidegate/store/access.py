"""State of access: tokens, requests for tokens, operators and their sessions.

`api.py` says what holds of every area.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from typing import Literal, Protocol

from tidegate.store.records import (
    OperatorEntry,
    OperatorSession,
    Pairing,
    PairingState,
    TokenEntry,
    TokenRights,
)


class TokenStore(Protocol):
    """The tokens, by the digest of their secret."""

    def generation(self) -> int:
        """A number that differs after any change of a token's rights. From memory."""
        ...

    def list(self) -> tuple[TokenEntry, ...]:
        """Every token, also expired and revoked ones, in the order they were made."""
        ...

    def add(self, entry: TokenEntry, digest: bytes) -> None:
        """Keep a token under the digest of its secret.

        A token of the same name that has expired by `entry.created_at` is revoked.
        Raises: TidegateError ARGUMENT_INVALID if an active token has the name.
        """
        ...

    def by_digest(self, digest: bytes) -> TokenEntry | None:
        """The token whose secret has this digest, also if it is expired or revoked."""
        ...

    def change(self, entry: TokenEntry, was: TokenEntry) -> bool:
        """Keep other rights of a token: its scope, lists and expiry.

        False if the token is revoked, or its rights are not what they were in `was`.
        """
        ...

    def revoke(self, name: str, at: float, id: str | None = None) -> TokenEntry | None:
        """Revoke the active token of that name permanently; None if there is none, or if it is not
        the one with that id."""
        ...

    def revoked(self, ids: Collection[str]) -> frozenset[str]:
        """Those of `ids` that are tokens and revoked."""
        ...

    def touch(self, uses: Mapping[str, float]) -> None:
        """Save when tokens, by id, were last used. Never moves a time back."""
        ...


class PairingStore(Protocol):
    """Requests for a token that wait for the operator.

    A request is found by the short `id` that people compare, or by the digest of the secret code
    that only the client has.
    """

    def add(
        self,
        pairing: Pairing,
        digest: bytes,
        *,
        most: int,
        most_of_origin: int,
        origin: Callable[[str], str],
    ) -> bool:
        """Keep a request under the digest of its code; False if too many are pending. `origin`
        maps an address to the network that counts as one address."""
        ...

    def forget(self, before: float) -> None:
        """Remove what expired before that time."""
        ...

    def list(self) -> tuple[Pairing, ...]:
        """All that are kept, oldest first."""
        ...

    def find(self, id: str) -> Pairing | None:
        """The request that people know by this id."""
        ...

    def by_digest(self, digest: bytes) -> Pairing | None:
        """The request whose code has this digest."""
        ...

    def resolve(
        self,
        id: str,
        state: Literal["approved", "denied"],
        now: float,
        *,
        expires_at: float | None = None,
        token_name: str = "",
        granted: TokenRights | None = None,
    ) -> bool:
        """Answer a pending request; False if it is not pending or has expired."""
        ...

    def end(self, id: str, was: PairingState, state: Literal["exchanged", "burnt"]) -> bool:
        """Make a code worthless; False if another caller was faster. So a code is used once."""
        ...


CheckOperators = Callable[[Sequence[OperatorEntry]], None]


class OperatorStore(Protocol):
    """The people with accounts, the links that sign them in, and their sessions. Links and sessions
    are found by the digest of their secret. What belongs to an operator goes with it."""

    def list(self) -> tuple[OperatorEntry, ...]:
        """All operators by name."""
        ...

    def add(self, operator: OperatorEntry) -> None:
        """Keep an operator. Raises: TidegateError ARGUMENT_INVALID if the name is taken, in any
        case of its letters."""
        ...

    def change(
        self,
        operator: OperatorEntry,
        names: Sequence[str],
        check: CheckOperators | None = None,
        *,
        ends_access: bool = False,
    ) -> bool:
        """Keep the fields of these names of an operator; False if there is none. `check`
        gets all operators as they are before, in the same transaction; what it raises undoes it.
        With `ends_access` its links and sessions end in it, too."""
        ...

    def remove(self, id: str, check: CheckOperators | None = None) -> bool:
        """Remove an operator with its links and sessions; False if there was none. `check` as in
        `change`. Its saved queries go along, those that it shared stay without an owner."""
        ...

    def add_link(self, digest: bytes, operator: str, expires_at: float, now: float) -> None:
        """Keep a link that signs the operator in, once. Removes those that have expired."""
        ...

    def use_link(self, digest: bytes, now: float, latest: float = inf) -> str | None:
        """Use a link up and return its operator's id; None if there is none, it has expired, or it
        would do so after `latest`. Of two callers at once one gets it."""
        ...

    def add_session(self, session: OperatorSession, digest: bytes) -> None:
        """Keep a session. Removes those that have ended."""
        ...

    def session(self, digest: bytes) -> OperatorSession | None:
        """The session whose secret has this digest, also if it has ended."""
        ...

    def sessions(self) -> tuple[OperatorSession, ...]:
        """All sessions that are kept, oldest first."""
        ...

    def touch_session(self, id: str, seen_at: float, confirmed_at: float | None) -> None:
        """Save when a session was last used and confirmed."""
        ...

    def end_sessions(self, *, id: str | None = None, operator: str | None = None) -> int:
        """Remove the session of that id, or all of an operator; how many there were."""
        ...
