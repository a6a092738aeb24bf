"""The one command `tidegate`: joins the command line to the composition root.

The command line may not know `tidegate.app`, which stands above it; so it is handed in here, and
imported only by commands that need it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tidegate.edges.cli.main import main as run

if TYPE_CHECKING:
    from tidegate.app import App
    from tidegate.config.model import Config


def open_app(config: Config) -> App:
    """The whole gate for these settings."""
    from tidegate.app import App

    return App.open(config)


def main() -> int:
    """Run the command line of this process; returns its exit status."""
    return run(sys.argv[1:], open_app)


if __name__ == "__main__":
    sys.exit(main())
