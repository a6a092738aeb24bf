"""What SQLite shows of a file: statements for the panels of a server (`Dialect.server_panels`)."""

from __future__ import annotations

PANELS = {
    # `dbstat` reads every page of the file: a large one takes longer than a panel may.
    "sizes": (
        'SELECT \'main\' AS "schema", name AS "table", CAST(pgsize AS TEXT) AS bytes'
        " FROM dbstat WHERE aggregate = 1 ORDER BY pgsize DESC LIMIT 200",
    ),
    "memory": (
        "SELECT 'Size of the file' AS name, page_count * page_size || ' bytes' AS value"
        " FROM pragma_page_count, pragma_page_size"
        " UNION ALL SELECT 'Free in the file', freelist_count * page_size || ' bytes'"
        " FROM pragma_freelist_count, pragma_page_size"
        " UNION ALL SELECT 'Journal', journal_mode FROM pragma_journal_mode"
        " UNION ALL SELECT 'Cache', CASE WHEN cache_size < 0 THEN -cache_size || ' KiB'"
        " ELSE cache_size || ' pages' END FROM pragma_cache_size",
    ),
}
