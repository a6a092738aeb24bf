"""What happens to a server around its calls, as it goes on record: who did what to it, when it
began and ended, and what was turned away at its door.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from tidegate.audit.happening import Happening
from tidegate.audit.log import AuditLog
from tidegate.config.model import Config
from tidegate.protocol.model import Context


class Journal:
    """The happenings of one process. `doer` stands for who acts where nobody else is named."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit
        self.doer = "cli"

    def note(self, name: str, details: Mapping[str, str]) -> None:
        """Put on record what is about to be done. Raises: GateError AUDIT_UNAVAILABLE."""
        self.note_by(name, "", details)

    def note_by(self, name: str, actor: str, details: Mapping[str, str]) -> None:
        """As `note`, done by that actor if one is named."""
        self._audit.note(Happening(name=name, actor=actor or self.doer, details=dict(details)))

    def tell(self, name: str, details: Mapping[str, str]) -> None:
        """Put on record what callers without a token cause."""
        self._audit.tally(Happening(name=name, details=dict(details)))

    def tell_turned_away(self, context: Context, tool: str, reason: str) -> None:
        """Put on record a call that never reached the gate."""
        actor, client = context.actor, context.client
        self._audit.tally(
            Happening(
                name="call.turned_away",
                actor=actor.id,
                actor_name=actor.name,
                client=f"{client.name}/{client.version}",
                details={"tool": tool, "reason": reason},
            )
        )

    def note_start(self, config: Config, edge: str) -> None:
        """Put on record who serves what under which settings. Raises: GateError."""
        details = {
            "edge": edge,
            "surfaces": " ".join(config.surfaces),
            "auth": str(config.auth).lower(),
            "writes": str(config.allow_writes).lower(),
            "failure_mode": config.audit.failure_mode,
            "settings": _digest(config),
        }
        self.note_by("server.started", "server", details)

    def note_change(self, config: Config) -> None:
        """Put on record that other settings hold from now on. Raises: GateError."""
        self.note_by("settings.changed", "server", {"settings": _digest(config)})

    def tell_stop(self) -> None:
        """Put on record that the server ends."""
        self._audit.tally(Happening(name="server.stopped", actor="server"))


def _digest(config: Config) -> str:
    """What tells two settings apart in the record, without their content."""
    return f"sha256:{sha256(msgspec.json.encode(config)).hexdigest()}"
