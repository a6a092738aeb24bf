"""Tidegate: one gate between AI agents and data."""

__version__ = "0.1.0"
