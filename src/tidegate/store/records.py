"""What a store keeps: the records of tokens, approvals, operators, windows and pairings.

Sources (`model.sources`) and the history (`model.replies`) are values of the whole program.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.actors import RoleGrant, Scope
from tidegate.model.changes import Reversibility
from tidegate.model.statements import DryRun

# Tokens


class TokenEntry(msgspec.Struct, frozen=True):
    """A token without its secret. `prefix` is the start of the plaintext, to tell tokens apart.

    Times are Unix seconds. `sources` and `tags` are the allowlist, both None every source, and
    `tables` that of tables there, None all; `revoked_at` is never taken back. `scram_verifier` is
    what a server needs to check the token by SCRAM-SHA-256 (`identity.scram`), None for tokens of
    token files. `proxy`, `maker` and `max_rows_changed` are as in `model.actors.Actor`. `owner` is
    the name of the operator whose token it is, empty if it has none.
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
    scram_verifier: str | None = None
    proxy: bool = False
    owner: str = ""
    max_rows_changed: int | None = None
    maker: str = ""


# Approvals

ApprovalState = Literal["pending", "allowed", "denied", "used", "expired"]


class Subject(msgspec.Struct, frozen=True):
    """What a person is shown of a call. `statement` and `params` hold no secrets.

    `withheld`: something was left out of them, because it may be a secret. `params` are as text,
    None if there are none. `guarded`: the caller asks before it reads, so its client shows no rows.
    `agent_reason` is what the caller says it is for. `circumstances` is a digest of the rights
    under which it was asked: a grant for some minutes ends when they change. `owner` is the
    operator whose token the caller has, empty if it has none, and `maker` is as in
    `model.actors.Actor`.
    `reversible`: whether the rows of the change can be put back; None: nothing is kept on the
    source, or it is no change. A change of more than `max_rows_changed` rows is rolled back;
    `uncounted` says which of its rows do not count.
    """

    actor_name: str
    client: str
    surface: str
    tool: str
    source: str
    source_id: str
    statement: str
    effect: str
    rule: str
    reason: str
    params: str | None = None
    withheld: bool = False
    tables: tuple[str, ...] = ()
    unqualified: bool = False
    database: str | None = None
    schema: str | None = None
    guarded: bool = False
    outside_transaction: bool = False
    agent_reason: str = ""
    circumstances: str = ""
    owner: str = ""
    reversible: Reversibility | None = None
    max_rows_changed: int | None = None
    uncounted: str = ""
    maker: str = ""

    @property
    def irreversible(self) -> bool:
        """Whether the database cannot take the call back by itself: a person answers for one such
        call at a time."""
        return self.outside_transaction or self.effect in ("destructive", "admin", "unknown")


class ApprovedRun(msgspec.Struct, frozen=True):
    """What became of a call that was approved. `at` is Unix seconds; `rows` those that it changed
    or returned, None if that is not known; `message` says why it failed, or what is not known. With
    `change_id` its rows can be put back."""

    state: Literal["running", "done", "failed", "unknown"]
    at: float
    call_id: str
    rows: int | None = None
    message: str = ""
    change_id: str = ""


class RefusedRetry(msgspec.Struct, frozen=True):
    """The same call came again after the answer and was refused: the last time at `at` (Unix
    seconds), and why; `count` times in all."""

    at: float
    message: str
    count: int = 1


class PendingApproval(msgspec.Struct, frozen=True):
    """One request for approval. Times are Unix seconds; `actor` is the caller's id; `askers` counts
    the calls that made it. `ended_at` is when an answer was used or expired.

    The caller waits until `waits_until` for the answer; None: it has to call again. A grant is used
    `most_uses` times at most, `uses` of which are over, and not after `until`. `run` is what became
    of the call that used it last; `refused` the calls that came again and did not run."""

    id: str
    digest: str
    state: ApprovalState
    actor: str
    subject: Subject
    asked_at: float
    askers: int = 1
    decided_at: float | None = None
    decided_by: str = ""
    reason: str = ""
    ended_at: float | None = None
    dry_run: DryRun | None = None
    waits_until: float | None = None
    until: float | None = None
    uses: int = 0
    most_uses: int = 1
    run: ApprovedRun | None = None
    refused: RefusedRetry | None = None


class ApprovalBounds(msgspec.Struct, frozen=True):
    """Grants and denials given before these times (Unix seconds) no longer count, and none that was
    given after `latest`; how many requests may be pending, in all and of one actor."""

    grants_since: float
    denials_since: float
    most: int
    most_of_actor: int
    latest: float = float("inf")


# Messages of the webhook

WebhookState = Literal["waiting", "listed", "sent", "dropped"]


class WebhookMessage(msgspec.Struct, frozen=True):
    """A message about a question (`approval`, empty for one about several), which is sent with the
    same id and body at every attempt. Times are Unix seconds. One of state `listed` is part of the
    next digest. `followed`: the answer to the question gets a message of its own."""

    id: str
    type: str
    approval: str
    body: bytes
    state: WebhookState
    made_at: float
    next_at: float
    attempts: int = 0
    followed: bool = False


# Operators


class OperatorEntry(msgspec.Struct, frozen=True):
    """A person with an account. `hash` is that of the passphrase with `salt`, empty as long as the
    person has set none. `inviter` is the `person` of the account by whose invitation it got in;
    empty if its passphrase was given at the command line. `roles_by` is who gave its roles, as on
    record."""

    id: str
    name: str
    salt: bytes
    hash: bytes
    roles: tuple[RoleGrant, ...]
    created_at: float
    inviter: str = ""
    roles_by: str = ""

    @property
    def person(self) -> str:
        """What it has in common with all accounts that may be the same person's: the id of the
        account that they come from."""
        return self.inviter or self.id


OPERATOR = "operator:"
"""What the id of an operator starts with where it acts, on record."""


def operator_of(actor: str) -> str:
    """The name of the operator of that id on record; empty if it is not an operator."""
    return actor.removeprefix(OPERATOR) if actor.startswith(OPERATOR) else ""


class OperatorSession(msgspec.Struct, frozen=True):
    """A browser in which an operator (its id) is signed in. Times are Unix seconds; `confirmed_at`
    is when the passphrase was typed in it, None if it never was."""

    id: str
    operator: str
    signed_in_by: Literal["link", "passphrase"]
    created_at: float
    seen_at: float
    ends_at: float
    confirmed_at: float | None
    address: str
    browser: str


# Windows

MAX_TABS = 500
"""Above it, the tabs of an owner that were not in front for the longest time are closed."""
MAX_TABS_BYTES = 16_777_216
"""How much text (UTF-8) the tabs of an owner hold in all: a page reads all of it when it opens."""
MAX_CLOSED_TABS = 20
"""How many closed tabs of an owner can be opened again."""
MOST_TAB_EVENTS = 500
"""How many of the newest events of tabs are kept."""
SHOWN_ONCE = ("table", "erDiagram", "serverDashboard")
"""Kinds of tabs of which there is one for the same source, table and place."""


def check_room_for_tabs(size: int) -> None:
    """Raises: TidegateError LIMIT_BYTES if an owner's tabs, which would hold `size` bytes of text,
    hold more than they may."""
    if size > MAX_TABS_BYTES:
        raise TidegateError(
            Code.LIMIT_BYTES,
            f"The open tabs would hold {size:,} bytes of text together; at most"
            f" {MAX_TABS_BYTES:,} are kept. What was sent is not kept.",
            hint="Close a tab with a long text first.",
        )


TabKind = Literal["query", "table", "createTable", "erDiagram", "serverDashboard", "terminal"]


class WindowEntry(msgspec.Struct, frozen=True):
    """A window of the operator `owner`, empty for one of no one; `seen_at` is when a page of its
    owner was last open, in Unix seconds, None if none was."""

    id: str
    source_id: str
    owner: str = ""
    seen_at: float | None = None


class TabEntry(msgspec.Struct, frozen=True):
    """A tab with its window's source, owner and `seen_at`. `opened_by` names the caller who opened
    it, empty for a person at a page. `version` grows whenever its text, title or place changes."""

    id: str
    window_id: str
    source_id: str
    kind: TabKind
    title: str
    is_active: bool
    focused_at: float
    table: str | None = None
    database: str | None = None
    schema: str | None = None
    seen_at: float | None = None
    owner: str = ""
    text: str = ""
    position: float = 0.0
    opened_by: str = ""
    opened_at: float = 0.0
    version: int = 1
    chart: str = ""
    """The chart of its results as JSON, empty without one."""


class NewTab(msgspec.Struct, frozen=True):
    """What a tab that is opened shows; `first_title` is the title of the query tab that a new
    window begins with, none if it is empty."""

    kind: TabKind
    title: str
    table: str | None = None
    database: str | None = None
    schema: str | None = None
    text: str = ""
    first_title: str = ""


TabAction = Literal["opened", "focused", "changed", "closed"]


class TabEvent(msgspec.Struct, frozen=True):
    """What happened to a tab, and the caller who did it: empty for a person at a page. `tab` is as
    it is now; None if it is not kept any more, was closed since it was opened, or is open again."""

    n: int
    action: TabAction
    by: str
    owner: str
    tab: TabEntry | None


class StagedEntry(msgspec.Struct, frozen=True):
    """Edits of rows that are staged in a tab, sealed. `version` grows with each change of them."""

    version: int
    body: bytes


# Pairings

PairingState = Literal["pending", "approved", "denied", "exchanged", "burnt"]


class TokenRights(msgspec.Struct, frozen=True):
    """What a token may do, as wanted or as granted. `sources` and `tags` None: every source;
    `tables` None: all there.

    `lasts_s` is how long the token is to live, in seconds from its making; None: it does not
    expire. `max_rows_changed` is as in `model.actors.Actor`. `owner` is the operator whose token it
    becomes, and `maker` is as in `model.actors.Actor`: they are granted, never asked for.
    """

    scope: Scope = Scope.READ_ONLY
    sources: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    lasts_s: float | None = None
    tables: frozenset[str] | None = None
    max_rows_changed: int | None = None
    owner: str = ""
    maker: str = ""


class Pairing(msgspec.Struct, frozen=True):
    """One request for a token. Times are Unix seconds; an approval sets `granted` and
    `token_name`."""

    id: str
    client: str
    address: str
    challenge: str
    wanted: TokenRights
    asked_at: float
    expires_at: float
    state: PairingState = "pending"
    token_name: str = ""
    granted: TokenRights | None = None


# Questions

SlotKind = Literal["text", "number", "date"]


class PairSlot(msgspec.Struct, frozen=True):
    """A value that differs from question to question. `column` (`schema.table.column`) is what the
    statement compares a text with, empty if that is not known."""

    name: str
    kind: SlotKind
    column: str = ""


class PairEntry(msgspec.Struct, frozen=True):
    """A question whose statement a person has confirmed. In both, `{1:date}` replaces
    the value of a slot.

    `tables` (`schema.table`) are those that the statement names, and `schema_digest` a digest of
    their columns at the time: of another one the pair has lapsed. `result_digest` is one of the
    columns and rows that were confirmed, empty if there were slots.
    """

    id: str
    source_id: str
    question: str
    sql: str
    slots: tuple[PairSlot, ...]
    tables: tuple[str, ...]
    schema_digest: str
    result_digest: str
    confirmed_by: str
    confirmed_at: float


class AnswerEntry(msgspec.Struct, frozen=True):
    """A question of one actor (its id) that was answered with a statement."""

    handle: str
    actor: str
    source_id: str
    question: str
    sql: str
    answered_at: float


class ProviderUseEntry(msgspec.Struct, frozen=True):
    """What one actor has used of one kind of provider in a day: tokens of the language model, or
    characters that were embedded."""

    units: int = 0
    seconds: float = 0.0
