"""Looks for false reads: statements that the judge calls reads and that change something.

Statements are generated, mutated and judged; what is called a read runs on the real engine, as its
most privileged user, without transaction, read-only mode or any other fence, and digests of all
that could change are compared. `test_read_only_fuzz.py` runs it in CI, `./dev fuzz` for as long as
one likes.
"""
