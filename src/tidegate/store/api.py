"""The state that processes share, one protocol per area: records in and out, and no SQL.

The areas of access are in `access.py`, budgets in `budgets.py`, what later calls
need in `carried.py`, gates in `gates.py`, messages between processes in `messages.py`, those of
what people supervise in `supervision.py`, saved queries in `saved_queries.py` and what ships the
record in `shipping.py`.

A store knows no policy and no clock. `tests/contract/stores` holds the contract of every area for
every implementation. Several processes may share one state. Every method is safe to call from any
thread and may wait for a disk or a network, so an event loop calls it in a thread. The exceptions
say "from memory": they answer at once, from a snapshot that is at most `MAX_AGE_S` behind what
other processes did, and never behind what this process did. Where a server follows the state
(`Versions.follow`), they read nothing, and raise once the state was not seen for a while.

Every method may raise TidegateError STATE_FAILED if the state cannot be read or written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from tidegate.model.replies import HistoryEntry
from tidegate.model.sources import Source
from tidegate.store.access import OperatorStore, PairingStore, TokenStore
from tidegate.store.budgets import BudgetStore
from tidegate.store.carried import CarriedStore
from tidegate.store.disk_reserve import DiskReserve
from tidegate.store.gates import GateStore
from tidegate.store.messages import MessageStore
from tidegate.store.records import (
    AnswerEntry,
    NewTab,
    PairEntry,
    ProviderUseEntry,
    StagedEntry,
    TabEntry,
    TabEvent,
    WindowEntry,
)
from tidegate.store.saved_queries import SavedQueryStore
from tidegate.store.seals import Seals
from tidegate.store.shipping import ShippingStore
from tidegate.store.supervision import ApprovalStore, ChangeStore, TaskStore, WebhookStore
from tidegate.store.versions import Topic, Versions

MAX_AGE_S = 0.5
"""How far an answer from memory may be behind a change that another process made."""


class SourceStore(Protocol):
    """The saved sources."""

    def generation(self) -> int:
        """A number that differs after any change of a source. From memory."""
        ...

    def list(self) -> tuple[Source, ...]:
        """The saved sources by name. From memory, once they were read."""
        ...

    def find(self, name: str) -> Source | None:
        """The saved source of that name. From memory, once it was read."""
        ...

    def add(self, source: Source) -> None:
        """Save a source. Raises: TidegateError ARGUMENT_INVALID if its name or id is taken."""
        ...

    def change(self, source: Source, was: Source) -> bool:
        """Keep other settings of a source; its name and id stay.

        False if the saved source is not what it `was`: otherwise a mask that another process has
        added meanwhile would be lost.
        """
        ...

    def rename(self, was: Source, now: Source, at: float) -> tuple[str, ...] | None:
        """Give a source another name and id; the rest stays.

        In the same transaction the lists of tokens that are not revoked, the history, the windows
        and the confirmed pairs follow. Requests for approval that are pending or allowed expire.
        Returns the names of these tokens, and None if the saved source is not what it `was`.
        Raises: TidegateError ARGUMENT_INVALID, with nothing changed, if another source has the
        name, or a token names it: it would see a source that it was not given.
        """
        ...

    def remove(self, name: str) -> bool:
        """Remove a source; False if there was none."""
        ...


class HistoryStore(Protocol):
    """The statements that were run."""

    def add(self, entries: Sequence[HistoryEntry]) -> None:
        """Add entries in one transaction; the order given is their order in time."""
        ...

    def search(
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

    def trim(self, keep: int, since: float) -> int:
        """Remove all but the newest `keep` entries and all before `since`; how many went."""
        ...


class WindowStore(Protocol):
    """Windows and tabs of the workspace, of their owners. A window never stays without a tab, and
    one is active. An owner has one window for a source. `by` names the caller who acts, empty for a
    person at a page. What happens to tabs is kept for a while as events. What would make the texts
    of an owner's tabs longer together than they may be raises TidegateError LIMIT_BYTES, and
    changes nothing.
    """

    def open_window(
        self, owner: str, source_id: str, title: str, now: float, by: str = ""
    ) -> WindowEntry:
        """The owner's window of that source, or a new one with an empty query tab."""
        ...

    def open_tab(
        self, owner: str, source_id: str, tab: NewTab, now: float, by: str = ""
    ) -> TabEntry:
        """A tab in front of the owner's window of that source; of a table the one there is."""
        ...

    def focus(
        self, owner: str, tab_id: str, source_ids: Iterable[str], now: float, by: str = ""
    ) -> TabEntry | None:
        """Bring a tab of one of the sources to the front; None if there is no such tab."""
        ...

    def write(
        self,
        owner: str,
        tab_id: str,
        version: int,
        *,
        text: str | None = None,
        title: str | None = None,
        position: float | None = None,
        chart: str | None = None,
    ) -> bool:
        """Keep what a page has written in a tab; False if its version is another one by now."""
        ...

    def find(self, owner: str, tab_id: str) -> TabEntry | None:
        """The open tab of that id."""
        ...

    def tabs(self, owner: str, source_ids: Iterable[str], limit: int) -> list[TabEntry]:
        """Tabs of these sources, the one last in front first."""
        ...

    def close_tab(self, owner: str, tab_id: str, by: str = "") -> bool:
        """Close a tab, and its window with the last one. False if it was closed before."""
        ...

    def reopen(self, owner: str, source_ids: Iterable[str], now: float) -> TabEntry | None:
        """Open the tab of one of the sources again that was closed last; None if there is none."""
        ...

    def show(self, owners: Iterable[str], now: float) -> None:
        """Save that pages of these owners are open."""
        ...

    def seen_at(self, owner: str) -> float | None:
        """When a page of the owner was last open."""
        ...

    def events(self, after: int) -> list[TabEvent]:
        """What happened to tabs since the event of that number, oldest first."""
        ...

    def last_event(self) -> int:
        """The number of the newest event; 0 if there was none."""
        ...


class StagedEditStore(Protocol):
    """Edits of rows that are staged in the tabs of their owners, until they are made. They go with
    their tab, once it cannot be opened again."""

    def find(self, owner: str, tab_id: str) -> StagedEntry | None:
        """What is staged in a tab; None if nothing ever was."""
        ...

    def write(self, owner: str, tab_id: str, version: int, body: bytes, now: float) -> bool:
        """Keep what is staged in place of that version, 0 for the first; False if it is another one
        by now."""
        ...


class QuestionStore(Protocol):
    """Questions in plain language: confirmed pairs, answers, and the use of providers of models."""

    def pairs(self, source_id: str) -> tuple[PairEntry, ...]:
        """The confirmed pairs of a source, oldest first."""
        ...

    def add_pair(self, pair: PairEntry) -> None:
        """Keep a pair, in place of one with the same id, or of the same question on its source."""
        ...

    def remove_pair(self, source_id: str, id: str) -> bool:
        """Remove a pair; False if there was none."""
        ...

    def add_answer(self, answer: AnswerEntry, forget_before: float) -> None:
        """Keep an answer, and remove those that were given before that time."""
        ...

    def answer(self, handle: str) -> AnswerEntry | None:
        """The answer of that handle."""
        ...

    def used(self, actor: str, kind: str, day: str) -> ProviderUseEntry:
        """What the actor has used of a kind of provider on that day, such as `2026-11-23`."""
        ...

    def use(self, actor: str, kind: str, day: str, units: int, seconds: float) -> None:
        """Add to what the actor has used on that day, and remove what it used before."""
        ...


class SharedStore(Protocol):
    """Small values that every process on one state must agree on."""

    def secret(self, name: str) -> bytes:
        """32 random bytes of that name, made when it is first asked for; the same for everyone."""
        ...

    def use_once(self, kind: str, value: str, expires_at: float, now: float) -> bool:
        """Use up a value, such as a nonce; False if it was used before.

        It is remembered until `expires_at` (Unix seconds): after that the value must be invalid
        for another reason.
        """
        ...

    def add_failure(self, key: str, now: float, *, most: int, window_s: float) -> bool:
        """Count a failure of `key`, such as an address; True if it is the `most`-th within
        `window_s` seconds. Then counting begins again."""
        ...

    def lock(self, key: str, until: float) -> None:
        """Lock `key` until that time (Unix seconds)."""
        ...

    def locked_until(self, key: str, now: float) -> float | None:
        """Until when `key` is locked; None if it is not."""
        ...

    def lock_sealed(self, key: str, until: float, now: float) -> None:
        """Lock `key` so that no one lifts it who writes the tables past the gates."""
        ...

    def sealed_until(self, key: str, now: float) -> float | None:
        """Until when `key` is locked in either way; None if it is not. Raises: TidegateError
        STATE_FAILED, with details, where the seals that say so are not as a gate left them."""
        ...

    def keep_unrecorded(self, event: bytes) -> None:
        """Keep an event that the audit log could not take, for a process that can write it."""
        ...

    def unrecorded(self) -> tuple[tuple[int, bytes], ...]:
        """The events that were kept, with the ids for `forget_unrecorded`, oldest first."""
        ...

    def forget_unrecorded(self, id: int) -> None:
        """Remove a kept event: it is on record."""
        ...

    def forget(self, now: float, window_s: float) -> None:
        """Remove what has expired, and failures older than `window_s` seconds."""
        ...


class State(Protocol):
    """Every area of one state."""

    @property
    def sources(self) -> SourceStore: ...
    @property
    def tokens(self) -> TokenStore: ...
    @property
    def budgets(self) -> BudgetStore: ...
    @property
    def history(self) -> HistoryStore: ...
    @property
    def approvals(self) -> ApprovalStore: ...
    @property
    def operators(self) -> OperatorStore: ...
    @property
    def changes(self) -> ChangeStore: ...
    @property
    def webhook(self) -> WebhookStore: ...
    @property
    def tasks(self) -> TaskStore: ...
    @property
    def windows(self) -> WindowStore: ...
    @property
    def queries(self) -> SavedQueryStore: ...
    @property
    def staged_edits(self) -> StagedEditStore: ...
    @property
    def pairings(self) -> PairingStore: ...
    @property
    def questions(self) -> QuestionStore: ...
    @property
    def shipping(self) -> ShippingStore: ...
    @property
    def shared(self) -> SharedStore: ...
    @property
    def messages(self) -> MessageStore: ...
    @property
    def gates(self) -> GateStore: ...
    @property
    def carried(self) -> CarriedStore: ...
    @property
    def seals(self) -> Seals: ...

    @property
    def versions(self) -> Versions:
        """What this process knows of changes; `versions.py` says what an implementation owes it."""
        ...

    def read_versions(self) -> Mapping[Topic, int]:
        """The counters of all topics as they are now. Waits for no writer."""
        ...

    @property
    def reserve(self) -> DiskReserve:
        """Space on a disk of this machine for when it is full."""
        ...

    def concerns(self) -> Sequence[str]:
        """What may lose changes that were kept, such as standbys that come after; from memory."""
        ...

    def now(self) -> float:
        """The time in Unix seconds that processes on this state compare: that of its database,
        where machines share it. From memory, once it was asked."""
        ...

    def seal_again(self) -> int:
        """Seal all rows as they are, by which those count that were written past the gates; how
        many there are. Raises: TidegateError STATE_FAILED, CONFIG_INVALID without a key."""
        ...

    def try_writing(self) -> None:
        """See that a change could be written now; nothing is kept. Raises: TidegateError."""
        ...

    def close(self) -> None:
        """Close files and connections. Safe to call twice; afterwards methods raise."""
        ...
