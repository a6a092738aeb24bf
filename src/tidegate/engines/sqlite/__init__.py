"""SQLite, by apsw: read-only enforced by SQLite itself, quick statements inline, others in threads.

`authorizer` decides what SQLite may do, `plan` what a statement is, `session` runs it on one
connection, `worker` keeps the threads, `engine` puts them together.
"""

from tidegate.engines.sqlite.engine import SqliteEngine

__all__ = ["SqliteEngine"]
