"""What a person is asked to approve: a statement with everything its meaning hangs on."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from tidegate.types import Actor, Judgement, Source, Statement, Verdict


class Petition(msgspec.Struct, frozen=True):
    """One wish of one caller. `database` and `schema` say where the statement would run."""

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

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what a grant is bound to: text, parameters, place, source and actor.

        The source's URL is in it: a grant does not outlive a source that points elsewhere.
        """
        bound = (
            self.statement.text,
            self.statement.params,
            self.database,
            self.schema,
            self.source.id,
            self.source.url,
            self.actor.id,
        )
        return sha256(msgspec.json.encode(bound)).hexdigest()
