"""The decision on a call, and the proof of it that engines ask for. Frozen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from tidegate.model.actors import Actor
from tidegate.model.changes import ChangeKeeper
from tidegate.model.joined_tables import JoinedTable
from tidegate.model.requests import EngineRequest
from tidegate.model.results import Limits, UpstreamUse
from tidegate.model.sources import Identity, Source
from tidegate.model.statements import Effect, Judgement


class Verdict(msgspec.Struct, frozen=True):
    """The decision on a call.

    `allow` leads to a permit; `ask` does for a dry run, and for the request itself once a person
    has approved it. `deny` leads to none. `confirm` and an unapproved `ask` permit metadata
    (`Browse`) and no more.
    """

    kind: Literal["allow", "ask", "confirm", "deny"]
    rule: str
    reason: str
    code: str | None = None
    hint: str | None = None


class Permit(msgspec.Struct, frozen=True):
    """Proof that the call may run `request`.

    The intent is on record, and the verdict was `allow`, or it was `ask` and a person approved or
    the request is a dry run. A `Browse` or a `Prepare` needs no intent, and no more than a verdict
    that is not `deny`.

    Made by `gateway.context` only. An engine accepts nothing else. With an `identity` the engine
    runs as that, or not at all.

    `judgement` is the gate's of the text that runs, which is `judged_text`: where a statement was
    rewritten it is that of the rewritten one, so no engine judges it again. An engine refuses a
    permit whose statement is another. `effect` may be higher: the database may have raised it.
    `schema_version` is the version of the catalog that the statement was rewritten by, for an
    engine that `checks_schema`. `plan` is the digest of what the change would send, to which its
    approval is bound: an engine that `plans` sends nothing else. Empty where none is known.
    `joined` are the tables of other sources that the statement may use. `report` is what an engine
    of providers calls, on the event loop, with what it sent so far. `looks_after`: a person has
    approved the change here, so the engine reads the state after it, if it can.
    `max_rows_changed`: a change of more rows is rolled back, by an engine that `counts_changes`.
    `whole_changes`: a change that turns out to be about every row of its table is rolled back for
    want of a confirmation, or since the source admits none, by an engine that `counts_changes`.
    `keeper`: an engine that `undoes` gives it the rows of the change before it commits.
    """

    call_id: str
    actor: Actor
    source: Source
    request: EngineRequest
    effect: Effect
    limits: Limits
    identity: Identity | None = None
    judgement: Judgement | None = None
    judged_text: str | None = None
    schema_version: str | None = None
    plan: str = ""
    joined: tuple[JoinedTable, ...] = ()
    report: Callable[[UpstreamUse], None] | None = None
    looks_after: bool = False
    max_rows_changed: int | None = None
    keeper: ChangeKeeper | None = None
    whole_changes: Literal["", "confirm", "deny"] = ""
