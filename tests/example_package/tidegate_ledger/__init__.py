"""A product in a package of its own: the worked example of CONTRIBUTING.md.

A ledger is a SQLite file with a table `entries` (account, cents). The package adds an engine for
`ledger:///books.db` with its dialect, a surface with two tools, the command `tidegate ledger`,
and a step of the gate that refuses changes of entries.
Nothing in Tidegate knows it: it is found by its entry point.
"""
