"""What MariaDB and MySQL show of themselves: statements for the panels of a server
(`Dialect.server_panels`). Where the two differ, the second statement is MySQL's."""

from __future__ import annotations

_SESSIONS = (
    "SELECT CAST(ID AS CHAR) AS id, CONCAT(USER, '@', HOST) AS started, USER AS `user`,"
    " DB AS `database`, '' AS client, HOST AS address, COMMAND AS state, STATE AS waits_for,"
    " CASE WHEN COMMAND <> 'Sleep' THEN CAST(TIME AS CHAR) END AS seconds, '' AS blocked_by,"
    " CASE WHEN ID = CONNECTION_ID() THEN 'true' ELSE 'false' END AS own{query}"
    " FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Daemon'"
    " ORDER BY COMMAND = 'Sleep', TIME DESC"
)
"""A session has no time of its start here; its user and its client's port say which one it is."""
_STATUS = (
    "VARIABLE_NAME AS name, VARIABLE_VALUE AS value FROM {view} WHERE VARIABLE_NAME IN"
    " ('Memory_used', 'Innodb_buffer_pool_bytes_data', 'Innodb_buffer_pool_bytes_dirty',"
    " 'Innodb_buffer_pool_pages_free', 'Innodb_buffer_pool_read_requests',"
    " 'Innodb_buffer_pool_reads', 'Threads_connected', 'Threads_running', 'Max_used_connections',"
    " 'Created_tmp_disk_tables', 'Uptime')"
)
_ACCOUNT = (
    "CONCAT('''', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''',"
    " SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')"
)
_HAS = (
    "CASE WHEN EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = {account}"
    " AND PRIVILEGE_TYPE IN ({names})) THEN 'true' ELSE 'false' END"
)
_SEES = _HAS.format(account=_ACCOUNT, names="'PROCESS'")
_CANCELS = _HAS.format(account=_ACCOUNT, names="'CONNECTION ADMIN', 'CONNECTION_ADMIN', 'SUPER'")
_RIGHTS = (
    f"SELECT 'Sessions of other accounts, and who waits for whom' AS what, {_SEES} AS granted,"
    f" CONCAT('GRANT PROCESS ON *.* TO ', {_ACCOUNT}) AS `grant`"
    f" UNION ALL SELECT 'Cancelling statements of other accounts', {_CANCELS},"
    f" CONCAT('GRANT CONNECTION ADMIN ON *.* TO ', {_ACCOUNT})"
    " UNION ALL SELECT 'The slowest statements of the server',"
    " CASE WHEN @@performance_schema THEN 'true' ELSE 'false' END,"
    " CONCAT('performance_schema = ON in the settings of the server, and GRANT SELECT ON"
    f" performance_schema.* TO ', {_ACCOUNT})"
)
PANELS = {
    "sessions": (_SESSIONS.format(query=""),),
    "blocking": (
        "SELECT CAST(r.trx_mysql_thread_id AS CHAR) AS blocked, '' AS `user`,"
        " CAST(b.trx_mysql_thread_id AS CHAR) AS blocked_by, '' AS by_user,"
        " b.trx_state AS by_state,"
        " CAST(TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) AS CHAR) AS seconds,"
        " CONCAT(l.lock_mode, ' ', l.lock_table) AS waits_for"
        " FROM information_schema.INNODB_LOCK_WAITS AS w"
        " JOIN information_schema.INNODB_TRX AS r ON r.trx_id = w.requesting_trx_id"
        " JOIN information_schema.INNODB_TRX AS b ON b.trx_id = w.blocking_trx_id"
        " JOIN information_schema.INNODB_LOCKS AS l ON l.lock_id = w.requested_lock_id",
        "SELECT CAST(waiting_pid AS CHAR) AS blocked, '' AS `user`,"
        " CAST(blocking_pid AS CHAR) AS blocked_by, '' AS by_user, '' AS by_state,"
        " CAST(wait_age_secs AS CHAR) AS seconds, locked_table AS waits_for"
        " FROM sys.innodb_lock_waits",
    ),
    "sizes": (
        "SELECT TABLE_SCHEMA AS `schema`, TABLE_NAME AS `table`,"
        " CAST(DATA_LENGTH + INDEX_LENGTH AS CHAR) AS bytes,"
        " CAST(INDEX_LENGTH AS CHAR) AS index_bytes,"
        " CAST(TABLE_ROWS AS CHAR) AS `rows` FROM information_schema.TABLES"
        " WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN"
        " ('mysql', 'sys', 'information_schema', 'performance_schema')"
        " ORDER BY DATA_LENGTH + INDEX_LENGTH DESC LIMIT 200",
    ),
    "memory": (
        f"SELECT {_STATUS.format(view='information_schema.GLOBAL_STATUS')}",
        f"SELECT {_STATUS.format(view='performance_schema.global_status')}",
    ),
    "rights": (_RIGHTS,),
}
TEXTS = {
    "sessions": (_SESSIONS.format(query=", LEFT(INFO, 2000) AS query"),),
    "statements": (
        "SELECT CAST(COUNT_STAR AS CHAR) AS calls,"
        " CAST(ROUND(AVG_TIMER_WAIT / 1e9, 1) AS CHAR) AS mean_ms,"
        " CAST(ROUND(SUM_TIMER_WAIT / 1e9) AS CHAR) AS total_ms,"
        " CAST(SUM_ROWS_SENT AS CHAR) AS `rows`, LEFT(DIGEST_TEXT, 2000) AS query"
        " FROM performance_schema.events_statements_summary_by_digest"
        " WHERE DIGEST_TEXT IS NOT NULL ORDER BY AVG_TIMER_WAIT DESC LIMIT 50",
    ),
}
CANCEL = "KILL QUERY {session}"
"""Numbers of connections are not used again while the server runs; the gate compares the rest."""
