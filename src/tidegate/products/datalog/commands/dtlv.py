"""`tidegate dtlv mcp`: `tidegate serve --surface datalog` in the words of Datalevin's command."""

from __future__ import annotations

import argparse

from tidegate.cli.commands import serve


def run(arguments: argparse.Namespace) -> int:
    """Serve on stdio; returns 0 at the end of the input."""
    from tidegate.cli.parser import build

    writes = ["--allow-writes"] if arguments.allow_writes else []
    words = ["serve", "--surface", "datalog", *writes]
    given = build(words).parse_args(words)
    given.config, given.state = arguments.config, arguments.state
    return serve.run(given)
