"""Queries as JDBC clients write them: `?` for parameters, `??` for an operator, `{fn ...}`.

`source_text.py` finds what JDBC adds to a text and writes it as the database's own SQL;
`extraction.py` says what a query selects, on which conditions, from which tables. Pure.
"""
