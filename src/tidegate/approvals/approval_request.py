"""What a person is asked to approve: a statement with everything its meaning hangs on."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import structs

from tidegate.engines.registry import language_of
from tidegate.model.actors import Actor
from tidegate.model.changes import Reversibility
from tidegate.model.decisions import Verdict
from tidegate.model.sources import Source
from tidegate.model.statements import Judgement, Statement
from tidegate.secrets.redaction import MASK, redact
from tidegate.store.records import Subject


class ApprovalRequest(msgspec.Struct, frozen=True):
    """One request of one caller. `database` and `schema` say where the statement would run and
    `settings` with which of its session's, `plan`
    is a digest of what it would send, where that is known, and `reason` what the caller says it is
    for. `reversible`: whether its rows can be put back. A change of more than `max_rows_changed`
    rows is rolled back; `uncounted` says which rows do not count."""

    actor: Actor
    source: Source
    statement: Statement
    judgement: Judgement
    verdict: Verdict
    database: str | None = None
    schema: str | None = None
    surface: str = ""
    tool: str = ""
    client: str = ""
    plan: str = ""
    reason: str = ""
    reversible: Reversibility | None = None
    max_rows_changed: int | None = None
    uncounted: str = ""
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what a grant is bound to: text, parameters, place, source and actor.

        The source's URL is in it: a grant does not outlive a source that points elsewhere. So is
        what the statement would send: an approval of these requests covers no others.
        """
        bound = (
            self.statement.text,
            self.statement.params,
            self.database,
            self.schema,
            self.source.id,
            self.source.url,
            self.actor.id,
            *((self.plan,) if self.plan else ()),
            *((self.settings,) if self.settings else ()),
        )
        # Not as JSON, where the text 'AA==' and the byte 0 look the same.
        return sha256(repr(bound).encode()).hexdigest()

    @property
    def circumstances(self) -> str:
        """A digest of the rights under which it is asked: what the source and the token allow."""
        actor = structs.replace(self.actor, expires_at=None)
        bound = (self.source, actor, self.verdict.rule)
        # Not `repr`, which shows a set in the order of this process's hashes.
        text = msgspec.json.encode(bound, order="deterministic", enc_hook=repr)
        return sha256(text).hexdigest()

    def subject(self) -> Subject:
        """What a person is shown of it, and what is kept: without secrets, as in the records."""
        source, statement = self.source, self.statement
        text = language_of(source).redact(statement.text, source.dialect)
        params = None if statement.params is None else _params(statement.params)
        withheld = text != statement.text
        if params is not None and _mentions_secrets(statement.text, source):
            # It is unknown which of the values is the secret.
            params = MASK
        return Subject(
            actor_name=self.actor.name,
            client=self.client[:_MAX_NAME],
            surface=self.surface,
            tool=self.tool,
            source=source.name,
            source_id=source.id,
            statement=text,
            effect=self.judgement.effect.label,
            rule=self.verdict.rule,
            reason=_reason_of(self),
            params=params,
            withheld=withheld or (params is not None and MASK in params),
            tables=self.judgement.tables,
            unqualified=self.judgement.unqualified,
            database=self.database,
            schema=self.schema,
            guarded=_asks_about_reads(source),
            outside_transaction=self.judgement.outside_transaction,
            agent_reason=redact(self.reason[:MAX_REASON]),
            circumstances=self.circumstances,
            owner=self.actor.owner,
            maker=self.actor.maker,
            reversible=self.reversible,
            max_rows_changed=self.max_rows_changed,
            uncounted=self.uncounted,
        )


def _reason_of(request: ApprovalRequest) -> str:
    """What the statement does; of one that is asked about for its plan, what that would take."""
    by_plan = request.verdict.rule in ("source.max_plan_cost", "source.max_plan_rows")
    return request.verdict.reason if by_plan else request.judgement.reason


MAX_REASON = 500
"""Characters of what a caller says that a call is for."""
_MAX_NAME = 200
_MAX_PARAMS = 65_536


def _params(params: tuple[Any, ...]) -> str:
    text = msgspec.json.encode(params, enc_hook=repr).decode()
    if len(text) > _MAX_PARAMS:
        text = f"{text[:_MAX_PARAMS]}... ({len(text):,} characters)"
    return redact(text)


def _mentions_secrets(text: str, source: Source) -> bool:
    """Whether a literal next to this text would be taken for a secret."""
    language = language_of(source)
    probe = f"{text} {language.literal('x', source.dialect)}"
    return language.redact(probe, source.dialect) != probe


def _asks_about_reads(source: Source) -> bool:
    return source.agents == "ask" or source.approval_for == "everything"
