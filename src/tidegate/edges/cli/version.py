"""`tidegate version`."""

from __future__ import annotations

import argparse

from tidegate import __version__
from tidegate.edges.cli.application import OpenApp


def run(arguments: argparse.Namespace, open_app: OpenApp) -> int:
    """Print name and version."""
    print(f"tidegate {__version__}")
    return 0
