"""`tidegate judge`: the effect of a statement and the policy decision for it. Runs nothing."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_query
from tidegate.cli.statement_arguments import source_and_text, statement_text
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.requests import Call, Query
from tidegate.model.sources import Source
from tidegate.model.statements import Judgement, Statement
from tidegate.policy.verdict import evaluate
from tidegate.sql.judge import judge
from tidegate.typed_values import convert_value, json_decoder

if TYPE_CHECKING:
    from tidegate.app import App

_DEFAULT = "default"


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One line of standard input."""

    sql: str
    dialect: str = _DEFAULT


class Opinion(msgspec.Struct):
    """One line of output. `rule`, `reason` and `hint` are those of the decision."""

    effect: str
    verdict: str
    code: str | None
    rule: str
    tables: tuple[str, ...]
    functions: tuple[str, ...]
    reason: str
    hint: str | None


def run(arguments: argparse.Namespace) -> int:
    """Classify the statement, or every line of standard input."""
    scope = Scope(arguments.scope)
    arguments.source, given = source_and_text(arguments)
    lines = given in (None, "-") and arguments.file is None
    arguments.sql = "-" if lines else statement_text(given, arguments.file)
    if arguments.source is not None:
        from tidegate.app import App

        app = App.open(load_for_query(arguments))
        with_app(app, lambda opened: _consider(opened, arguments, scope))
        return 0
    for line in _lines(arguments):
        _say(*_judge(line, scope))
    return 0


def _judge(line: Line, scope: Scope) -> tuple[Judgement, Verdict]:
    """Classify by the text, for a source that allows everything that the scope allows."""
    access = "read" if scope is Scope.READ_ONLY else "write"
    source = Source("judge", "judge", "", line.dialect, line.dialect, access=access)
    judgement = judge(line.sql, line.dialect)
    actor = Actor("judge", "judge", scope)
    verdict = evaluate(actor, source, Scope.READ_ONLY, judgement)
    return judgement, verdict


async def _consider(app: App, arguments: argparse.Namespace, scope: Scope) -> None:
    actor = Actor("judge", "judge", scope)
    for line in _lines(arguments):
        query = Query(Statement(line.sql))
        call = Call(actor, "cli", "judge", query, arguments.source)
        judgement, explanation = await app.gateway.explain(call)
        _say(judgement, explanation.verdict)


def _lines(arguments: argparse.Namespace) -> Iterator[Line]:
    """The given statement, or those on standard input. Raises: TidegateError ARGUMENT_INVALID with
    the number of an invalid line."""
    if arguments.sql != "-":
        yield Line(arguments.sql, arguments.dialect)
        return
    decoder = json_decoder(Line)
    for number, text in enumerate(sys.stdin.buffer, 1):
        if not text.strip():
            continue
        try:
            line = _read(text, decoder)
        except (msgspec.DecodeError, ValueError) as error:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f'Line {number} is not of the form {{"dialect":...,"sql":...}}: {error}.',
            ) from None
        if line.dialect == _DEFAULT:
            line.dialect = arguments.dialect
        yield line


def _read(text: bytes, decoder: msgspec.json.Decoder[Line]) -> Line:
    """One line. Half of a surrogate pair is no reason to stop: such a statement is refused.

    Raises: msgspec.DecodeError, ValueError.
    """
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return convert_value(json.loads(text), Line)


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
