"""Options that several commands have, and the type of a set of commands."""

from __future__ import annotations

import argparse
from typing import Any

Commands = Any  # argparse names the type of a set of subparsers with an underscore.

SCOPES = ("readOnly", "readWrite", "fullAccess")


def state_option(
    parser: argparse.ArgumentParser,
    explanation: str = "holds all state (default: $TIDEGATE_STATE, else the data directory)",
) -> None:
    parser.add_argument("--state", metavar="DIR", help=explanation)


def json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
