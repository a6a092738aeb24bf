"""Puts masks and row filters into the text of a statement, before it runs.

`rewrite.py` is the entry, `masked_statement.py` rewrites one statement, and `mask_expressions.py`
writes what is shown in place of a masked value. `gateway/masking.py` is the step that calls it.
"""
