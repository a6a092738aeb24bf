"""Decides what a text is, by having SQLite prepare it and list its program. Runs nothing."""

from __future__ import annotations

import apsw

from tidegate.engines.sqlite.authorizer import Authorizer, Mode
from tidegate.engines.sqlite.plan import Plan
from tidegate.engines.sqlite.program import Program
from tidegate.engines.sqlite.session import Glance, Session
from tidegate.errors import Code, GateError
from tidegate.statements import Effect, Judgement


def study(session: Session, text: str) -> Plan:
    """What a text is. Raises: GateError SQL_EMPTY, SQL_MULTIPLE; what SQLite raises."""
    authorizer = session.authorizer
    try:
        with session.mode(Mode.OBSERVE):
            authorizer.forget()
            glance = _only_statement(session, text)
            if authorizer.changes and glance.readonly and glance.description:
                # Connecting a virtual table prepared changes of its own; now it is connected.
                authorizer.forget()
                glance = session.glance(text)
            return _plan(session, text, glance)
    except apsw.Error:
        if authorizer.refused is None:
            raise
        return Plan(_refusal(authorizer))


def _only_statement(session: Session, text: str) -> Glance:
    """Prepare the one statement of a text. Empty ones, and comments, may stand around it."""
    only: Glance | None = None
    rest = text
    while rest.strip(" \t\r\n\f;"):
        glance = session.glance(rest) if only is None else _glance_behind(session, rest)
        if glance.real:
            if only is not None:
                raise GateError(Code.SQL_MULTIPLE, "The text holds more than one statement.")
            only = glance
        if not glance.sql:
            break
        rest = rest[len(glance.sql) :]
    if only is None:
        raise GateError(Code.SQL_EMPTY, "The text holds no statement.")
    return only


def _glance_behind(session: Session, rest: str) -> Glance:
    try:
        return session.glance(rest)
    except apsw.Error as error:
        raise GateError(
            Code.SQL_MULTIPLE, "The text goes on behind its first statement."
        ) from error


def _plan(session: Session, text: str, glance: Glance) -> Plan:
    authorizer = session.authorizer
    effect = _effect(authorizer, glance)
    judgement = Judgement(
        effect=effect,
        rule="sqlite.authorizer",
        reason=_reason(effect, glance),
        tables=tuple(sorted(authorizer.tables)),
        functions=tuple(sorted(authorizer.functions)),
        returns_rows=bool(glance.description),
    )
    program: Program | None = None
    if effect is Effect.READ and not glance.explains:
        nulls = (None,) * glance.parameters if glance.parameters else None
        listing = session.connection.execute(text, nulls, can_cache=False, explain=1)
        program = Program(listing.fetchall())
    return Plan(
        judgement,
        parameters=glance.parameters,
        explains=glance.explains,
        program=program,
    )


def _effect(authorizer: Authorizer, glance: Glance) -> Effect:
    """The effect, from the authorizer's notes and SQLite's own flag."""
    if glance.explains:
        return Effect.READ
    if authorizer.effect is not Effect.READ:
        return authorizer.effect
    if authorizer.pragma:
        return Effect.READ
    if not glance.readonly:
        return Effect.ADMIN  # VACUUM asks the authorizer nothing
    return Effect.READ if authorizer.reads else Effect.UNKNOWN


def _reason(effect: Effect, glance: Glance) -> str:
    if glance.explains:
        return "SQLite only explains it."
    if effect is Effect.READ:
        return "SQLite sees only reads."
    return f"SQLite sees an effect: {effect.label}."


def _refusal(authorizer: Authorizer) -> Judgement:
    refused = authorizer.refused or "the statement"
    is_function = refused.startswith("the function ")
    return Judgement(
        effect=authorizer.effect,
        rule="sqlite.authorizer",
        reason=f"SQLite refuses {refused} to every caller.",
        code=(Code.SQL_FUNCTION if is_function else Code.POLICY_DENIED).value,
        tables=tuple(sorted(authorizer.tables)),
        functions=tuple(sorted(authorizer.functions)),
        returns_rows=False,
    )
