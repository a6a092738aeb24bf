"""SQLite, through apsw: read-only enforced by SQLite, quick statements inline, others in threads.

Beside the ten files of every engine: `inline_executor.py` runs quick statements on the event loop,
`cost_estimate.py` bounds what one step of a statement can cost, `worker_thread.py` runs all others.
"""

from tidegate.engines.sqlite.engine import SqliteEngine

__all__ = ["SqliteEngine"]
