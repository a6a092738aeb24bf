"""Puts statements for cloud providers that come over PostgreSQL's wire protocol into the file of
calls, as those of the tools."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from tidegate.app import App
from tidegate.config.model import Config
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.model.replies import Reply
from tidegate.model.requests import Call, Query
from tidegate.model.sources import Source
from tidegate.model.statements import Judgement
from tidegate.policy.explanation import Explanation
from tidegate.products.cloud.surface.audit import CallAudit, query_class
from tidegate.products.cloud.surface.settings import CloudSurfaceSettings, settings_of

TOOL = "pgwire"


class WireCall(NamedTuple):
    """What the line of a call says of it besides its statement."""

    tool: str
    approved: bool
    can_ask: bool = False


class RecordedGateway:
    """The gate for sessions on sources of cloud providers (`products.pgwire.gate.WireGate`). The
    line of a statement is written after its rows were sent, and before its end is."""

    def __init__(self, gateway: Gateway, settings: CloudSurfaceSettings, config: Config) -> None:
        self._gateway = gateway
        self._audit = CallAudit.open(settings, config)

    async def handle(self, call: Call) -> Reply:
        """Raises: TidegateError, also AUDIT_UNAVAILABLE if the line cannot be written."""
        if not isinstance(call.request, Query):
            return await self._gateway.handle(call)
        began, text = time.time(), call.request.statement.text
        kind, given = query_class(text), {"sql": text}
        await self._audit.check(kind)
        try:
            reply = await self._gateway.handle(call)
        except TidegateError as error:
            await self._audit.record(WireCall(TOOL, error.approved), given, began, kind, error)
            raise
        except asyncio.CancelledError:
            cancelled = TidegateError(Code.CALL_CANCELLED, "The call was cancelled")
            record = self._audit.record(WireCall(TOOL, False), given, began, kind, cancelled)
            await asyncio.shield(record)
            raise
        await self._audit.record(WireCall(TOOL, reply.approved), given, began, kind, None)
        return reply

    async def explain(self, call: Call) -> tuple[Judgement, Explanation]:
        """Raises: TidegateError."""
        return await self._gateway.explain(call)

    def source_of(self, call: Call) -> Source:
        """Raises: TidegateError."""
        return self._gateway.source_of(call)

    def touch_transaction(self, transaction: str) -> None:
        """Note that the owner of a transaction reads on in a result of it."""
        self._gateway.touch_transaction(transaction)

    async def abandon_transaction(self, transaction: str, reason: str) -> None:
        """End a transaction whose client has gone."""
        await self._gateway.abandon_transaction(transaction, reason)


def open_gate(app: App) -> RecordedGateway:
    """What sessions on a source of cloud providers send their calls through."""
    return RecordedGateway(app.gateway, settings_of(app.config), app.config)
