"""PostgreSQL, by libpq: raw through `psycopg.pq`, on the event loop, one round trip per statement.

`line` carries bytes, `session` keeps one connection's settings and transactions, `pool` shares
them, `errand` ends what must end, `cursor` streams rows, `values` reads them, `catalog` describes,
`hazards` tells what the database knows against a text, `engine` puts them together.
"""

from tidegate.engines.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
