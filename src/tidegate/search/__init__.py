"""Finds tables and texts: by words, by vectors, by likely joins."""
