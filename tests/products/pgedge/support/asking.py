"""A whole application on a small shop, and a caller of its gate, for tests of questions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from support.surface_shop import build_shop
from tidegate.app import App
from tidegate.config.loading import convert_settings
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Call, Request

PayloadT = TypeVar("PayloadT")

AGENT = Actor("tok_1", "agent", Scope.READ_ONLY)
PERSON = Actor("cli", "cli", Scope.READ_ONLY, kind="human")


class GateCaller:
    """Sends requests through an application's gate as one actor. `sent` keeps them."""

    def __init__(self, app: App, actor: Actor = AGENT) -> None:
        self.app = app
        self.actor = actor
        self.sent: list[Request] = []
        self.cancellation = Cancellation()

    async def handle(
        self,
        request: Request,
        source: str | None,
        expected: type[PayloadT],
        *,
        reads_only: bool = False,
        quiet: bool = False,
        asks: bool = True,
    ) -> PayloadT:
        self.sent.append(request)
        call = Call(
            self.actor,
            "test",
            "ask",
            request,
            source,
            cancellation=self.cancellation,
            reads_only=reads_only,
        )
        payload = (await self.app.gateway.handle(call)).payload
        assert isinstance(payload, expected)
        return payload


@asynccontextmanager
async def opened_shop(
    directory: Path,
    language: Mapping[str, Any] | None = None,
    others: Mapping[str, Any] | None = None,
    **source: Any,
) -> AsyncIterator[App]:
    """An application with the source `shop`, and these settings of it, of `language` and others."""
    shop = directory / "shop.db"
    if not shop.exists():
        build_shop(shop)
    settings = {
        "state": str(directory / "state"),
        "sources": [{"name": "shop", "url": f"sqlite:///{shop}", **source}],
        "language": dict(language or {}),
        **(others or {}),
    }
    app = App.open(convert_settings(settings))
    try:
        yield app
    finally:
        await app.close()
