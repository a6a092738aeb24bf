"""Masks and row filters, put into a statement's text: names, derived tables, and a check of them."""
