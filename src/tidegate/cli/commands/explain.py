"""`tidegate explain`: the policy decision for one caller's statement, rule by rule."""

from __future__ import annotations

import argparse
from typing import Any

from tidegate.app import App
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_statement
from tidegate.cli.statement_arguments import source_and_text, statement_text
from tidegate.cli.terminal import show, show_json, show_table
from tidegate.engines.registry import language_of
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import cli
from tidegate.model.actors import Actor
from tidegate.model.requests import Call, Query
from tidegate.model.sources import Source
from tidegate.model.statements import Judgement, Statement
from tidegate.policy.data_rules import rules_for
from tidegate.policy.explanation import Explanation


def run(arguments: argparse.Namespace) -> int:
    """Show the verdict and the result of every rule. Runs and records nothing."""
    source, given = source_and_text(arguments)
    if source is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID, "SOURCE is missing.", hint="Write `tidegate explain SOURCE SQL`."
        )
    arguments.source = source
    text = statement_text(given, arguments.file)
    shown = with_app(
        App.open(load_for_statement(arguments)), lambda app: _explain(app, arguments, text)
    )
    if arguments.json:
        show_json(shown)
    else:
        _show(shown)
    return 0


async def _explain(app: App, arguments: argparse.Namespace, text: str) -> dict[str, Any]:
    if arguments.token_name is None:
        actor = cli()
    else:
        actor = app.tokens.holder(arguments.token_name)
        app.connections.find(arguments.source, cli())  # the operator may know that there is none
    call = Call(
        actor,
        "cli",
        "explain",
        Query(Statement(text)),
        arguments.source,
        confirmed=arguments.confirmed,
    )
    judgement, explanation = await app.gateway.explain(call)
    (source,) = [one for one in app.connections.sources() if one.name == arguments.source]
    return _as_json(actor, source, judgement, explanation)


def _as_json(
    actor: Actor, source: Source, judgement: Judgement, explanation: Explanation
) -> dict[str, Any]:
    verdict = explanation.verdict
    data_rules = rules_for(actor, source, language_of(source))
    return {
        "caller": {"name": actor.name, "kind": actor.kind, "scope": actor.scope.value},
        "source": source.name,
        "effect": judgement.effect.label,
        "judged_by": judgement.rule,
        "tables": judgement.tables,
        "functions": judgement.functions,
        "verdict": verdict.kind,
        "code": verdict.code,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "hint": verdict.hint,
        "masks": [] if data_rules is None else [list(mask) for mask in data_rules.masks],
        "filters": [] if data_rules is None else [list(filter) for filter in data_rules.filters],
        "only": None if data_rules is None or data_rules.only is None else list(data_rules.only),
        "rules": [
            {
                "rule": finding.rule,
                "says": finding.description,
                "found": "passes" if finding.verdict is None else finding.verdict.kind,
                "reason": None if finding.verdict is None else finding.verdict.reason,
            }
            for finding in explanation.findings
        ],
    }


def _show(shown: dict[str, Any]) -> None:
    caller = shown["caller"]
    show(f"{caller['name']} ({caller['kind']}, {caller['scope']}) on {shown['source']}")
    rule = shown["judged_by"]
    show(f"effect   {shown['effect']}" + (f" ({rule})" if rule != shown["effect"] else ""))
    show(f"verdict  {shown['verdict']}: {shown['reason']}")
    if shown["hint"]:
        show(f"         {shown['hint']}")
    if shown["only"] is not None:
        show(f"tables   {', '.join(shown['only']) or 'none'}, no other")
    for column, left in shown["masks"]:
        show(f"mask     {column} shows {left}")
    for table, condition in shown["filters"]:
        show(f"filter   {table} where {condition}")
    show_table(
        ["rule", "asks whether", "found"],
        [[rule["rule"], rule["says"], rule["found"]] for rule in shown["rules"]],
    )
