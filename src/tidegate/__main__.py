"""Runs the command line for `python -m tidegate` and for the console script `tidegate`."""

from __future__ import annotations

import sys

from tidegate.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
