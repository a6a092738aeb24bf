"""Decides what a text may do: the judge's reading, the server's study, and its catalogue, joined.

`study.py` has what the server says of a text, `views.py` what lies behind a view.
"""

from __future__ import annotations

from msgspec import structs

from tidegate.engines.errand import Borrowed
from tidegate.engines.mysql.params import encode_statement
from tidegate.engines.mysql.persona import sets_variables
from tidegate.engines.mysql.session import Session
from tidegate.engines.mysql.study import (
    POOLED_WORDS,
    Studies,
    Study,
    as_judgement,
    first_word,
    study,
)
from tidegate.engines.mysql.views import Views
from tidegate.errors import Code, GateError
from tidegate.permits import Permit
from tidegate.sources import Identity
from tidegate.sql.judge import judge
from tidegate.sql.template import template
from tidegate.statements import Effect, Judgement

VIEW_RULE = "mysql.view"

_MOST_ROLES = 256

STUDY_MS = 10_000
"""The time limit of having a text prepared."""


class Opinions:
    """What is thought of texts that run in `home`, the source's own database, or in another."""

    def __init__(self, home: str | None) -> None:
        self._home = home
        self._studies = Studies()
        self._views: dict[str | None, Views] = {}

    async def inspect(self, text: str, borrowed: Borrowed[Session]) -> Judgement | None:
        """The server's opinion; None on what it cannot prepare. Raises: GateError."""
        read = judge(text, "mysql")
        found = await self._study(text, encode_statement(text), None, borrowed, None)
        if found.effect is Effect.UNKNOWN:
            return None
        opinion = as_judgement(found)
        if found.effect is Effect.READ and read.effect is Effect.READ:
            objection = await self._objection(read, None, borrowed, None)
            if objection is not None:
                return structs.replace(
                    opinion,
                    effect=Effect.UNKNOWN,
                    rule=VIEW_RULE,
                    reason=objection,
                    code=Code.SQL_FUNCTION.value,
                    tables=read.tables,
                )
        return structs.replace(opinion, tables=read.tables, functions=read.functions)

    async def check_read(
        self,
        text: str,
        encoded: bytes,
        database: str | None,
        borrowed: Borrowed[Session],
        identity: Identity | None,
        *,
        explains: bool,
    ) -> bool:
        """Refuse what neither we nor the server take for a read. Raises: GateError.

        Returns False for the explanation of a change, which the server gives only where a change
        would be allowed: in a transaction that is rolled back.
        """
        read = _one_statement(text)
        found = await self._study(text, encoded, database, borrowed, identity)
        if found.error is not None:
            raise found.error
        if found.effect is Effect.READ and read.effect is Effect.READ:
            objection = await self._objection(read, database, borrowed, identity)
            if objection is not None:
                raise GateError(Code.SQL_FUNCTION, objection, details={"rule": VIEW_RULE})
            return True
        if explains and found.changes and read.effect is Effect.READ:
            return False
        worse = read if read.effect > Effect.READ else as_judgement(found)
        function = worse.code == Code.SQL_FUNCTION.value
        raise GateError(
            Code.SQL_FUNCTION if function else Code.POLICY_READ_ONLY,
            worse.reason,
            hint=worse.hint,
            details={"effect": worse.effect.label, "rule": worse.rule},
        )

    def forget(self) -> None:
        """Something was changed: views may say something else now."""
        self._views.clear()

    async def _study(
        self,
        text: str,
        encoded: bytes,
        database: str | None,
        borrowed: Borrowed[Session],
        identity: Identity | None,
    ) -> Study:
        """What the server says of a text, of texts that differ in plain values only once."""
        alike = (template(text), database)
        found = self._studies.get(alike)
        if found is None:
            async with borrowed as session:
                await session.assume(identity)
                await session.prelude(STUDY_MS, database)
                found = await study(session, text, encoded)
            self._studies.put(alike, found)
        return found

    async def _objection(
        self,
        read: Judgement,
        database: str | None,
        borrowed: Borrowed[Session],
        identity: Identity | None,
    ) -> str | None:
        """Why what seems to read may do more, as far as the server's catalogue tells. It tells
        each role what that may see."""
        home = database or self._home
        role = None if identity is None else identity.role
        if len(self._views) > _MOST_ROLES:
            self._views.clear()
        views = self._views.setdefault(role, Views())
        known, objection = views.recall(read, home)
        if known:
            return objection
        async with borrowed as session:
            await session.assume(identity)
            return await views.objection(session, read, home)


def check_change(text: str, permit: Permit) -> None:
    """Refuse what no permit allows, and what is more than this one does. Raises: GateError."""
    read = _one_statement(text)
    word = first_word(text)
    if word in POOLED_WORDS:
        raise GateError(
            Code.POLICY_DENIED,
            f"{word} is about a session, and here every statement has its own.",
            hint="Send the statement alone; a change is committed when it has ended.",
        )
    if permit.identity is not None and (
        read.effect in (Effect.SESSION, Effect.UNKNOWN) or sets_variables(text)
    ):
        raise GateError(
            Code.POLICY_DENIED,
            "The session's role and variables tell who the caller is: no statement may set them.",
            hint="Leave out SET, := and INTO @variable.",
            details={"rule": "source.run_as"},
        )
    if permit.effect < read.effect < Effect.UNKNOWN:
        details = {"effect": read.effect.label, "rule": read.rule}
        raise GateError(Code.POLICY_DENIED, read.reason, hint=read.hint, details=details)


def _one_statement(text: str) -> Judgement:
    """The judge's reading of one statement. Raises: GateError SQL_EMPTY, SQL_MULTIPLE."""
    read = judge(text, "mysql")
    if read.code in (Code.SQL_EMPTY.value, Code.SQL_MULTIPLE.value):
        raise GateError(Code(read.code), read.reason, hint=read.hint)
    return read
