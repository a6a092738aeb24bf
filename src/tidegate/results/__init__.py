"""Rows as values and as replies: kinds, formats, pages, limits. Pure."""
