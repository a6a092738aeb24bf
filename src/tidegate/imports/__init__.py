"""Reads files of rows for tables: their content is guessed, checked, and held."""
