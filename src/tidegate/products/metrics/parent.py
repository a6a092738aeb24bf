"""The figures in the parent of workers: those of all, at one address."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from tidegate.config.model import Config
from tidegate.edges.edge import Edge
from tidegate.errors import Code, TidegateError
from tidegate.products.metrics.address import address_of, serve_figures
from tidegate.products.metrics.settings import MetricsSettings
from tidegate.serve.parent_edges import ParentListener

if TYPE_CHECKING:
    from tidegate.serve.parent import Workers


def make_listener(config: Config) -> ParentListener | None:
    """What the parent serves at `metrics.listen`; None if that is not set. Raises: TidegateError
    CONFIG_INVALID, ENGINE_MISSING."""
    address = address_of(config)
    if address is None:
        return None
    found = address

    def open_edge(workers: Workers, listener: socket.socket) -> Edge:
        from tidegate.edges.http.application import HealthChecks
        from tidegate.products.metrics.merged import MergedFigures

        async def failing() -> Mapping[str, TidegateError]:
            return await _failing(workers)

        def degraded() -> Mapping[str, str]:
            count, planned = len(workers.serving), workers.plan.count
            return {"workers": f"{count} of {planned} serve"} if count < planned else {}

        figures = MergedFigures(workers)
        health = HealthChecks(failing, degraded)
        return serve_figures(found, listener, figures.gather, health, config.allowed_hosts)

    return ParentListener(MetricsSettings.NAME, open_edge, address.certificate)


async def _failing(workers: Workers) -> Mapping[str, TidegateError]:
    """What keeps every worker that answers from its work; the gate as a whole, if none does."""
    answers = await workers.ask("ready")
    if not answers:
        return {"server": TidegateError(Code.SERVER_STOPPING, "no worker answers")}
    first, *others = [
        msgspec.json.decode(each or b"{}", type=dict[str, str]) for each in answers.values()
    ]
    common = [part for part in first if all(part in each for each in others)]
    return {part: TidegateError(Code(first[part]), part) for part in common}
