"""The state that processes share, one protocol per area: records in and out, and no SQL.

A store knows no policy and no clock. `tests/contract/stores` holds the contract of every area for
every implementation. Several processes may share one state. Every method is safe to call from any
thread and may wait for a disk or a network, so an event loop calls it in a thread. The exceptions
say "from memory": they answer at once, from a snapshot that is at most `MAX_AGE_S` behind what
other processes did, and never behind what this process did.

Every method may raise TidegateError STATE_FAILED if the state cannot be read or written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, Protocol

from tidegate.model.changes import ChangeEntry
from tidegate.model.replies import HistoryEntry
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun
from tidegate.store.records import (
    AnswerEntry,
    ApprovalBounds,
    ApprovalState,
    ApprovedRun,
    NewTab,
    OperatorEntry,
    OperatorSession,
    PairEntry,
    Pairing,
    PairingState,
    PendingApproval,
    ProviderUseEntry,
    TabEntry,
    TabEvent,
    TokenEntry,
    TokenRights,
    WebhookMessage,
    WindowEntry,
)

MAX_AGE_S = 0.25
"""How far an answer from memory may be behind a change that another process made."""


# Sources


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


# Tokens


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


# History


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


# Approvals


class ApprovalStore(Protocol):
    """Requests for approval and their answers.

    A request is found by its `id`, which people use, or by its digest, which identifies the call.
    A grant is used up by the statement that finds it, so that no two callers can use it.
    """

    def admit(self, question: PendingApproval, bounds: ApprovalBounds) -> PendingApproval:
        """The answer to the request as far as there is one, else the request that is pending.

        In this order: a grant, which is used up now (state `used`); a denial that still counts
        (`denied`); an equal request that is pending; this one, which is pending from now on.
        Raises: TidegateError LIMIT_RATE if too many are pending.
        """
        ...

    def answer(self, digest: str, bounds: ApprovalBounds, now: float) -> PendingApproval | None:
        """A grant, used up now, or a denial that still counts; None if there is neither."""
        ...

    def give_back(self, id: str) -> None:
        """Let a use of a grant not count, with the time at which it was given."""
        ...

    def resolve(
        self,
        id: str,
        state: Literal["allowed", "denied"],
        by: str,
        reason: str,
        now: float,
        *,
        until: float | None = None,
        most_uses: int = 1,
    ) -> bool:
        """Answer a pending request; False if it is not pending. A grant with `until` ends then, and
        is used `most_uses` times at most."""
        ...

    def revoke(self, id: str, now: float) -> bool:
        """End a grant, which expires; False if it is none, or used up."""
        ...

    def set_waiting(self, id: str, until: float | None) -> None:
        """Keep until when the caller waits for the answer; None: it does not."""
        ...

    def attach_run(self, id: str, run: ApprovedRun) -> None:
        """Keep what became of the call that used the grant."""
        ...

    def note_refused(self, id: str, at: float, message: str) -> None:
        """Count a call that came again after the answer and was refused."""
        ...

    def attach_dry_run(self, id: str, dry_run: DryRun) -> None:
        """Keep what a dry run showed with the request."""
        ...

    def find(self, id: str) -> PendingApproval | None:
        """The request of that id."""
        ...

    def starting(self, start: str) -> tuple[PendingApproval, ...]:
        """Requests whose id starts so, two at most: enough to see that there are several."""
        ...

    def list(self, states: Sequence[ApprovalState] | None = None) -> tuple[PendingApproval, ...]:
        """Requests in these states, or in any, oldest first."""
        ...

    def spans(self, since: float) -> tuple[tuple[str, float, float | None], ...]:
        """Source, when it was asked, and when it was answered or expired (None: it waits) of the
        requests that waited after a time."""
        ...

    def expire_old(
        self, now: float, *, grants: float, questions: float, ended: float
    ) -> tuple[PendingApproval, ...]:
        """Expire grants given and requests made before those times, and return them; remove what
        ended before `ended`."""
        ...


# Messages of the webhook


class WebhookStore(Protocol):
    """Messages about questions, which several processes on one state send each once."""

    def newest_question(self) -> int:
        """The number of the newest question; 0 if there is none."""
        ...

    def new_questions(self, after: int, limit: int) -> tuple[tuple[int, PendingApproval], ...]:
        """Questions that no message is about, with their numbers: those that wait, and those of a
        number above `after`."""
        ...

    def answered(self, limit: int) -> tuple[PendingApproval, ...]:
        """Questions that are followed and wait no more."""
        ...

    def add(self, message: WebhookMessage) -> bool:
        """Keep a message; False if there is one of that id."""
        ...

    def settle(self, approval: str, message: WebhookMessage | None) -> None:
        """Follow a question no more, drop what was to be sent about it, and keep this message."""
        ...

    def take(self, now: float, until: float) -> WebhookMessage | None:
        """The message that is due and was made first, for one attempt of this caller's; it is due
        again at `until`. None if none is due."""
        ...

    def close_message(self, id: str, state: Literal["sent", "dropped"]) -> None:
        """Send a message no more."""
        ...

    def postpone(self, id: str, until: float) -> None:
        """Let a message be due then."""
        ...

    def drop_before(self, before: float) -> int:
        """Drop the messages that were made before and not sent; how many."""
        ...

    def listed(self) -> tuple[PendingApproval, ...]:
        """The questions of the next digest that still wait, oldest first."""
        ...

    def send_listed(self, digest: WebhookMessage) -> None:
        """Keep a digest, and list what is in it no more."""
        ...

    def last_made(self, type: str) -> float | None:
        """When the newest message of a type was made."""
        ...

    def waiting(self) -> int:
        """How many messages wait to be sent, listed ones included."""
        ...

    def forget(self, before: float) -> None:
        """Remove messages that were made before."""
        ...


# Operators


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

    def change(self, operator: OperatorEntry, check: CheckOperators | None = None) -> bool:
        """Keep other roles or another passphrase of an operator; False if there is none. `check`
        gets all operators as they are before, in the same transaction; what it raises undoes it."""
        ...

    def remove(self, id: str, check: CheckOperators | None = None) -> bool:
        """Remove an operator with its links and sessions; False if there was none. `check` as in
        `change`."""
        ...

    def add_link(self, digest: bytes, operator: str, expires_at: float, now: float) -> None:
        """Keep a link that signs the operator in, once. Removes those that have expired."""
        ...

    def use_link(self, digest: bytes, now: float) -> str | None:
        """Use a link up and return its operator's id; None if there is none, or it has expired. Of
        two callers at once one gets it."""
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


# Changes


class ChangeStore(Protocol):
    """Changes whose rows can be put back. The rows are encrypted, each change with a key of its
    own, which the store gets encrypted as well; what is forgotten is overwritten."""

    def prepare(self, entry: ChangeEntry, key: bytes, image: bytes, total_bytes: int) -> None:
        """Keep a change that is about to be committed, durably. The oldest changes are forgotten
        as far as all would be larger than `total_bytes`."""
        ...

    def confirm(self, id: str) -> bool:
        """The change was committed: it is `done`, and the change whose rows it put back is
        `undone`. False if it was not `prepared`."""
        ...

    def mark_undone(self, id: str, by: str) -> None:
        """The rows of the change were put back by that one; empty if that was not kept."""
        ...

    def discard(self, id: str) -> None:
        """Forget a change, as one that was rolled back."""
        ...

    def find(self, id: str) -> ChangeEntry | None:
        """The change of that id."""
        ...

    def of_call(self, call_id: str) -> ChangeEntry | None:
        """The change that a call made."""
        ...

    def starting(self, start: str) -> tuple[ChangeEntry, ...]:
        """Changes whose id starts so, two at most: enough to see that there are several."""
        ...

    def image(self, id: str) -> tuple[bytes, bytes] | None:
        """The encrypted key and rows of a change; None if there are none."""
        ...

    def list(
        self,
        source_ids: Collection[str],
        *,
        limit: int,
        actor: str | None = None,
        approval: str | None = None,
        before: float | None = None,
    ) -> tuple[ChangeEntry, ...]:
        """Changes of these sources, newest first: of one actor, of one approval, made before a
        time (Unix seconds), where these are given."""
        ...

    def forget(self, now: float) -> int:
        """Forget the changes that have expired; how many went."""
        ...


# Windows


class WindowStore(Protocol):
    """Windows and tabs of the workspace, of their owners. A window never stays without a tab, and
    one is active. An owner has one window for a source. `by` names the caller who acts, empty for a
    person at a page. What happens to tabs is kept for a while as events.
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


# Pairings


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


# Questions


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


# Shared between the processes that serve one state


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
    def windows(self) -> WindowStore: ...
    @property
    def pairings(self) -> PairingStore: ...
    @property
    def questions(self) -> QuestionStore: ...
    @property
    def shared(self) -> SharedStore: ...

    def close(self) -> None:
        """Close files and connections. Safe to call twice; afterwards methods raise."""
        ...
