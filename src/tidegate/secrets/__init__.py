"""Secrets: how they come in, and how they are kept out of records."""
