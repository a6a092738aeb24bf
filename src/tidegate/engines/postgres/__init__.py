"""PostgreSQL, through libpq (`psycopg.pq`), on the event loop, one round trip per statement.

Beside the ten files of every engine: `command_protocol.py` sends commands and reads results,
`socket_io.py` waits for the socket and bounds what is read.
"""

from tidegate.engines.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
