"""What the command line asks of the composition root; `tidegate.app.App` answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:  # names alone: `tidegate version` must not pay for a gate
    import asyncio
    from collections.abc import Callable, Mapping

    from tidegate.approvals.approvals import Approvals
    from tidegate.calls import Call
    from tidegate.config.following import Following
    from tidegate.config.model import Config
    from tidegate.config.sources import SourceSettings
    from tidegate.identity.pairing import Pairer
    from tidegate.identity.tokens import Tokens
    from tidegate.policy.explain import Explanation
    from tidegate.replies import Reply
    from tidegate.sources import Source
    from tidegate.statements import Judgement
    from tidegate.store.api import Store


class Gate(Protocol):
    async def handle(self, call: Call) -> Reply:
        """Judge, decide, record, run. Raises: GateError."""
        ...

    async def consider(self, call: Call) -> tuple[Judgement, Explanation]:
        """What the gate would say and why, with nothing run. Raises: GateError."""
        ...


class Directory(Protocol):
    def sources(self) -> tuple[Source, ...]:
        """Every source by name, saved ones and those of the settings."""
        ...


class Application(Protocol):
    """One running Tidegate for one `Config`."""

    @property
    def store(self) -> Store: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def pairer(self) -> Pairer: ...
    @property
    def approvals(self) -> Approvals: ...
    @property
    def gateway(self) -> Gate: ...
    @property
    def connections(self) -> Directory: ...

    def note(self, name: str, details: Mapping[str, str]) -> None:
        """Put on record what the person here did. Raises: GateError AUDIT_UNAVAILABLE."""
        ...

    def declare(self, settings: SourceSettings) -> Source:
        """The source that such settings make. Raises: GateError."""
        ...

    def follow(
        self, following: Following, load: Callable[[], Config], tell: Callable[[str], None]
    ) -> None:
        """Look on every call whether the settings are new ones; `tell` is for the log."""
        ...

    def run_stdio(self) -> None:
        """Speak MCP on stdin and stdout until the input ends or a signal comes, then close."""
        ...

    def run_http(
        self,
        host: str,
        port: int,
        ready: Callable[[str], None] | None = None,
        found: Callable[[], None] | None = None,
        settings: str = "",
    ) -> None:
        """Serve until a signal comes, then close; `ready` is told the address once it is open.
        With `found`, called when bridges can find it, it ends when it is idle for long too.
        `settings` marks those of this server for bridges."""
        ...

    async def serve_http(
        self,
        host: str,
        port: int,
        *,
        ready: Callable[[str], None] | None = None,
        stop: asyncio.Event | None = None,
    ) -> None:
        """Serve until `stop` is set, then close."""
        ...

    async def close(self) -> None:
        """End sources, records and state. Safe to call twice."""
        ...


OpenApp: TypeAlias = "Callable[[Config], Application]"
