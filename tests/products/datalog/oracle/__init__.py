"""Datalog queries and pulls against an evaluator of our own: what both answer must be equal."""
