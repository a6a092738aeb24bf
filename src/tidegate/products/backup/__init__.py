"""Backups of the state directory."""
