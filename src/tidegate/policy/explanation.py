"""Shows how a verdict came about: every rule checked, and its result. Decides nothing itself:
it asks the same rules in the same order as `verdict.py`.
"""

from __future__ import annotations

import msgspec

from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.model.statements import Judgement
from tidegate.policy.rules import RULES, PolicyInput
from tidegate.policy.verdict import ALLOWED


class Finding(msgspec.Struct, frozen=True):
    """What one rule said of a case: `verdict` is None where it had nothing against it."""

    rule: str
    description: str
    verdict: Verdict | None


class Explanation(msgspec.Struct, frozen=True):
    """The verdict, and the findings in the order of the rules, up to the one that decided."""

    verdict: Verdict
    findings: tuple[Finding, ...]


def explain(
    actor: Actor,
    source: Source,
    scope: Scope,
    judgement: Judgement,
    *,
    confirmed: bool = False,
    reads_only: bool = False,
    statements: StatementRules | None = None,
) -> Explanation:
    """The verdict that `evaluate` gives for the same arguments, with its findings."""
    case = PolicyInput(actor, source, scope, judgement, confirmed, reads_only, statements)
    findings: list[Finding] = []
    for rule in RULES:
        verdict = rule.check(case)
        findings.append(Finding(rule.name, rule.description, verdict))
        if verdict is not None:
            return Explanation(verdict, tuple(findings))
    return Explanation(ALLOWED, tuple(findings))


def under_data_rules(explanation: Explanation, verdict: Verdict | None) -> Explanation:
    """The explanation with the verdict of the data rules, which come after all rules of policy;
    None: they let the statement pass."""
    finding = Finding("source.masking", "The statement keeps to what the caller may see", verdict)
    return Explanation(verdict or explanation.verdict, (*explanation.findings, finding))
