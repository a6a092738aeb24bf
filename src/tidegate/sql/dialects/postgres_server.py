"""What PostgreSQL shows of itself: statements for panels of a server (`Dialect.server_panels`)."""

from __future__ import annotations

_SESSIONS = """
SELECT a.pid::text AS id,
 to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS started,
 a.usename::text AS "user", a.datname::text AS database, a.application_name AS client,
 host(a.client_addr) AS address, a.state AS state,
 a.wait_event_type || ': ' || a.wait_event AS waits_for,
 CASE WHEN a.state <> 'idle'
 THEN round(extract(epoch FROM clock_timestamp() - a.query_start)::numeric, 1) END::text AS seconds,
 array_to_string(pg_catalog.pg_blocking_pids(a.pid), ', ') AS blocked_by,
 (a.pid = pg_catalog.pg_backend_pid())::text AS own{query}
 FROM pg_catalog.pg_stat_activity AS a WHERE a.backend_type = 'client backend'
 ORDER BY a.state = 'active' DESC NULLS LAST, a.query_start NULLS LAST
"""
PANELS = {
    "sessions": (_SESSIONS.format(query=""),),
    "blocking": (
        """
SELECT a.pid::text AS blocked, a.usename::text AS "user", b.pid::text AS blocked_by,
 c.usename::text AS by_user, c.state AS by_state,
 round(extract(epoch FROM clock_timestamp() - a.query_start)::numeric, 1)::text AS seconds,
 (SELECT string_agg(DISTINCT l.locktype || coalesce(' ' || r.relname, ''), ', ')
  FROM pg_catalog.pg_locks AS l LEFT JOIN pg_catalog.pg_class AS r ON r.oid = l.relation
  WHERE l.pid = a.pid AND NOT l.granted) AS waits_for
 FROM pg_catalog.pg_stat_activity AS a
 CROSS JOIN LATERAL unnest(pg_catalog.pg_blocking_pids(a.pid)) AS b(pid)
 LEFT JOIN pg_catalog.pg_stat_activity AS c ON c.pid = b.pid ORDER BY a.query_start
""",
    ),
    "sizes": (
        """
SELECT n.nspname::text AS "schema", c.relname::text AS "table",
 pg_catalog.pg_total_relation_size(c.oid)::text AS bytes,
 pg_catalog.pg_indexes_size(c.oid)::text AS index_bytes, c.reltuples::bigint::text AS "rows"
 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
 AND n.nspname !~ '^pg_toast' ORDER BY pg_catalog.pg_total_relation_size(c.oid) DESC LIMIT 200
""",
    ),
    "memory": (
        """
SELECT 'Size of the database' AS name,
 pg_catalog.pg_size_pretty(pg_catalog.pg_database_size(current_database())) AS value
 UNION ALL SELECT 'Reads from memory', round(100.0 * blks_hit / nullif(blks_hit + blks_read, 0), 1)
 || ' %' FROM pg_catalog.pg_stat_database WHERE datname = current_database()
 UNION ALL SELECT 'Temporary files', pg_catalog.pg_size_pretty(temp_bytes)
 FROM pg_catalog.pg_stat_database WHERE datname = current_database()
 UNION ALL SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.pg_settings WHERE name IN
 ('shared_buffers', 'work_mem', 'maintenance_work_mem', 'effective_cache_size', 'max_connections')
""",
    ),
    "rights": (
        """
SELECT 'Sessions of other accounts, with their state and statements' AS what,
 pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')::text AS granted,
 format('GRANT pg_read_all_stats TO %I', current_user) AS "grant"
 UNION ALL SELECT 'Cancelling statements of other accounts',
 pg_catalog.pg_has_role(current_user, 'pg_signal_backend', 'USAGE')::text,
 format('GRANT pg_signal_backend TO %I', current_user)
 UNION ALL SELECT 'The slowest statements of the server', EXISTS (SELECT FROM
 pg_catalog.pg_extension WHERE extname = 'pg_stat_statements')::text,
 'CREATE EXTENSION pg_stat_statements, with shared_preload_libraries = ''pg_stat_statements'''
""",
    ),
}
TEXTS = {
    "sessions": (
        _SESSIONS.format(
            query=", CASE WHEN a.query <> '<insufficient privilege>'"
            " THEN left(a.query, 2000) END AS query"
        ),
    ),
    "statements": (
        """
SELECT s.calls::text AS calls, round(s.mean_exec_time::numeric, 1)::text AS mean_ms,
 round(s.total_exec_time::numeric)::text AS total_ms, s.rows::text AS "rows",
 left(s.query, 2000) AS query FROM pg_stat_statements AS s ORDER BY s.mean_exec_time DESC LIMIT 50
""",
    ),
}
CANCEL = (
    "SELECT pg_catalog.pg_cancel_backend(a.pid)::text AS cancelled"
    " FROM pg_catalog.pg_stat_get_activity({session}) AS a"
    " WHERE a.pid <> pg_catalog.pg_backend_pid() AND a.backend_start = {started}::timestamptz"
)
"""By the process and its start in one statement: numbers of processes are used again."""
