"""`tidegate status`: the servers that run for this state directory, and the condition of the one
that bridges use."""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime
from typing import Any

from tidegate.bridge.handshake_file import Handshake
from tidegate.cli.running_server import running_servers, status_of
from tidegate.cli.terminal import show, show_json
from tidegate.serve.running_servers import RunningServer


def run(arguments: argparse.Namespace) -> int:
    """Show the servers; raises TidegateError BRIDGE_NO_SERVER if none runs."""

    async def look() -> tuple[Handshake | None, dict[str, Any], list[RunningServer]]:
        found, others = await running_servers(arguments)
        return found, {} if found is None else await status_of(found), others

    found, status, others = asyncio.run(look())
    report = {} if found is None else _report(found, status)
    if arguments.json:
        show_json({**report, "others": [_entry(each) for each in others]})
        return 0
    rows = _rows(report) if report else []
    for each in others:
        entry = _entry(each)
        rows.append(
            (
                "also runs" if rows else "server",
                f"process {each.pid}, version {each.release}, since {entry['since']}, at "
                f"{each.place}: {', '.join(each.surfaces)}",
            )
        )
    for name, text in rows:
        show(f"{name:<12}{text}")
    return 0


def _rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    failing = report["failing"]
    sources = [
        f"{source['name']} ({source['engine']}): {source['error'] or source['status']}"
        for source in report["sources"]
    ]
    rows = [
        ("server", f"process {report['pid']}"),
        ("version", report["version"]),
        ("since", report["since"]),
        ("address", report["address"]),
        ("surfaces", ", ".join(report["surfaces"])),
        ("started by", report["started_by"]),
        ("variables", ", ".join(report["variables"]) or "none"),
        ("record", failing.get("audit", "is written")),
        ("state", failing.get("state", "can be read")),
        ("webhook", _webhook(report["webhook"])),
        *(
            ("fails", f"{part}: {reason}")
            for part, reason in failing.items()
            if part not in ("audit", "state")
        ),
        *(("source", text) for text in sources),
    ]
    left_out = report["source_count"] - len(sources)
    if left_out > 0:
        rows.append(("", f"and {left_out} further sources; `tidegate source list` names them"))
    return rows


def _entry(server: RunningServer) -> dict[str, Any]:
    return {
        "pid": server.pid,
        "version": server.release,
        "since": _moment(server.started_at),
        "places": server.edges,
        "surfaces": server.surfaces,
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _report(found: Handshake, status: dict[str, Any]) -> dict[str, Any]:
    return {
        "pid": found.pid,
        "version": found.release,
        "since": _moment(found.started_at),
        "address": found.address.url,
        "surfaces": found.paths,
        "started_by": "a bridge" if found.by_bridge else "an operator",
        "variables": {
            name: "is set" if value else "is not set" for name, value in found.variables.items()
        },
        "sources": status.get("sources", []),
        "source_count": status.get("source_count", len(status.get("sources", []))),
        "failing": status.get("failing", {}),
        "webhook": status.get("webhook", {}),
    }


def _webhook(health: dict[str, Any]) -> str:
    state, waiting = health.get("state", "off"), health.get("waiting", 0)
    if state == "off":
        return "there is none"
    message = health.get("message") or "works"
    dropped = health.get("dropped", 0)
    parts = [message, f"waiting messages: {waiting}"]
    return "; ".join([*parts, f"{dropped} were given up"] if dropped else parts)
