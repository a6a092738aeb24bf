"""`tidegate version`."""

from __future__ import annotations

import argparse

from tidegate import __version__


def run(arguments: argparse.Namespace) -> int:
    """Print name and version."""
    print(f"tidegate {__version__}")
    return 0
