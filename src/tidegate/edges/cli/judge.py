"""`tidegate judge`: what a statement would do, and what the gate would say to it. Runs nothing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import msgspec

from tidegate.actors import Actor, Scope
from tidegate.calls import Call, Query
from tidegate.edges.cli.application import Application, OpenApp
from tidegate.edges.cli.person import with_app
from tidegate.edges.cli.settings import of_gate
from tidegate.errors import Code, GateError
from tidegate.permits import Verdict
from tidegate.policy.decide import decide
from tidegate.sources import Source
from tidegate.sql.judge import judge
from tidegate.statements import Judgement, Statement

_DEFAULT = "default"


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One line of standard input."""

    sql: str
    dialect: str = _DEFAULT


class Opinion(msgspec.Struct):
    """One line of output. `rule`, `reason` and `hint` are those that decided."""

    effect: str
    verdict: str
    code: str | None
    rule: str
    tables: tuple[str, ...]
    functions: tuple[str, ...]
    reason: str
    hint: str | None


def run(arguments: argparse.Namespace, open_app: OpenApp) -> int:
    """Judge the statement, or every line of standard input."""
    scope = Scope(arguments.scope)
    if arguments.source is not None:
        app = open_app(of_gate(arguments))
        with_app(app, lambda opened: _consider(opened, arguments, scope))
        return 0
    for line in _lines(arguments):
        _say(*_judge(line, scope))
    return 0


def _judge(line: Line, scope: Scope) -> tuple[Judgement, Verdict]:
    """By text alone, as if for a source that is open to what the scope allows."""
    access = "readOnly" if scope is Scope.READ_ONLY else "readWrite"
    source = Source("judge", "judge", "", line.dialect, line.dialect, external_access=access)
    judgement = judge(line.sql, line.dialect)
    actor = Actor("judge", "judge", scope)
    verdict = decide(actor, source, Scope.READ_ONLY, judgement)
    return judgement, verdict


async def _consider(app: Application, arguments: argparse.Namespace, scope: Scope) -> None:
    actor = Actor("judge", "judge", scope)
    for line in _lines(arguments):
        query = Query(Statement(line.sql))
        call = Call(actor, "cli", "judge", query, arguments.source)
        judgement, explanation = await app.gateway.consider(call)
        _say(judgement, explanation.verdict)


def _lines(arguments: argparse.Namespace) -> Iterator[Line]:
    """The statement that was given, or those on standard input. Raises: GateError
    ARGUMENT_INVALID naming the line that is none."""
    if arguments.sql != "-":
        yield Line(arguments.sql, arguments.dialect)
        return
    decoder = msgspec.json.Decoder(Line)
    for number, text in enumerate(sys.stdin.buffer, 1):
        if not text.strip():
            continue
        try:
            line = decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise GateError(
                Code.ARGUMENT_INVALID,
                f'Line {number} is not of the form {{"dialect":...,"sql":...}}: {error}.',
            ) from None
        if line.dialect == _DEFAULT:
            line.dialect = arguments.dialect
        yield line


def _say(judgement: Judgement, verdict: Verdict) -> None:
    allowed = verdict.kind == "allow"
    opinion = Opinion(
        effect=judgement.effect.label,
        verdict=verdict.kind,
        code=verdict.code,
        rule=judgement.rule if allowed else verdict.rule,
        tables=judgement.tables,
        functions=judgement.functions,
        reason=judgement.reason if allowed else verdict.reason,
        hint=verdict.hint,
    )
    sys.stdout.write(msgspec.json.encode(opinion).decode() + "\n")
