"""Masks and row filters in a statement's text: names, derived tables, and a check of them."""
