"""What of a server fails, and what does not work although it can do its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tidegate.audit.gate_lease import GateLease
from tidegate.audit.log import AuditLog
from tidegate.budgets.ledger import BudgetLedger
from tidegate.config.file_descriptors import descriptor_exhaustion
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import problem_of
from tidegate.gateway.source_connections import SourceConnections
from tidegate.identity.token_files import TokenFiles
from tidegate.identity.tokens import Tokens
from tidegate.readiness import Failures
from tidegate.service import Service
from tidegate.store.api import State
from tidegate.webhook.sender import WebhookSender


@dataclass(frozen=True, slots=True)
class Conditions:
    """Reads these parts of one process, and writes nothing to find out."""

    audit: AuditLog
    lease: GateLease | None
    tokens: Tokens
    token_files: TokenFiles
    budgets: BudgetLedger
    connections: SourceConnections
    state: State
    webhook: WebhookSender
    services: Sequence[Service]

    def known_failures(self) -> Failures:
        """What this server needs for its work and does not have now, as far as it is seen without
        a write."""
        failing: dict[str, TidegateError] = {}
        if self.audit.failing:
            failing["audit"] = TidegateError(
                Code.AUDIT_UNAVAILABLE, self.audit.withheld or "the audit log cannot be written"
            )
        try:
            self.tokens.generation()
            if self.budgets.failure is not None:
                failing["state"] = self.budgets.failure
        except TidegateError as error:
            failing["state"] = error
        if exhausted := descriptor_exhaustion():
            failing["descriptors"] = TidegateError(Code.SERVER_EXHAUSTED, exhausted)
        return failing

    def problems(self) -> dict[str, str]:
        """What fails of the record and of the services although calls go on, with the reason."""
        problems = dict(self.audit.problems)
        if self.lease is not None and self.lease.problem:
            problems["record"] = self.lease.problem
        for service in self.services:
            problems |= service.problems()
        return problems

    def degraded(self) -> Mapping[str, str]:
        """What does not work now although this server can do its work, with the reason."""
        problems = self.problems()
        with suppress(TidegateError):  # `readiness` says that the state cannot be read
            for source in self.connections.sources():
                if problem := problem_of(source):
                    problems[f"source {source.name}"] = problem
        for name, error in self.connections.unopened().items():
            problems[f"source {name}"] = error
        for number, concern in enumerate(self.state.concerns(), start=1):
            problems["state" if number == 1 else f"state {number}"] = concern
        for path, error in self.token_files.problems.items():
            problems[f"token file {path}"] = error
        health = self.webhook.health
        if health.state in ("failing", "stopped"):
            problems["webhook"] = f"{health.message}; waiting messages: {health.waiting}"
        return problems
