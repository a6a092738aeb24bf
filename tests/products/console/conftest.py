"""Fixtures that every folder of the console's tests has."""

from __future__ import annotations

from products.console.support.console_place import place, token

__all__ = ["place", "token"]
"""A real server with a console, and the secret of an agent there."""
