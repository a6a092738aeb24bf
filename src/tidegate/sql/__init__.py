"""What a text would do to a database, judged by the text alone. Pure: no I/O, no clock.

`judge` reads from top to bottom: `scan` (raw text), `statement_kinds` (by the first word),
`token_checks` (by words), `normalization` and `parse` (by grammar), `tree_checks` (by tree). The
opinions are joined, and the highest effect wins. `redaction` takes the values out of a text;
`masking` rewrites it so that what data rules hide stays hidden.
"""
