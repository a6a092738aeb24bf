"""`tidegate webhook test`: sends a message, and says what came back."""

from __future__ import annotations

import argparse
import time
from typing import Any

from tidegate.app import App
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_state
from tidegate.cli.terminal import show, show_json
from tidegate.errors import Code, TidegateError
from tidegate.secrets.readers import use_settings
from tidegate.webhook import messages
from tidegate.webhook.credentials import read_url
from tidegate.webhook.delivery import deliver


def run(arguments: argparse.Namespace) -> int:
    """Send it. Raises: TidegateError CONFIG_INVALID without a webhook, WEBHOOK_FAILED."""
    config = load_for_state(arguments)
    settings = config.approvals.webhook
    if settings is None:
        raise TidegateError(
            Code.CONFIG_INVALID,
            "There is no webhook in the settings.",
            hint="Set `approvals.webhook` in a settings file, and name the file by --config.",
        )
    use_settings(config.sections)
    _, parts = read_url(settings)
    report: dict[str, Any] = {}

    async def send(app: App) -> None:
        message = messages.test(config.console.origin or "", time.time())
        attempt = await deliver(settings, message.id, message.body)
        app.note_less("webhook.tested", {"result": attempt.reason or f"HTTP {attempt.status}"})
        report.update(
            sent=attempt.is_sent,
            id=message.id,
            origin=parts.origin,
            address=attempt.address,
            status=attempt.status,
            elapsed_ms=round(attempt.elapsed_ms, 1),
            reason=attempt.reason,
        )

    with_app(App.open(config), send)
    if not report["sent"]:
        raise TidegateError(
            Code.WEBHOOK_FAILED,
            f"The test did not reach {report['origin']}: {report['reason']}.",
            details={"status": report["status"]},
        )
    if arguments.json:
        show_json(report)
    else:
        show(
            f"{report['origin']} ({report['address']}) took {report['id']}: HTTP status"
            f" {report['status']} in {report['elapsed_ms']:,.0f} ms"
        )
    return 0
