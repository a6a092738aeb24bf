"""`tidegate search check SOURCE TABLE`: whether a table can be searched well, and what to do."""

from __future__ import annotations

import argparse
from functools import partial

import msgspec

from tidegate.app import App
from tidegate.cli.commands.embed import handle_of
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_query
from tidegate.cli.terminal import show, show_json
from tidegate.search.check import Finding, check_table


def run(arguments: argparse.Namespace) -> int:
    """Show the findings. The exit status is 1 if one is a fault."""
    findings = with_app(App.open(load_for_query(arguments)), partial(_work, arguments=arguments))
    if arguments.json:
        show_json([msgspec.to_builtins(finding) for finding in findings])
    else:
        for finding in findings:
            show(f"{finding.level}: {finding.column}: {finding.text}")
            if finding.hint:
                show(f"  {finding.hint}")
    return int(any(finding.level == "fault" for finding in findings))


async def _work(app: App, arguments: argparse.Namespace) -> list[Finding]:
    handle = handle_of(app, "search", arguments.source)
    return await check_table(handle, arguments.table)
