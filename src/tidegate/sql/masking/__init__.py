"""Masks and row filters in a statement: names, derived tables, and their verification."""
