"""The fixtures of the command line."""

from cli.conftest import run, state

__all__ = ["run", "state"]
