"""What DuckDB shows of itself: statements for the panels of a server (`Dialect.server_panels`)."""

from __future__ import annotations

PANELS = {
    "sizes": (
        'SELECT schema_name AS "schema", table_name AS "table", estimated_size::VARCHAR AS "rows"'
        " FROM duckdb_tables() WHERE NOT internal ORDER BY estimated_size DESC LIMIT 200",
    ),
    "memory": (
        "SELECT 'Memory: ' || tag AS name, memory_usage_bytes || ' bytes' AS value"
        " FROM duckdb_memory() WHERE memory_usage_bytes > 0"
        " UNION ALL SELECT 'For want of memory: ' || tag, temporary_storage_bytes || ' bytes'"
        " FROM duckdb_memory() WHERE temporary_storage_bytes > 0"
        " UNION ALL SELECT 'Temporary file ' || path, size || ' bytes'"
        " FROM duckdb_temporary_files()"
        " UNION ALL SELECT 'Size of the file: ' || database_name, database_size"
        " FROM pragma_database_size()"
        " UNION ALL SELECT 'Limit of memory', memory_limit FROM pragma_database_size() LIMIT 100",
    ),
}
