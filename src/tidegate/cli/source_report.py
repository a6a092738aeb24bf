"""What `tidegate source test` finds out about a source, on the terminal."""

from __future__ import annotations

from typing import Any

from tidegate.app import App
from tidegate.cli.local_actor import LocalCaller
from tidegate.cli.terminal import show, show_json
from tidegate.config.installation import as_typed
from tidegate.identity.builtin_actors import cli
from tidegate.sources.report import test_source


async def report_of(app: App, name: str) -> dict[str, Any]:
    """What is found out about the source of that name. Raises: TidegateError."""
    source = app.connections.find(name, cli()).source
    return await test_source(LocalCaller(app, "source test"), source)


def show_report(report: dict[str, Any], *, as_json: bool) -> None:
    """Print what `test_source` found."""
    if as_json:
        show_json(report)
        return
    for key, value in report.items():
        if key not in ("warnings", "risks"):
            show(f"{key:<15} {value}")
    known = {risk["could"] for risk in report["risks"]}
    for warning in report["warnings"]:
        if warning not in known:
            show(f"{'warning':<15} {warning}")
    for risk in report["risks"]:
        show(f"{'risk':<15} {risk['could']}; to do: {as_typed(risk['remedy'])}")
