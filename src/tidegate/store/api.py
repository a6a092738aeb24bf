"""What the gate asks of its state: sources, tokens and history, by record and never by SQL.

The docstrings are the contract; `tests/contract/stores` holds it for every store. Several
processes may share one store: what one changes, the others see on their next call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from tidegate.actors import Scope
from tidegate.replies import HistoryEntry
from tidegate.sources import Source

__all__ = ["Area", "HistoryEntry", "Store", "TokenEntry"]

Area = Literal["sources", "tokens"]


class TokenEntry(msgspec.Struct, frozen=True):
    """A token without its secret. `prefix` is the start of the plaintext, to tell tokens apart.

    Times are Unix seconds. `sources` and `tags` are the allowlist, both None every source, and
    `tables` that of tables there, None all; `revoked_at` is never taken back.
    """

    id: str
    name: str
    prefix: str
    scope: Scope
    sources: frozenset[str] | None
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None
    revoked_at: float | None = None
    tags: frozenset[str] | None = None
    tables: frozenset[str] | None = None


class Store(Protocol):
    """Where state lives. Methods are synchronous, short and safe to call from any thread.

    Each may raise GateError STATE_FAILED when the store cannot be reached or written.
    """

    def generation(self, area: Area) -> int:
        """A number that differs after any change of rights in `area`, whoever made it.

        Microseconds, so that callers can keep what they read and ask this on every call.
        """
        ...

    def sources(self) -> tuple[Source, ...]:
        """The saved sources by name. Kept in memory until the sources' generation changes."""
        ...

    def source(self, name: str) -> Source | None:
        """The saved source of that name. Kept in memory like `sources`."""
        ...

    def add_source(self, source: Source) -> None:
        """Save a source. Raises: GateError ARGUMENT_INVALID if its name or id is taken."""
        ...

    def change_source(self, source: Source, was: Source) -> bool:
        """Keep other settings of a source, its name and id stay; False if it is not what it `was`
        any more, lest a mask be lost that another process has added meanwhile."""
        ...

    def remove_source(self, name: str) -> bool:
        """Forget a source; False if there was none."""
        ...

    def tokens(self) -> tuple[TokenEntry, ...]:
        """Every token, also expired and revoked ones, in the order they were made."""
        ...

    def add_token(self, entry: TokenEntry, digest: bytes) -> None:
        """Keep a token under the digest of its secret.

        A token of the same name that has expired by `entry.created_at` is revoked.
        Raises: GateError ARGUMENT_INVALID if an active token has the name.
        """
        ...

    def token_by_digest(self, digest: bytes) -> TokenEntry | None:
        """The token whose secret has this digest, also if it is expired or revoked."""
        ...

    def revoke_token(self, name: str, at: float) -> TokenEntry | None:
        """Revoke the active token of that name for good; None if there is none."""
        ...

    def revoked_tokens(self, ids: Collection[str]) -> frozenset[str]:
        """Those of `ids` that are tokens and revoked."""
        ...

    def touch_tokens(self, uses: Mapping[str, float]) -> None:
        """Note when tokens, by id, were last used. Never moves a time back."""
        ...

    def add_history(self, entries: Sequence[HistoryEntry]) -> None:
        """Add entries in one transaction; the order given is their order in time."""
        ...

    def search_history(
        self,
        words: Sequence[str],
        *,
        sources: Collection[str] | None,
        since: float | None,
        until: float | None,
        limit: int,
        actor: str | None = None,
    ) -> list[HistoryEntry]:
        """Entries that hold a word starting with each of `words`, newest first.

        Words are plain text: nothing in them is an operator. Times are inclusive. `sources` None
        means every source, an empty collection none; `actor`, an id, keeps to that one's entries.
        """
        ...

    def trim_history(self, keep: int, since: float) -> int:
        """Remove all but the newest `keep` entries and all before `since`; how many went."""
        ...

    def close(self) -> None:
        """Let go of files and connections. Safe to call twice."""
        ...
