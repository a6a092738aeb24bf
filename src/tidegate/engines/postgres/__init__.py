"""PostgreSQL, by libpq: raw through `psycopg.pq`, on the event loop, one round trip per statement.

`login`, `wire` and `meter` carry bytes, `line` commands, `session` keeps one connection's settings
and transactions, `cursor` streams rows, `values` reads them, `catalog` describes, `hazards` tells
what the database knows against a text, `engine` puts them together. Sessions are shared by
`engines/pool`, and what must end is ended by `engines/errand`.
"""

from tidegate.engines.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
